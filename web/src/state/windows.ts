/** Whether this window does without a stream, since too many others have one. */

import { effect, signal } from "@preact/signals";
import { answerCounts, countOthers, sharesConnection } from "../platform/windows.ts";
import { chat } from "./chat.ts";

/** Streams at once. A browser has six connections: one stays free, or no window could send. */
export const MOST_STREAMS = 5;

/** Whether other windows hold all the streams that there may be. */
export const crowded = signal(false);

/** Counts the windows each time that a stream begins or a line stays silent; the last to come gives way. */
export function startWindows(): void {
  if (!("BroadcastChannel" in globalThis)) return;
  let since: number | null = null;
  answerCounts(() => since);
  effect(() => {
    const open = chat.value;
    const state = open?.state.value;
    if (open && state?.phase === "live") {
      if (since !== null) return;
      crowded.value = false;
      since = Date.now() + Math.random(); // no two the same
    } else {
      since = null;
      if (!state?.failures) return;
    }
    void countOthers(since ?? Number.POSITIVE_INFINITY).then((others) => {
      if (open !== chat.peek()) return;
      const isFull = others >= MOST_STREAMS && !sharesConnection();
      if (isFull && since !== null) open?.stop();
      crowded.value = isFull;
    });
  });
}
