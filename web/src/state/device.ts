/** What the page does with the device that it runs on; started when the page has time. */

import { computed, effect } from "@preact/signals";
import { canStayAwake, stayAwake } from "../platform/awake.ts";
import { chat } from "./chat.ts";
import { startCopies } from "./copies.ts";
import { startHeld } from "./held.ts";
import { startInstall } from "./install.ts";
import { openRequests } from "./open_requests.ts";
import { makeSwitch } from "./switch.ts";
import { startWorker } from "./update.ts";
import { startWindows } from "./windows.ts";

/** Whether the screen stays on while the agent works. */
export const keepsAwake = makeSwitch("awake", false);

const works = computed(() => chat.value !== null && chat.value.turn.value !== null);

/** Starts it all, once. */
export function startDevice(): void {
  startInstall();
  startCopies();
  startWindows();
  startHeld();
  void startWorker();
  effect(() => {
    const count = openRequests.value;
    if (!("setAppBadge" in navigator)) return;
    // A browser may know badges and still have no place for one.
    navigator.setAppBadge(count).catch(() => undefined);
  });
  effect(() => (canStayAwake && keepsAwake.value && works.value ? stayAwake() : undefined));
}
