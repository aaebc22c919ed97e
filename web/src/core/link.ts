/**
 * The connection to one session as one pure function: state and input in, state and effects out.
 *
 * It knows no clock and no network: the driver does what the effects say and reports what came of it.
 */

/** Where the connection stands. */
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
export type Failure = "unauthorized" | "gone" | "contract_unavailable" | "version_mismatch";

/** The connection, all of it. */
export interface LinkState {
  readonly phase: Phase;
  readonly failure: Failure | null;
  /** Counts what was asked of the network: reports of an earlier request are passed over. */
  readonly attempt: number;
  /** The log's lineage; nothing before the first answer. */
  readonly log: string | null;
  /** The last stored event that was applied; nothing when the view must be fetched first. */
  readonly cursor: number | null;
  /** Failures in a row. */
  readonly failures: number;
  /** What the server asked to wait for, in milliseconds. */
  readonly floorMs: number;
  /** How often a credential was refused on this connection. */
  readonly refused: number;
  /** How often the view was fetched anew without an event applied since. */
  readonly losses: number;
}

/** How a request ended badly. `network` is everything without an answer. */
export type Cut =
  | { kind: "network" }
  | { kind: "ended" }
  | { kind: "status"; status: number; contract: string | null; retryAfterMs: number }
  | { kind: "foreign"; failure: "contract_unavailable" | "version_mismatch" };

/** What happened. Those of a request carry the attempt they belong to. */
export type LinkInput =
  | { type: "start"; fresh?: boolean }
  | { type: "stop" }
  | { type: "close" }
  | { type: "retry_now" }
  | { type: "head"; attempt: number }
  | { type: "bytes"; attempt: number; retryMs?: number }
  | { type: "hello"; attempt: number; log: string }
  | { type: "applied"; attempt: number; seq: number }
  | { type: "lost"; attempt: number }
  | { type: "reset"; attempt: number; retryMs: number }
  | { type: "view"; attempt: number; log: string; seq: number }
  | { type: "cut"; attempt: number; cut: Cut }
  | { type: "timer"; timer: Timer; attempt: number };

/** The timers a driver keeps: one of each name. */
export type Timer = "answer" | "silence" | "retry";

/** What the driver must do. */
export type LinkEffect =
  | { type: "follow"; attempt: number; after: number }
  | { type: "fetch_view"; attempt: number }
  | { type: "abort" }
  | { type: "arm"; timer: Timer; ms: number; attempt: number }
  | { type: "disarm"; timer: Timer };

/** A state and what follows from it. */
export type Step = readonly [LinkState, readonly LinkEffect[]];

/** The times of the contract (C4.5), in milliseconds; a test makes them small. */
export interface LinkTimes {
  answerMs: number;
  viewMs: number;
  silenceMs: number;
  firstBackOffMs: number;
  longestBackOffMs: number;
  restAfter: number;
  restMs: number;
  credentialWaitsMs: readonly number[];
  /** Views fetched in a row without waiting; a server that always loses something is not hammered. */
  lossesAtOnce: number;
}

export const LINK_TIMES: LinkTimes = {
  answerMs: 10_000,
  viewMs: 30_000,
  silenceMs: 45_000,
  firstBackOffMs: 1_000,
  longestBackOffMs: 30_000,
  restAfter: 8,
  restMs: 300_000,
  credentialWaitsMs: [0, 1_000],
  lossesAtOnce: 3,
};

/** What a step needs from outside: a number from 0 up to 1, and the times. */
export interface LinkWorld {
  random: number;
  times: LinkTimes;
}

/** A link that was never started. */
export const IDLE: LinkState = {
  phase: "idle",
  failure: null,
  attempt: 0,
  log: null,
  cursor: null,
  failures: 0,
  floorMs: 0,
  refused: 0,
  losses: 0,
};

const QUIET: readonly LinkEffect[] = [
  { type: "abort" },
  { type: "disarm", timer: "answer" },
  { type: "disarm", timer: "silence" },
  { type: "disarm", timer: "retry" },
];

/** Asks again: for the events after the cursor, or for the view when there is none. */
function ask(state: LinkState, world: LinkWorld): Step {
  const attempt = state.attempt + 1;
  const { cursor } = state;
  const cold = cursor === null;
  const ms = cold ? world.times.viewMs : world.times.answerMs;
  return [
    { ...state, attempt, phase: cold ? "recovering" : "connecting", failure: null },
    [
      ...QUIET,
      cold ? { type: "fetch_view", attempt } : { type: "follow", attempt, after: cursor },
      { type: "arm", timer: "answer", ms, attempt },
    ],
  ];
}

function rest(state: LinkState, phase: Phase, failure: Failure | null = null): Step {
  return [{ ...state, phase, failure, attempt: state.attempt + 1 }, QUIET];
}

