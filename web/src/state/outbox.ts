/** The prompts of this page that the log does not hold yet. */

import { signal } from "@preact/signals";
import { Drafts } from "../core/drafts.ts";
import { makeKey } from "../core/ids.ts";
import {
  afterTry,
  makeEntry,
  type OutboxEntry,
  type Outcome,
  retryEntry,
  withoutSeen,
} from "../core/outbox.ts";
import { ApiFault, call } from "../platform/api.ts";
import type { SessionView } from "../protocol/types.gen.ts";
import { signOut } from "./account.ts";
import { go, route } from "./router.ts";
import { putSession } from "./sessions.ts";

/** All entries, oldest first. */
export const outbox = signal<readonly OutboxEntry[]>([]);

/** What was typed and not taken yet. */
export const drafts = new Drafts({
  getItem: (key) => localStorage.getItem(key),
  setItem: (key, value) => localStorage.setItem(key, value),
  removeItem: (key) => localStorage.removeItem(key),
});

/** A new name for a command. */
export function newKey(): string {
  return makeKey((bytes) => crypto.getRandomValues(bytes));
}

function put(entry: OutboxEntry): void {
  outbox.value = outbox.peek().map((other) => (other.key === entry.key ? entry : other));
}

function find(key: string): OutboxEntry | undefined {
  return outbox.peek().find((entry) => entry.key === key);
}

/** Takes an entry out; its text is the caller's. */
export function dropEntry(key: string): void {
  outbox.value = outbox.peek().filter((entry) => entry.key !== key);
}

/** Takes out what the view shows as messages or as waiting prompts. */
export function settleOutbox(view: SessionView): void {
  if (outbox.peek().length === 0) return;
  const seen = [...view.messages, ...view.queue].map((entry) => entry.key ?? "");
  outbox.value = withoutSeen(outbox.peek(), new Set(seen));
}

/** Sends a text to a session, or begins one with it. */
export function sendText(session: string | null, text: string): void {
  const entry = makeEntry(newKey(), session, text, Date.now());
  outbox.value = [...outbox.peek(), entry];
  void attempt(entry);
}

/** Sends an entry once more, under its own key. */
export function sendAgain(key: string): void {
  const entry = find(key);
  if (!entry || entry.state === "sending") return;
  const again = retryEntry(entry, Date.now());
  put(again);
  void attempt(again);
}

async function attempt(entry: OutboxEntry): Promise<void> {
  const outcome = await trySend(entry);
  if (outcome.kind === "accepted") drafts.accepted(entry.session, entry.text);
  const now = find(entry.key);
  if (!now) return; // the log was quicker, or a person took it back
  const [next, waitMs] = afterTry(now, outcome, Date.now());
  put(next);
  if (waitMs !== undefined) setTimeout(() => void continueWith(entry.key), waitMs);
}

async function continueWith(key: string): Promise<void> {
  const entry = find(key);
  if (entry?.state === "sending") await attempt(entry);
}

async function trySend(entry: OutboxEntry): Promise<Outcome> {
  try {
    if (entry.session === null) await begin(entry);
    else await prompt(entry, entry.session);
    return { kind: "accepted" };
  } catch (error) {
    if (!(error instanceof ApiFault)) throw error;
    if (error.code === "unauthorized") signOut(true);
    if (error.again) return { kind: "again", message: error.message, afterMs: error.afterMs };
    return { kind: "refused", message: error.message };
  }
}

async function prompt({ key, text }: OutboxEntry, session: string): Promise<void> {
  const content = [{ type: "text", text }] as const;
  await call("send_prompt", { path: { session }, key, body: { content, when: "auto" } });
}

/** Makes the session with its first prompt, and goes there unless the reader went elsewhere. */
async function begin(entry: OutboxEntry): Promise<void> {
  const { key, text } = entry;
  const prompt = [{ type: "text", text }] as const;
  const made = await call("create_session", { key, body: { prompt, key } });
  putSession(made);
  // From here on the entry belongs to the session: it is shown there until the log holds it.
  drafts.accepted(null, text);
  if (find(key)) put({ ...entry, session: made.id });
  if (route.peek().page === "new") go({ page: "chat", session: made.id }, true);
}
