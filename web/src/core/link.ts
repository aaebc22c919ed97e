/**
 * The connection to one session as one pure function: state and input in, state and effects out.
 *
 * The twin of the Python client's `link`: the same states, inputs and effects, held by the cases of
 * `packages/protocol/vectors/link`. It knows no clock, no network and no chance: inputs say when
 * they happen and bring a random number along, and the driver does what the effects say.
 */

/** What people are shown (C4.1). */
export type Phase =
  | "idle"
  | "connecting"
  | "live"
  | "retrying"
  | "recovering"
  | "auth_expired"
  | "failed"
  | "closed";

/** Why a connection has given up. */
export type Failure =
  | "unauthorized"
  | "gone"
  | "rejected"
  | "contract_unavailable"
  | "version_mismatch";

/** The numbers of C4, in milliseconds where the name says so. */
export interface LinkPolicy {
  /** Wait before the second retry in a row; the first comes at once. Doubles from there. */
  readonly first_ms: number;
  /** Where the doubling stops. */
  readonly most_ms: number;
  /** Failures in a row after which `long_ms` is waited. */
  readonly patience: number;
  /** The longest wait; also the cap of what a server may ask for. */
  readonly long_ms: number;
  /** A stream without a byte for this long counts as cut. */
  readonly silence_ms: number;
  /** Time for a stream's head to come. */
  readonly connect_ms: number;
  /** Time for the view to come. */
  readonly request_ms: number;
  /** Back within this time after `stop`, the cursor alone is enough. */
  readonly warm_ms: number;
  /** A connection that held this long, or brought something new, was none in a row of failures. */
  readonly steady_ms: number;
  /** Views in a row that may be fetched anew without a wait. */
  readonly views_at_once: number;
  /** Waits before the credential is asked for again after a 401. */
  readonly auth_ms: readonly number[];
}

export const LINK_POLICY: LinkPolicy = {
  first_ms: 1_000,
  most_ms: 30_000,
  patience: 8,
  long_ms: 300_000,
  silence_ms: 45_000,
  connect_ms: 10_000,
  request_ms: 30_000,
  warm_ms: 60_000,
  steady_ms: 5_000,
  views_at_once: 3,
  auth_ms: [0, 1_000],
};

/** All that the machine knows. */
export interface LinkState {
  readonly phase: Phase;
  /** `pause` before a request, `view` while it is fetched, `stream` while it is opened or read. */
  readonly doing: "nothing" | "pause" | "view" | "stream";
  /** The number of the newest request; inputs of an older one are passed over. */
  readonly attempt: number;
  /** The lineage of the server's log, once known. */
  readonly log: string | null;
  /** The last stored event that was handled; nothing before a first view. */
  readonly seq: number | null;
  /** Whether the view must be fetched before the stream is opened. */
  readonly stale: boolean;
  /** Whether the session's last event was seen: the stream's end is then the end. */
  readonly ends: boolean;
  /** Failed connections in a row. */
  readonly failures: number;
  /** How often in a row the view had to be fetched anew. */
  readonly losses: number;
  /** 401 answers since the last hello. */
  readonly refusals: number;
  /** Whether this connection brought a new stored event. */
  readonly moved: boolean;
  /** When this connection's hello came. */
  readonly live_ms: number | null;
  /** The server's own wish for a wait, the floor after the first retry. */
  readonly retry_ms: number;
  /** The wait of a close that the server announced. */
  readonly reset_ms: number | null;
  /** When a `tick` is due; nothing for never. */
  readonly wake_ms: number | null;
  /** When `stop` came. */
  readonly stopped_ms: number | null;
  readonly failed: Failure | null;
  readonly policy: LinkPolicy;
}

/** A link that was never started. */
export const IDLE: LinkState = {
  phase: "idle",
  doing: "nothing",
  attempt: 0,
  log: null,
  seq: null,
  stale: false,
  ends: false,
  failures: 0,
  losses: 0,
  refusals: 0,
  moved: false,
  live_ms: null,
  retry_ms: 0,
  reset_ms: null,
  wake_ms: null,
  stopped_ms: null,
  failed: null,
  policy: LINK_POLICY,
};

/** What happens. What a request leads to carries the number of its attempt. */
export type Happening =
  | { type: "start"; turn_running: boolean }
  | { type: "stop" | "close" | "retry_now" | "tick" }
  | { type: "heard" | "gap" | "lost" | "cut"; attempt: number }
  | { type: "hello"; attempt: number; log: string }
  | { type: "stored"; attempt: number; seq: number; ends: boolean }
  | { type: "retry" | "reset"; attempt: number; retry_ms: number }
  | { type: "loaded"; attempt: number; log: string; seq: number; ends: boolean }
  | {
      type: "refused";
      attempt: number;
      status: number;
      /** Whether the contract's header was on it: a proxy's page has none. */
      contract: boolean;
      retry_after_ms: number;
    }
  | { type: "misfit"; attempt: number; reason: string };

