/** Notifications of this device: how they stand, on, off, a test, and what is kept right by itself. */

import { signal } from "@preact/signals";
import { call } from "../platform/api.ts";
import {
  currentSubscription,
  fitsKey,
  hashText,
  judge,
  lookAround,
  makeSubscription,
  type PushState,
} from "../platform/push.ts";
import type { PushSubscription as Device, PushOutcome } from "../protocol/types.gen.ts";
import { language } from "./settings.ts";
import { deviceName } from "./sign_in.ts";

/** How push stands here; nothing until it was looked at. */
export const pushState = signal<PushState | null>(null);
/** What the server knows of this device. */
export const device = signal<Device | null>(null);
/** What became of the last message to it. */
export const lastPush = signal<PushOutcome | null>(null);

/** Hands a subscription of the browser to the server. */
async function handIn(made: PushSubscription): Promise<void> {
  const { endpoint = "", keys = {} } = made.toJSON();
  const { p256dh = "", auth = "" } = keys;
  const name = deviceName();
  const body = { endpoint, keys: { p256dh, auth }, language: language.peek(), name };
  take(await call("subscribe_push", { body }));
}

function take(kept: Device | null): void {
  device.value = kept;
  lastPush.value = kept?.last ?? null;
}

/** Looks how push stands here and at the server. */
export async function lookAtPush(): Promise<void> {
  const made = await currentSubscription();
  if (made) {
    const [{ subscriptions }, hash] = await Promise.all([
      call("list_push_subscriptions"),
      hashText(made.endpoint),
    ]);
    take(subscriptions.find(({ endpoint_sha256 }) => endpoint_sha256 === hash) ?? null);
  } else {
    take(null);
  }
  pushState.value = judge(lookAround(), made !== undefined && device.value !== null);
}

/**
 * Turns notifications on; called by a tap, since browsers ask nobody else.
 *
 * @throws NoPush when the browser does not, ApiFault when the server does not
 */
export async function turnOn(): Promise<void> {
  const { key } = await call("get_push_key");
  try {
    await handIn(await makeSubscription(key));
  } finally {
    pushState.value = judge(lookAround(), device.value !== null);
  }
}

/** Turns notifications off here. */
export async function turnOff(): Promise<void> {
  const kept = device.value;
  await (await currentSubscription())?.unsubscribe();
  if (kept) await call("unsubscribe_push", { path: { subscription: kept.id } });
  take(null);
  pushState.value = judge(lookAround(), false);
}

/** Sends a message now, and tells what became of it. */
export async function sendTest(): Promise<void> {
  const kept = device.value;
  if (!kept) return;
  const outcome = await call("test_push", { path: { subscription: kept.id } });
  lastPush.value = outcome;
  if (outcome.outcome !== "gone") return;
  await (await currentSubscription())?.unsubscribe();
  take(null);
  lastPush.value = outcome;
  pushState.value = judge(lookAround(), false);
}

/**
 * At the start: hands in again what this browser has, so that it belongs to who is signed in now; one
 * that was made with another key of the server, which can hear nothing any more, is made anew.
 */
export async function keepSubscription(): Promise<void> {
  const made = await currentSubscription();
  if (!made || lookAround().permission !== "granted") return;
  const { key } = await call("get_push_key");
  await handIn(fitsKey(made, key) ? made : await makeSubscription(key));
}