/** Waits before it asks again: the first time not at all, then longer and longer (C4.5). */
function backOff(state: LinkState, world: LinkWorld): Step {
  const { times, random } = world;
  const failures = state.failures + 1;
  let ms = 0;
  if (failures > times.restAfter) {
    ms = times.restMs;
  } else if (failures > 1) {
    const ceiling = Math.min(times.firstBackOffMs * 2 ** (failures - 2), times.longestBackOffMs);
    ms = Math.max(random * ceiling, state.floorMs);
  }
  return waitFor({ ...state, failures, phase: "retrying" }, ms);
}

function waitFor(state: LinkState, ms: number): Step {
  const attempt = state.attempt + 1;
  return [{ ...state, attempt }, [...QUIET, { type: "arm", timer: "retry", ms, attempt }]];
}

/** The credential may have been renewed by another tab: twice more, then it is for a person. */
function refuse(state: LinkState, world: LinkWorld): Step {
  const ms = world.times.credentialWaitsMs[state.refused];
  if (ms === undefined) return rest({ ...state, refused: 0 }, "failed", "unauthorized");
  return waitFor({ ...state, phase: "auth_expired", refused: state.refused + 1 }, ms);
}

function takeStatus(
  state: LinkState,
  cut: Extract<Cut, { kind: "status" }>,
  world: LinkWorld,
): Step {
  // A proxy's own error page says nothing about the session.
  if (cut.contract === null) return backOff(state, world);
  if (cut.status === 401) return refuse(state, world);
  if (cut.status === 404 || cut.status === 410) return rest(state, "failed", "gone");
  const [next, effects] = backOff(state, world);
  if (cut.retryAfterMs === 0) return [next, effects];
  return waitFor(next, cut.retryAfterMs);
}

function takeCut(state: LinkState, cut: Cut, world: LinkWorld): Step {
  if (cut.kind === "status") return takeStatus(state, cut, world);
  if (cut.kind === "foreign") return rest(state, "failed", cut.failure);
  return backOff(state, world);
}

/** Drops what was built and begins with the view. */
function recover(state: LinkState, world: LinkWorld): Step {
  const losses = state.losses + 1;
  const next: LinkState = { ...state, cursor: null, losses };
  const { firstBackOffMs, longestBackOffMs, lossesAtOnce } = world.times;
  if (losses <= lossesAtOnce) return ask(next, world);
  const ms = Math.min(firstBackOffMs * 2 ** (losses - lossesAtOnce - 1), longestBackOffMs);
  return waitFor({ ...next, phase: "retrying" }, ms);
}

const RUNNING: ReadonlySet<Phase> = new Set([
  "connecting",
  "live",
  "retrying",
  "recovering",
  "auth_expired",
]);

/** What a person or the page's life asks for. */
function command(state: LinkState, input: LinkInput, world: LinkWorld): Step | undefined {
  switch (input.type) {
    case "start": {
      if (RUNNING.has(state.phase) && !input.fresh) return [state, []];
      const begun = { ...state, failures: 0, refused: 0, losses: 0 };
      return input.fresh ? recover(begun, world) : ask(begun, world);
    }
    case "stop":
      return RUNNING.has(state.phase) ? rest(state, "idle") : [state, []];
    case "close":
      return rest(state, "closed");
    case "retry_now":
      return state.phase === "retrying" ? ask(state, world) : [state, []];
    default:
      return undefined;
  }
}

function takeHello(state: LinkState, log: string, world: LinkWorld): Step {
  if (state.log !== null && state.log !== log) return recover({ ...state, log }, world);
  return [{ ...state, log, phase: "live", failures: 0, refused: 0 }, []];
}

/** The state after one more input, and what must be done about it. */
export function stepLink(state: LinkState, input: LinkInput, world: LinkWorld): Step {
  if (state.phase === "closed") return [state, []];
  const commanded = command(state, input, world);
  if (commanded) return commanded;
  if (!("attempt" in input) || input.attempt !== state.attempt) return [state, []];
  const { attempt } = state;
  switch (input.type) {
    case "head":
    case "bytes":
      return [
        input.type === "bytes" && input.retryMs !== undefined
          ? { ...state, floorMs: input.retryMs }
          : state,
        [
          { type: "disarm", timer: "answer" },
          { type: "arm", timer: "silence", ms: world.times.silenceMs, attempt },
        ],
      ];
    case "hello":
      return takeHello(state, input.log, world);
    case "applied":
      return [{ ...state, cursor: input.seq, losses: 0 }, []];
    case "lost":
      return recover(state, world);
    case "reset":
      return waitFor({ ...state, phase: "retrying" }, input.retryMs);
    case "view":
      return ask({ ...state, log: input.log, cursor: input.seq, refused: 0 }, world);
    case "cut":
      return takeCut(state, input.cut, world);
    case "timer":
      return input.timer === "retry" ? ask(state, world) : backOff(state, world);
    default:
      return [state, []];
  }
}
