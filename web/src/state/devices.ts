/** What is let in as this user: paired devices, logins, tokens of programs. */

import { signal } from "@preact/signals";
import { call } from "../platform/api.ts";
import type { Pairing, TokenInfo } from "../protocol/types.gen.ts";
import { type Load, loadOf } from "./providers.ts";

/** The devices, this one first and then those that were used last. */
export const devices = signal<Load<readonly TokenInfo[]>>({ state: "loading" });
/** The code that was made for another device, if one was. */
export const pairing = signal<Load<Pairing> | null>(null);

/** Those that were used last stand first; this one before all. */
export function sortDevices(tokens: readonly TokenInfo[]): TokenInfo[] {
  return [...tokens].sort((a, b) => {
    if (Boolean(a.current) !== Boolean(b.current)) return a.current ? -1 : 1;
    return a.last_used < b.last_used ? 1 : -1;
  });
}

/** The list as the server has it now. */
const read = () => loadOf(call("list_tokens").then(({ tokens }) => sortDevices(tokens)));

/** Reads the list. */
export async function loadDevices(): Promise<void> {
  devices.value = await read();
}

/** Lets a device in no more; tells what was wrong when it could not be done. */
export async function revokeDevice(token: string): Promise<string | null> {
  const done = await loadOf(call("revoke_token", { path: { token } }));
  // Whatever came of it, the list says how it is now.
  await loadDevices();
  return done.state === "failed" ? done.message : null;
}

/** Makes a code for another device; the one before stays good until its own end. */
export async function makePairing(): Promise<void> {
  pairing.value = { state: "loading" };
  pairing.value = await loadOf(call("pair"));
}

/** Looks whether somebody came in meanwhile: then the code is used up, and the list says who. */
export async function lookForNewDevice(): Promise<void> {
  const before = devices.peek();
  const now = await read();
  // What cannot be asked now is asked again.
  if (before.state !== "ready" || now.state !== "ready") return;
  const known = new Set(before.value.map(({ id }) => id));
  if (now.value.every(({ id }) => known.has(id))) return;
  devices.value = now;
  pairing.value = null;
}

/** Whether an address leads to this machine alone. */
export function isOnlyHere(url: string): boolean {
  const { hostname } = new URL(url);
  return hostname === "localhost" || hostname === "[::1]" || hostname.startsWith("127.");
}