/** When it happens, on a clock that never goes back, and a random number from 0 up to 1. */
export interface Moment {
  now_ms: number;
  random: number;
}

export type LinkInput = Happening & Moment;

/** What the driver must do. Without `deliver` a stored event is a double. */
export type LinkEffect =
  | { type: "connect"; attempt: number; after: number }
  | { type: "load_view" | "drop"; attempt: number }
  | { type: "deliver" | "adopt" }
  | { type: "give_up"; reason: Failure; attempts: number };

/** A state and what follows from it. */
export type Step = readonly [LinkState, readonly LinkEffect[]];

type Answer = Extract<LinkInput, { attempt: number }>;

/** What may come of the view as well as of the stream. */
const ENDINGS: ReadonlySet<string> = new Set(["cut", "refused", "misfit"]);

/** The statuses below 500 that time can heal. */
const TRANSIENT: ReadonlySet<number> = new Set([408, 425, 429]);

/** What the link is after an input, and what is to be done. Pure; never throws. */
export function step(state: LinkState, given: LinkInput): Step {
  if (state.phase === "closed") return [state, []];
  if ("attempt" in given) {
    return isWaitedFor(state, given) ? takeAnswer(state, given) : [state, []];
  }
  switch (given.type) {
    case "start":
      return start(state, given);
    case "stop":
      return stop(state, given);
    case "close":
      return [rest({ ...state, phase: "closed" }), drop(state)];
    case "retry_now":
      return state.doing === "pause" ? go(state, given.now_ms) : [state, []];
    case "tick":
      return tick(state, given);
  }
}

function isWaitedFor({ attempt, doing }: LinkState, given: Answer): boolean {
  if (given.attempt !== attempt) return false;
  if (doing === "view") return given.type === "loaded" || ENDINGS.has(given.type);
  return doing === "stream" && given.type !== "loaded";
}

function takeAnswer(state: LinkState, given: Answer): Step {
  const { policy } = state;
  switch (given.type) {
    case "heard":
      return [{ ...state, wake_ms: given.now_ms + policy.silence_ms }, []];
    case "hello":
      return takeHello(state, given);
    case "stored":
      return takeStored(state, given);
    case "gap":
    case "lost":
      return recover(state, given);
    case "retry":
      return [{ ...state, retry_ms: Math.min(given.retry_ms, policy.long_ms) }, []];
    case "reset":
      return [{ ...state, reset_ms: Math.min(given.retry_ms, policy.long_ms) }, []];
    case "loaded":
      return takeView(state, given);
    case "cut":
      return takeCut(state, given);
    case "refused":
      return takeRefusal(state, given);
    case "misfit": {
      const isOther = given.reason === "version_mismatch";
      return giveUp(state, isOther ? "version_mismatch" : "contract_unavailable");
    }
  }
}

type Of<Type extends LinkInput["type"]> = Extract<LinkInput, { type: Type }>;

function start(state: LinkState, given: Of<"start">): Step {
  if (state.phase !== "idle" && state.phase !== "failed") return [state, []];
  const { stopped_ms, policy } = state;
  const isLate = stopped_ms !== null && given.now_ms - stopped_ms > policy.warm_ms;
  const begun: LinkState = {
    ...state,
    phase: "connecting",
    stale: state.stale || (isLate && given.turn_running),
    failures: 0,
    losses: 0,
    refusals: 0,
    stopped_ms: null,
    failed: null,
  };
  return go(begun, given.now_ms);
}

function stop(state: LinkState, given: Moment): Step {
  if (state.phase === "idle" || state.phase === "failed") return [state, []];
  return [rest({ ...state, phase: "idle", stopped_ms: given.now_ms }), drop(state)];
}

function tick(state: LinkState, given: Moment): Step {
  if (state.wake_ms === null || given.now_ms < state.wake_ms) return [state, []];
  if (state.doing === "pause") return go(state, given.now_ms);
  const [next, effects] = takeCut(state, given);
  return [next, [...drop(state), ...effects]];
}

function takeHello(state: LinkState, given: Of<"hello">): Step {
  if (state.log !== null && state.log !== given.log) return recover(state, given);
  return [{ ...state, phase: "live", log: given.log, live_ms: given.now_ms, refusals: 0 }, []];
}

function takeStored(state: LinkState, { seq, ends, now_ms, random }: Of<"stored">): Step {
  const last = state.seq ?? 0;
  if (seq <= last) return [state, []];
  if (seq > last + 1) return recover(state, { now_ms, random });
  return [{ ...state, seq, moved: true, ends: state.ends || ends }, [{ type: "deliver" }]];
}

