/** Whether to say that a proxy holds the stream back. */

import { effect, signal } from "@preact/signals";
import { NO_LUMPS, noteLumps } from "../core/held.ts";
import { nowMs } from "../platform/clock.ts";
import { awakeMs, startPulse } from "../platform/pulse.ts";
import { chat } from "./chat.ts";

/** Whether answers come in lumps, and nobody has read so yet. */
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
}

/** It was read, and is not said again before the page is loaded anew. */
export function acceptHeld(): void {
  wasRead = true;
  held.value = false;
}
