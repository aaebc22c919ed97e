/** Whether a silent line is the fault of too many windows. */

import { effect, signal } from "@preact/signals";
import { answerCounts, countOthers } from "../platform/windows.ts";
import { chat } from "./chat.ts";

/** Streams that a browser opens to one server over HTTP/1.1. */
const STREAMS = 6;

/** Whether other windows hold all the streams that a browser opens. */
export const crowded = signal(false);

/** Counts the windows each time that a line stays silent. */
export function startWindows(): void {
  if (!("BroadcastChannel" in globalThis)) return;
  answerCounts(() => chat.peek()?.state.peek().live_ms != null);
  effect(() => {
    const state = chat.value?.state.value;
    if (state?.phase === "live") crowded.value = false;
    if (!state || state.phase === "live" || state.failures === 0) return;
    void countOthers().then((others) => {
      crowded.value = others >= STREAMS && chat.peek()?.state.peek().phase !== "live";
    });
  });
}
