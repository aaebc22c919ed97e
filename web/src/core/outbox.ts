/** Prompts on their way: each under one key until the server has it (C4.9). */

/** How far a prompt has come. */
export type Delivery = "sending" | "accepted" | "refused" | "unknown";

/** One prompt on its way. */
export interface OutboxEntry {
  readonly key: string;
  /** Where it goes; `null` for a session that it begins. */
  readonly session: string | null;
  readonly text: string;
  readonly state: Delivery;
  /** Why it was refused, or why nothing is known. */
  readonly message: string;
  /** Milliseconds of the clock at its first try. */
  readonly begun: number;
  readonly tries: number;
}

/** What came of one try. */
export type Outcome =
  | { kind: "accepted" }
  | { kind: "refused"; message: string }
  | { kind: "again"; message: string; afterMs: number };

/** Nothing is sent later than this without being asked for. */
export const OUTBOX_LIFE_MS = 120_000;
const FIRST_WAIT_MS = 1_000;
const LONGEST_WAIT_MS = 8_000;

/** A prompt that is sent now. */
export function makeEntry(
  key: string,
  session: string | null,
  text: string,
  now: number,
): OutboxEntry {
  return { key, session, text, state: "sending", message: "", begun: now, tries: 1 };
}

/** The same prompt, sent once more under the same key. */
export function retryEntry(entry: OutboxEntry, now: number): OutboxEntry {
  return { ...entry, state: "sending", message: "", begun: now, tries: entry.tries + 1 };
}

/** The entry after a try, and the milliseconds until the next one; nothing when there is none. */
export function afterTry(
  entry: OutboxEntry,
  outcome: Outcome,
  now: number,
): [entry: OutboxEntry, waitMs: number | undefined] {
  if (outcome.kind === "accepted") return [{ ...entry, state: "accepted", message: "" }, undefined];
  if (outcome.kind === "refused") {
    return [{ ...entry, state: "refused", message: outcome.message }, undefined];
  }
  const back = Math.min(FIRST_WAIT_MS * 2 ** (entry.tries - 1), LONGEST_WAIT_MS);
  const waitMs = Math.max(back, outcome.afterMs);
  const { message } = outcome;
  if (now + waitMs - entry.begun > OUTBOX_LIFE_MS) {
    return [{ ...entry, state: "unknown", message }, undefined];
  }
  return [{ ...entry, message, tries: entry.tries + 1 }, waitMs];
}

/** The entries that the log does not hold yet: a key that came back is a message, no entry. */
export function withoutSeen(
  entries: readonly OutboxEntry[],
  seen: ReadonlySet<string>,
): readonly OutboxEntry[] {
  const left = entries.filter((entry) => !seen.has(entry.key));
  return left.length === entries.length ? entries : left;
}
