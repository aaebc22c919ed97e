/** What a chat would have that begins now, before there is one. */

import { computed, signal } from "@preact/signals";
import { call } from "../platform/api.ts";
import type { StartInfo } from "../protocol/types.gen.ts";
import { wish } from "./outbox.ts";
import { loadOf } from "./providers.ts";

/** What the server said last. */
export const start = signal<StartInfo | null>(null);
/** Why it could not say it, or why a command was not done. */
export const startComplaint = signal<string | null>(null);
/** The model and the mode of the next chat; empty as long as nobody knows. */
export const startModel = computed(() => wish.value.model ?? start.value?.model ?? "");
export const startMode = computed(() => wish.value.mode ?? start.value?.mode ?? "");

/** The folder as a part of a question. */
export function inFolder(): { folder?: string } {
  const { cwd } = wish.peek();
  return cwd ? { folder: cwd } : {};
}

/** Asks for it anew; tells whether there was an answer. */
export async function readStart(): Promise<boolean> {
  const { cwd } = wish.peek();
  const found = await loadOf(call("get_start", { query: inFolder() }));
  // Another folder was chosen meanwhile: that one's answer counts.
  if (wish.peek().cwd !== cwd) return true;
  if (found.state === "ready") start.value = found.value;
  startComplaint.value = found.state === "failed" ? found.message : null;
  return found.state === "ready";
}

/** Takes another folder, if chats may begin there. */
export async function chooseFolder(cwd: string): Promise<void> {
  const before = wish.peek();
  // What was chosen for one folder is no choice for another.
  wish.value = { ...before, cwd, mode: null };
  if (!(await readStart())) wish.value = before;
}
