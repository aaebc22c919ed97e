/** What is on its way to the server: the prompts of this page, and the other commands. */

import { signal } from "@preact/signals";
import { Drafts } from "../core/drafts.ts";
import { t } from "../core/i18n.ts";
import { makeKey } from "../core/ids.ts";
import {
  afterTry,
  type Entry,
  makeEntry,
  send,
  settle,
  type TryOutcome,
  tick,
} from "../core/outbox.ts";
import { ApiFault, type CallOptions, call, type OperationName } from "../platform/api.ts";
import { nowMs } from "../platform/clock.ts";
import type { CreateSession, Operations, PromptBlock, SessionView } from "../protocol/types.gen.ts";
import { signOut, whose } from "./account.ts";
import { go, route } from "./router.ts";
import { putSession } from "./sessions.ts";

/** One prompt on its way. */
export interface PromptEntry extends Entry {
  /** Where it goes; `null` for a session that it begins. */
  readonly session: string | null;
  readonly text: string;
  /** The files that go along. */
  readonly blocks: readonly PromptBlock[];
  /** The turn in whose place it is said; all after it goes. */
  readonly turn?: string | undefined;
  /** `steer` to reach the running turn; usually it waits for its end. */
  readonly when?: string | undefined;
  /** What the session is made of that it begins. */
  readonly wish: Wish;
}

/** How a prompt is said, when not as usual. */
export type Manner = Pick<PromptEntry, "turn" | "when">;

/** What a new session is made of; what is left out the server chooses. */
export type Wish = Pick<CreateSession, "cwd" | "model" | "mode">;

/** What the next one is. */
export const wish = signal<Wish>({});

/** All prompts that the log does not hold yet, oldest first. */
export const outbox = signal<readonly PromptEntry[]>([]);

/** Sessions that were begun in this window and not opened yet: nothing in them is new. */
export const begun = new Set<string>();

/** What was typed and not taken yet. */
export const drafts = new Drafts(
  {
    getItem: (key) => localStorage.getItem(key),
    setItem: (key, value) => localStorage.setItem(key, value),
    removeItem: (key) => localStorage.removeItem(key),
  },
  whose,
);

/** A new name for a command. */
export function newKey(): string {
  return makeKey((bytes) => crypto.getRandomValues(bytes));
}

/** A prompt that was never sent. */
export function makePrompt(
  key: string,
  session: string | null,
  text: string,
  blocks: readonly PromptBlock[] = [],
  manner: Manner = {},
): PromptEntry {
  return { ...makeEntry(key), session, text, blocks, wish: wish.peek(), ...manner };
}

function put(entry: PromptEntry): void {
  outbox.value = outbox.peek().map((other) => (other.key === entry.key ? entry : other));
}

function find(key: string): PromptEntry | undefined {
  return outbox.peek().find((entry) => entry.key === key);
}

/** Takes an entry out; its text is the caller's. */
export function dropEntry(key: string): void {
  outbox.value = outbox.peek().filter((entry) => entry.key !== key);
}

/** Takes out what the view shows as messages or as waiting prompts. */
export function settleOutbox(view: SessionView): void {
  const entries = outbox.peek();
  if (entries.length === 0) return;
  const keys = (all: readonly { key?: string | null }[]) =>
    new Set(all.map(({ key }) => key ?? ""));
  const settled = settle(entries, keys(view.queue), keys(view.messages));
  if (settled === entries) return;
  outbox.value = settled.filter(({ state, session, text }) => {
    if (state !== "queued" && state !== "delivered") return true;
    // The log may tell it before the command's answer does.
    drafts.accepted(session, text);
    return false;
  });
}

/** Sends a text to a session, or begins one with it; files may go along. */
export function sendText(
  session: string | null,
  text: string,
  blocks: readonly PromptBlock[] = [],
  manner: Manner = {},
): void {
  const entry = makePrompt(newKey(), session, text, blocks, manner);
  outbox.value = [...outbox.peek(), entry];
  sendAgain(entry.key);
}

/** Sends an entry, at once and under its own key, unless it is under way. */
export function sendAgain(key: string): void {
  const entry = find(key);
  const next = entry && send(entry, nowMs());
  if (!next || next === entry) return;
  put(next);
  void carry({ read: () => find(key), write: put, attempt: tryPrompt });
}

