/** Whether to say that a proxy holds the stream back. */

import { effect, signal } from "@preact/signals";
import { NO_LUMPS, noteLumps } from "../core/held.ts";
import { ApiFault, call } from "../platform/api.ts";
import { nowMs } from "../platform/clock.ts";
import { awakeMs, startPulse } from "../platform/pulse.ts";
import { type Chat, chat } from "./chat.ts";

/** A line that is back says so within this time after another answer, in milliseconds. */
const BACK_MS = 1_000;

/** Whether answers come in lumps or a stream not at all, and nobody has read so yet. */
export const held = signal(false);

let wasRead = false;

/** Listens to what comes, in whichever session is shown. */
export function startHeld(): void {
  let lumps = NO_LUMPS;
  startPulse();
  effect(() => {
    const open = chat.value;
    if (!open) return;
    open.overhear = (frames) => {
      lumps = noteLumps(lumps, frames, nowMs(), awakeMs());
      held.value = lumps.held && !wasRead;
    };
  });
  effect(() => {
    const open = chat.value;
    if (open?.silent.value) void askElse(open);
  });
}

/** A dead line is silent as well: only what answers something else has its stream held back. */
async function askElse({ silent }: Chat): Promise<void> {
  held.value = false;
  try {
    await call("list_sessions", { query: { limit: 1 } });
    await new Promise((resolve) => setTimeout(resolve, BACK_MS));
    held.value = silent.peek() && !wasRead;
  } catch (error) {
    // A line on which nothing comes is told of already.
    if (!(error instanceof ApiFault)) throw error;
  }
}

/** It was read, and is not said again before the page is loaded anew. */
export function acceptHeld(): void {
  wasRead = true;
  held.value = false;
}
