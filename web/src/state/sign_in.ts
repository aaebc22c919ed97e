/** Signing in and out. */

import { ApiFault, call } from "../platform/api.ts";
import { askWho, ended, signOut } from "./account.ts";

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
  ended.value = false;
  await askWho();
}

/** What this device is called in the list of devices: the system, no more. */
export function deviceName(): string {
  const found = /iPhone|iPad|Android|Macintosh|Windows|CrOS|Linux/.exec(navigator.userAgent);
  return found?.[0].replace("Macintosh", "Mac") ?? "";
}

/** Signs out here. What was typed and not sent stays in this browser. */
export async function leave(): Promise<void> {
  try {
    await call("logout");
  } catch (error) {
    if (!(error instanceof ApiFault)) throw error;
    // The server does not know this device any more, or cannot be asked: the gate tells which.
  }
  signOut(false);
}
