/** What the page does with the device that it runs on; started when the page has time. */

import { computed, effect } from "@preact/signals";
import { canStayAwake, stayAwake } from "../platform/awake.ts";
import { access } from "./account.ts";
import { chat } from "./chat.ts";
import { startCopies } from "./copies.ts";
import { startHeld } from "./held.ts";
import { startInstall } from "./install.ts";
import { sessions } from "./sessions.ts";
import { makeSwitch } from "./switch.ts";
import { startWorker } from "./update.ts";
import { startWindows } from "./windows.ts";

/** Whether the screen stays on while the agent works. */
export const keepsAwake = makeSwitch("awake", false);

/** How many things wait for somebody, in all sessions. */
export const openRequests = computed(() => {
  if (access.value !== "in") return 0;
  const open = chat.value;
  const mine = open ? open.permissions.value.length + open.questions.value.length : 0;
  return sessions.value.reduce(
    (sum, { id, pending = 0 }) => sum + (id === open?.session ? 0 : pending),
    mine,
  );
});

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
