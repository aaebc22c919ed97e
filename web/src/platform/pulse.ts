/** Whether the page was awake: in sight, and its timers on time. */

import { nowMs } from "./clock.ts";

const BEAT_MS = 1_000;
/** A timer that rings so much later slept, or the page was too busy to read. */
const LATE_MS = 3_000;

let lastMs = nowMs();
let sinceMs = lastMs;

function beat(): void {
  const now = nowMs();
  if (document.visibilityState === "hidden" || now - lastMs > LATE_MS) sinceMs = now;
  lastMs = now;
}

/** For how many milliseconds the page has been awake; asks for `startPulse` before. */
export function awakeMs(): number {
  beat();
  return lastMs - sinceMs;
}

/** Looks from now on, until the answer is called. */
export function startPulse(): () => void {
  const wake = (): void => {
    sinceMs = lastMs = nowMs();
  };
  wake();
  const timer = setInterval(beat, BEAT_MS);
  document.addEventListener("visibilitychange", wake);
  return () => {
    clearInterval(timer);
    document.removeEventListener("visibilitychange", wake);
  };
}