/** Lets nothing wait any longer that waits for its next try. */
export function hurryOutbox(): void {
  for (const { key, doing } of outbox.peek()) if (doing === "pause") sendAgain(key);
}

/** Where an entry is kept, and how it is tried. */
interface Load<E extends Entry> {
  read(): E | undefined;
  write(entry: E): void;
  attempt(entry: E, signal: AbortSignal): Promise<TryOutcome>;
}

/** Does what an entry says until it is nothing more, or somebody else has taken it over. */
async function carry<E extends Entry>(load: Load<E>): Promise<void> {
  for (let entry = load.read(); entry && entry.wake_ms !== null; entry = load.read()) {
    const leftMs = Math.max(0, entry.wake_ms - nowMs());
    if (entry.doing === "pause") {
      await new Promise((resolve) => setTimeout(resolve, leftMs));
      if (load.read() !== entry) return;
      load.write(tick(entry, nowMs()));
    } else {
      const outcome = await load.attempt(entry, AbortSignal.timeout(leftMs));
      const now = load.read();
      if (now) load.write(afterTry(now, entry.attempt, outcome, nowMs()));
    }
  }
}

/**
 * Does an operation under one key, again and again until the server has acknowledged it.
 *
 * @throws ApiFault when it is refused, or when no answer came in two minutes
 */
export async function deliver<Name extends OperationName>(
  name: Name,
  options: CallOptions<Name> & { key: string },
): Promise<Operations[Name]["answer"]> {
  let entry = send(makeEntry(options.key), nowMs());
  let answer: { value: Operations[Name]["answer"] } | undefined;
  await carry({
    read: () => entry,
    write: (next) => {
      entry = next;
    },
    attempt: (_entry, signal) =>
      outcomeOf(async () => {
        answer = { value: await call(name, { ...options, signal }) };
      }),
  });
  if (answer) return answer.value;
  const message = entry.state === "unknown" ? t("send.unknown") : entry.message;
  throw new ApiFault(entry.code ?? "network", message);
}

/** Why a command was not done; nothing when it was. */
export async function complaintOf(command: Promise<unknown>): Promise<string | null> {
  try {
    await command;
    return null;
  } catch (error) {
    if (!(error instanceof ApiFault)) throw error;
    return error.message;
  }
}

async function tryPrompt(entry: PromptEntry, signal: AbortSignal): Promise<TryOutcome> {
  const { session, text } = entry;
  const outcome = await outcomeOf(() =>
    session === null ? begin(entry, signal) : prompt(entry, session, signal),
  );
  if (outcome.kind === "accepted") drafts.accepted(session, text);
  return outcome;
}

async function outcomeOf(request: () => Promise<void>): Promise<TryOutcome> {
  try {
    await request();
    return { kind: "accepted" };
  } catch (error) {
    if (error instanceof DOMException) return { kind: "again", code: "upstream_unavailable" };
    if (!(error instanceof ApiFault)) throw error;
    const { code, message, again, afterMs: after_ms, ours } = error;
    if (code === "unauthorized" && ours) signOut(true);
    return again ? { kind: "again", code, message, after_ms } : { kind: "refused", code, message };
  }
}

/** What an entry says, as blocks. */
export function contentOf({ text, blocks }: PromptEntry): PromptBlock[] {
  return text === "" ? [...blocks] : [{ type: "text", text }, ...blocks];
}

async function prompt(entry: PromptEntry, session: string, signal: AbortSignal): Promise<void> {
  const { key, turn, when = "auto" } = entry;
  const content = contentOf(entry);
  if (turn) await call("resend", { path: { session, turn }, key, body: { content }, signal });
  else await call("send_prompt", { path: { session }, key, body: { content, when }, signal });
}

/** Makes the session with its first prompt, and goes there unless the reader went elsewhere. */
async function begin(first: PromptEntry, signal: AbortSignal): Promise<void> {
  const { key, text } = first;
  const body = { ...first.wish, prompt: contentOf(first), key };
  const made = await call("create_session", { key, body, signal });
  putSession(made);
  begun.add(made.id);
  // The folder is kept: the next session is likely about the same things.
  wish.value = { cwd: first.wish.cwd ?? null };
  // From here on the entry belongs to the session: it is shown there until the log holds it.
  drafts.accepted(null, text);
  const entry = find(key);
  if (entry) put({ ...entry, session: made.id });
  if (route.peek().page === "new") go({ page: "chat", session: made.id }, true);
}
