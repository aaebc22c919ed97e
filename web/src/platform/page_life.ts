/** The page's comings and goings, told to whoever keeps a connection. */

import { HIDDEN_GRACE_MS, wasAway } from "../core/lifecycle.ts";

/** Who keeps a connection. */
export interface Resident {
  /** The page has been out of sight for longer than a moment: for so many milliseconds. */
  hidden(awayMs: number): void;
  /** The page is seen again after so many milliseconds. It may have slept without being told so. */
  woken(awayMs: number): void;
  /** The device has a network again. */
  online(): void;
}

/** Listens until the answer is called. */
export function watchPageLife(resident: Resident): () => void {
  let hiddenAt: number | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const stop = new AbortController();
  const options = { signal: stop.signal };

  // The wall's clock: the other one stands still in some browsers while the device sleeps.
  const away = (): number => (hiddenAt === undefined ? 0 : Math.max(0, Date.now() - hiddenAt));
  const leave = (): void => {
    hiddenAt ??= Date.now();
    clearTimeout(timer);
    timer = setTimeout(() => resident.hidden(away()), HIDDEN_GRACE_MS);
  };
  const comeBack = (thawed: boolean): void => {
    clearTimeout(timer);
    const awayMs = away();
    hiddenAt = undefined;
    if (wasAway({ awayMs, thawed })) resident.woken(awayMs);
  };

  document.addEventListener(
    "visibilitychange",
    () => (document.visibilityState === "hidden" ? leave() : comeBack(false)),
    options,
  );
  addEventListener("pageshow", (event) => event.persisted && comeBack(true), options);
  document.addEventListener("resume", () => comeBack(true), options);
  addEventListener("online", () => resident.online(), options);
  // A page may be opened behind another one: it waits to be seen like any that was left.
  if (document.visibilityState === "hidden") leave();
  return () => {
    clearTimeout(timer);
    stop.abort();
  };
}
