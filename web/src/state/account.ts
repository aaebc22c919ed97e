/** Who uses this page, and whether the server lets them. */

import { signal } from "@preact/signals";
import { ApiFault, call } from "../platform/api.ts";
import type { Identity } from "../protocol/types.gen.ts";

/** What the page knows: asking, in, out, or no server to ask. */
export type Access = "asking" | "in" | "out" | "unreachable";

/** Whether the page may be used. */
export const access = signal<Access>("asking");
/** Who is signed in. */
export const identity = signal<Identity | null>(null);
/** Whether somebody was signed in here and is not any more. */
export const ended = signal(false);

let last = "";

/** Who is signed in, or was last in this window. */
export function whose(): string {
  last = identity.peek()?.user ?? last;
  return last;
}

/** Asks the server who one is. */
export async function askWho(): Promise<void> {
  try {
    identity.value = await call("me");
    access.value = "in";
  } catch (error) {
    if (!(error instanceof ApiFault)) throw error;
    access.value = error.code === "unauthorized" ? "out" : "unreachable";
  }
}

/** Shows the gate; `unasked` when the server ended the sign-in. */
export function signOut(unasked: boolean): void {
  // Answers to what was asked before one left come in as 401: that is no news.
  if (access.peek() === "out") return;
  whose();
  identity.value = null;
  ended.value = unasked;
  access.value = "out";
}
