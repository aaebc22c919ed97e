/** Signing in and out. */

import { ApiFault, call } from "../platform/api.ts";
import { access, askWho, ended, identity, signOut, whose } from "./account.ts";
import { leaveAll } from "./sessions.ts";
import { readSetting, writeSetting } from "./settings.ts";

/** The name of a server's first user. */
export const OWNER = "owner";

/** How many characters a code has. */
export const CODE_LENGTH = 8;

/** A code as the server counts it: letters and digits, however it was typed. */
export function cleanCode(typed: string): string {
  return typed.replace(/[^0-9a-z]/gi, "").toUpperCase();
}

/**
 * Signs in with a one-time code; the token comes as a cookie that no script can read.
 *
 * @throws ApiFault when the code is not taken
 */
export async function claim(code: string): Promise<void> {
  await call("claim", { body: { code: cleanCode(code), cookie: true, name: deviceName() } });
  await enter(null);
}

/**
 * Signs in with a password, for a day.
 *
 * @throws ApiFault when it is not right
 */
export async function logIn(user: string, password: string): Promise<void> {
  const body = { user: user.trim() || OWNER, password, cookie: true, name: deviceName() };
  await call("login", { body });
  await enter(body.user);
}

/** Goes in; the gate says the server's name the next time, and who came with a password. */
async function enter(user: string | null): Promise<void> {
  ended.value = false;
  const before = whose();
  await askWho();
  if (access.peek() === "out") throw new ApiFault("no_cookies", "");
  writeSetting("left", null);
  writeSetting("user", user);
  writeSetting("server_name", identity.peek()?.server_name ?? null);
  // What this window still holds, unsent prompts too, is nobody else's.
  if (before && before !== whose()) location.reload();
}

/** Why somebody who was signed in here is not any more, as far as can be told. */
export type WhyOut = "revoked" | "expired";

/** Asks the server why it lets nobody in; one that does so after all is no reason. */
export async function whyOut(): Promise<WhyOut | null> {
  try {
    identity.value = await call("me");
    access.value = "in";
    return null;
  } catch (error) {
    if (!(error instanceof ApiFault)) throw error;
    if (error.reason === "unknown_token") return "revoked";
    // The browser drops the cookie when the sign-in has run out.
    const wasIn = readSetting("server_name") !== null && readSetting("left") === null;
    return error.reason === "missing" && wasIn ? "expired" : null;
  }
}

/** What this device is called in the list of devices: the system, no more. */
export function deviceName(): string {
  const found = /iPhone|iPad|Android|Macintosh|Windows|CrOS|Linux/.exec(navigator.userAgent);
  return found?.[0].replace("Macintosh", "Mac") ?? "";
}

/** Signs out here. What was typed and not sent stays in this browser. */
export async function leave(): Promise<void> {
  await leaveAll();
  try {
    await call("logout");
  } catch (error) {
    if (!(error instanceof ApiFault)) throw error;
    // The server does not know this device any more, or cannot be asked: the gate tells which.
  }
  writeSetting("left", "1");
  signOut(false);
}
