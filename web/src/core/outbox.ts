/**
 * A command on its way: tries, waits and an honest state, as pure functions (C4.9).
 *
 * The twin of the Python client's `outbox`, held by the cases of `packages/protocol/vectors/outbox`.
 * While `doing` is `try`, the request of number `attempt` is under way and its end goes to
 * `afterTry`; whenever `wake_ms` is reached, `tick` is called.
 */

import type { Fault } from "../protocol/types.gen.ts";

/** How far a command has come; `unknown` when no answer came: it may have arrived. */
export type Delivery = "sending" | "accepted" | "queued" | "delivered" | "refused" | "unknown";

/** One command under its key. */
export interface Entry {
  /** Its `Idempotency-Key`, the same for all tries. */
  readonly key: string;
  /** Milliseconds for all tries together. */
  readonly life_ms: number;
  readonly state: Delivery;
  /** `try` while a request is under way, `pause` before the next one. */
  readonly doing: "nothing" | "try" | "pause";
  /** The number of the newest try. */
  readonly attempt: number;
  /** Tries in a row without an answer. */
  readonly failures: number;
  /** When it was sent first, or last asked for anew. */
  readonly begun_ms: number;
  /** When `tick` is due; nothing for never. */
  readonly wake_ms: number | null;
  /** The fault code of the last try, when it failed, and why it did. */
  readonly code: string | null;
  readonly message: string;
}

/** What came of one try. */
export interface TryOutcome {
  readonly kind: "accepted" | "refused" | "again";
  readonly code?: string | null;
  readonly message?: string;
  /** How long the server asks to wait. */
  readonly after_ms?: number;
}

/** Nothing is sent later than this without being asked for. */
export const LIFE_MS = 120_000;
/** A last try begins so long before the end: enough for one answer of a near server. */
const LAST_TRY_MS = 500;
const FIRST_WAIT_MS = 1_000;
const MOST_WAIT_MS = 8_000;

/** A command that was never sent. */
export function makeEntry(key: string): Entry {
  return {
    key,
    life_ms: LIFE_MS,
    state: "sending",
    doing: "nothing",
    attempt: 0,
    failures: 0,
    begun_ms: 0,
    wake_ms: null,
    code: null,
    message: "",
  };
}

/** Sends it: for the first time, again after it came to nothing, or now instead of later. */
export function send<E extends Entry>(entry: E, nowMs: number): E {
  if (entry.doing === "pause") return tryOnce(entry);
  if (entry.doing === "try" || isKnown(entry)) return entry;
  const fresh = {
    state: "sending",
    failures: 0,
    begun_ms: nowMs,
    code: null,
    message: "",
  } as const;
  return tryOnce({ ...entry, ...fresh });
}

/**
 * Takes in what came of a try.
 *
 * An acknowledgement counts whenever it comes, for all tries are the same command; any other
 * outcome counts for the newest try alone. The last try begins half a second before the end,
 * unless the server asks to wait for longer.
 */
export function afterTry<E extends Entry>(
  entry: E,
  attempt: number,
  outcome: TryOutcome,
  nowMs: number,
): E {
  if (outcome.kind === "accepted") return { ...end(entry, "accepted"), code: null, message: "" };
  if (entry.doing !== "try" || attempt !== entry.attempt) return entry;
  const { code = null, message = "", after_ms = 0 } = outcome;
  if (outcome.kind === "refused") return end({ ...entry, code, message }, "refused");
  const failures = entry.failures + 1;
  const failed = { ...entry, code, message, failures };
  const waitMs = Math.min(FIRST_WAIT_MS * 2 ** (failures - 1), MOST_WAIT_MS);
  const lastMs = deadlineMs(entry) - LAST_TRY_MS;
  const wake_ms = Math.max(Math.min(nowMs + waitMs, lastMs), nowMs + after_ms);
  if (nowMs >= lastMs || wake_ms >= deadlineMs(entry)) return end(failed, "unknown");
  return { ...failed, doing: "pause", wake_ms };
}

/** Takes in that the clock has reached `wake_ms`; an early or late call does no harm. */
export function tick<E extends Entry>(entry: E, nowMs: number): E {
  if (entry.wake_ms === null || nowMs < entry.wake_ms) return entry;
  // Also after a sleep of the whole device: nothing old is sent by itself.
  return nowMs >= deadlineMs(entry) ? end(entry, "unknown") : tryOnce(entry);
}

/** Takes in what the log shows: it is right, whatever the tries came to. */
export function settle<E extends Entry>(
  entries: readonly E[],
  queued: ReadonlySet<string>,
  delivered: ReadonlySet<string>,
): readonly E[] {
  const settled = entries.map((entry) => settleOne(entry, queued, delivered));
  return settled.some((entry, at) => entry !== entries[at]) ? settled : entries;
}

/** Why it came to nothing; nothing while it has not. */
export function faultOf(entry: Entry): Fault | null {
  const { key, attempt, code, message, life_ms } = entry;
  const mine = { scope: "client.outbox", details: { key, attempts: attempt } };
  if (entry.state === "refused") return { code: code ?? "rejected", message, ...mine };
  if (entry.state !== "unknown") return null;
  return {
    code: code ?? "upstream_unavailable",
    message:
      `No answer came within ${Math.floor(life_ms / 1000)} s, so it may have arrived or not. ` +
      "Send it again, under its own key it counts once.",
    retry: "same_request",
    ...mine,
  };
}

function isKnown({ state }: Entry): boolean {
  return state === "accepted" || state === "queued" || state === "delivered";
}

function tryOnce<E extends Entry>(entry: E): E {
  return { ...entry, doing: "try", attempt: entry.attempt + 1, wake_ms: deadlineMs(entry) };
}

/** No more tries; what the log has shown stands above what a try came to. */
function end<E extends Entry>(entry: E, state: Delivery): E {
  const isShown = entry.state === "queued" || entry.state === "delivered";
  return { ...entry, doing: "nothing", wake_ms: null, state: isShown ? entry.state : state };
}

function settleOne<E extends Entry>(
  entry: E,
  queued: ReadonlySet<string>,
  delivered: ReadonlySet<string>,
): E {
  const { key, state } = entry;
  const shown = delivered.has(key) ? "delivered" : queued.has(key) ? "queued" : state;
  if (shown === state || state === "delivered") return entry;
  return { ...entry, state: shown, code: null, message: "" };
}

function deadlineMs(entry: Entry): number {
  return entry.begun_ms + entry.life_ms;
}
