/** Whether the page can be put on the home screen, and when to say so. */

import { computed, signal } from "@preact/signals";
import {
  type InstallOffer,
  type InstallWay,
  isIos,
  runsAsApp,
  watchOffer,
} from "../platform/install.ts";
import { plain } from "./plain_http.ts";
import { readSetting, writeSetting } from "./settings.ts";
import { makeSwitch } from "./switch.ts";

/** It is never offered on first sight. */
const ENOUGH_VISITS = 2;
/** A start this soon after the one before is the same visit, in milliseconds. */
const ONE_VISIT_MS = 30 * 60_000;

/** The browser's own offer, while it stands. */
export const offer = signal<InstallOffer | null>(null);
/** How often this browser was here. */
export const visits = signal(0);
const installed = signal(runsAsApp());
/** Whether a person may still be asked. */
const asks = makeSwitch("offers", true);

/** How it can be done here. */
export const installWay = computed<InstallWay>(() => {
  if (installed.value) return "installed";
  if (plain.value) return "insecure";
  if (offer.value) return "offer";
  return isIos(navigator.userAgent, navigator.maxTouchPoints) ? "ios" : "menu";
});

/** Whether to offer it now, unasked. */
export const offersInstall = computed(() => {
  const way = installWay.value;
  return asks.value && visits.value >= ENOUGH_VISITS && (way === "offer" || way === "ios");
});

/** How many visits there were with this one, and what to remember of it. */
export function countVisits(kept: string | null, nowMs: number): { count: number; keep: string } {
  const [before = 0, lastMs = 0] = (kept ?? "").split(" ").map(Number);
  const isNew = kept === null || !(nowMs - lastMs < ONE_VISIT_MS);
  const count = (Number.isFinite(before) ? before : 0) + (isNew ? 1 : 0);
  return { count, keep: `${count} ${nowMs}` };
}

/** Listens for the browser's offer, and counts this visit. */
export function startInstall(): void {
  watchOffer((given) => {
    offer.value = given;
    if (given === null) installed.value = true;
  });
  const { count, keep } = countVisits(readSetting("visits"), Date.now());
  writeSetting("visits", keep);
  visits.value = count;
}

/** Asks the browser to install; it shows its own sheet, once for each offer. */
export async function install(): Promise<void> {
  const given = offer.peek();
  if (!given) return;
  offer.value = null;
  await given.prompt();
  const { outcome } = await given.userChoice;
  if (outcome === "dismissed") asks.value = false;
}

/** Does not offer it again; the settings still do. */
export function declineInstall(): void {
  asks.value = false;
}