/** The view must be fetched anew: at once, unless it was so too often. */
function recover(state: LinkState, given: Moment): Step {
  const { policy } = state;
  const losses = hasHeld(state, given.now_ms) ? 1 : state.losses + 1;
  const leastMs = backOff(policy, losses - policy.views_at_once + 1, 0, given.random);
  const lost: LinkState = { ...state, phase: "recovering", stale: true, losses };
  const [next, effects] = again(lost, given, leastMs);
  return [next, [...drop(state), ...effects]];
}

function takeView(state: LinkState, { log, seq, ends, now_ms }: Of<"loaded">): Step {
  const [next, effects] = go({ ...state, log, seq, ends, stale: false }, now_ms);
  return [next, [{ type: "adopt" }, ...effects]];
}

function takeCut(state: LinkState, given: Moment): Step {
  if (state.ends) return [rest({ ...state, phase: "closed" }), []];
  const next: LinkState = { ...state, phase: "retrying" };
  const { reset_ms } = state;
  if (reset_ms !== null) return pause({ ...next, failures: 0 }, given.now_ms, reset_ms);
  return again(next, given);
}

function takeRefusal(state: LinkState, given: Of<"refused">): Step {
  const { status, contract } = given;
  if (contract && status === 401) return takeUnauthorized(state, given.now_ms);
  if (contract && (status === 404 || status === 410)) return giveUp(state, "gone");
  if (contract && status < 500 && !TRANSIENT.has(status)) return giveUp(state, "rejected");
  return again({ ...state, phase: "retrying" }, given, given.retry_after_ms);
}

/** The credential may have been renewed meanwhile: a few tries more, then it is for a person. */
function takeUnauthorized(state: LinkState, nowMs: number): Step {
  const waits = state.policy.auth_ms;
  const waitMs = waits[state.refusals];
  if (waitMs === undefined) return giveUp(state, "unauthorized", waits.length);
  return pause({ ...state, phase: "auth_expired", refusals: state.refusals + 1 }, nowMs, waitMs);
}

/** The next request: the view when there is none to go on from, else the stream. */
function go(state: LinkState, nowMs: number): Step {
  const { seq, policy } = state;
  const attempt = state.attempt + 1;
  const next: LinkState = { ...state, attempt, moved: false, live_ms: null, reset_ms: null };
  if (seq === null || state.stale) {
    const wake_ms = nowMs + policy.request_ms;
    return [{ ...next, doing: "view", wake_ms }, [{ type: "load_view", attempt }]];
  }
  const wake_ms = nowMs + policy.connect_ms;
  return [{ ...next, doing: "stream", wake_ms }, [{ type: "connect", attempt, after: seq }]];
}

/** Counts a failure and waits as C4.5 says, `leastMs` at least. */
function again(state: LinkState, given: Moment, leastMs = 0): Step {
  const { policy } = state;
  const isFirst = state.moved || hasHeld(state, given.now_ms);
  const failures = isFirst ? 1 : state.failures + 1;
  const backOffMs = backOff(policy, failures, state.retry_ms, given.random);
  const waitMs = Math.max(backOffMs, Math.min(leastMs, policy.long_ms));
  return pause({ ...state, failures }, given.now_ms, waitMs);
}

function hasHeld({ live_ms, policy }: LinkState, nowMs: number): boolean {
  return live_ms !== null && nowMs - live_ms >= policy.steady_ms;
}

function backOff(policy: LinkPolicy, failures: number, floorMs: number, random: number): number {
  if (failures <= 1) return 0;
  if (failures >= policy.patience) return Math.max(policy.long_ms, floorMs);
  const mostMs = Math.min(policy.most_ms, policy.first_ms * 2 ** (failures - 2));
  return Math.max(Math.floor(random * mostMs), floorMs);
}

function pause(state: LinkState, nowMs: number, waitMs: number): Step {
  if (waitMs <= 0) return go(state, nowMs);
  return [{ ...rest(state), doing: "pause", wake_ms: nowMs + waitMs }, []];
}

function giveUp(state: LinkState, reason: Failure, attempts = 0): Step {
  const failed = rest({ ...state, phase: "failed", failed: reason });
  return [failed, [{ type: "give_up", reason, attempts }]];
}

function rest(state: LinkState): LinkState {
  return {
    ...state,
    doing: "nothing",
    moved: false,
    live_ms: null,
    reset_ms: null,
    wake_ms: null,
  };
}

function drop({ doing, attempt }: LinkState): readonly LinkEffect[] {
  return doing === "view" || doing === "stream" ? [{ type: "drop", attempt }] : [];
}
