// rules: W22

import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { HELD_MS, LUMP_MS, type Lumps, NO_LUMPS, noteLumps } from "../src/core/held.ts";
import { awakeMs, startPulse } from "../src/platform/pulse.ts";
import { decodeFrame, type Incoming } from "../src/protocol/frames.ts";

const BEGUN = Date.parse("2026-01-31T09:00:00.000Z");
/** The page was awake for longer than any turn here. */
const LONG_MS = 600_000;

function frame(seq: number | null, seconds: number, event: object, turn = "trn_1"): Incoming {
  const time = new Date(BEGUN + seconds * 1_000).toISOString();
  const made = decodeFrame("", JSON.stringify({ seq, session: "ses_a", turn, time, event }));
  expect(made.kind).toBe("envelope");
  return made;
}

const hello = (last_seq: number): Incoming =>
  decodeFrame(
    "hello",
    JSON.stringify({
      log: "log_a",
      last_seq,
      now: "2026-01-31T09:00:00.000Z",
      server_version: "1",
    }),
  );
const started = (seq: number, seconds: number, turn?: string): Incoming =>
  frame(seq, seconds, { type: "turn_started", prompt: "prm_1", model: "m", limits: {} }, turn);
const word = (seconds: number): Incoming =>
  frame(null, seconds, { type: "text_delta", message: "msg_1", block: 0, at: 0, text: "w" });
const completed = (seq: number, seconds: number, turn?: string): Incoming =>
  frame(seq, seconds, { type: "turn_completed", stop_reason: "end_turn", usage: {} }, turn);
const failed = (seq: number, seconds: number): Incoming =>
  frame(seq, seconds, { type: "turn_failed", fault: { code: "c", message: "m" }, usage: {} });
const cancelled = (seq: number, seconds: number): Incoming =>
  frame(seq, seconds, { type: "turn_cancelled", by: "owner", reason: "user", usage: {} });

type Read = readonly [cameMs: number, frames: readonly Incoming[], awakeMs?: number];

const noteAll = (reads: readonly Read[], from: Lumps = NO_LUMPS): Lumps =>
  reads.reduce(
    (lumps, [cameMs, frames, awake = LONG_MS]) => noteLumps(lumps, frames, cameMs, awake),
    from,
  );

const turn = (seq: number, seconds: number): Incoming[] => [
  started(seq, 0),
  word(seconds / 2),
  completed(seq + 1, seconds),
];

test.each<[what: string, held: boolean, reads: readonly Read[]]>([
  [
    "a turn that comes as it is made",
    false,
    [
      [0, [hello(2)]],
      [10, [started(3, 0)]],
      [3_000, [word(3)]],
      [6_000, [completed(4, 6)]],
    ],
  ],
  [
    "a turn in one lump",
    true,
    [
      [0, [hello(2)]],
      [6_000, turn(3, 6)],
    ],
  ],
  [
    "a turn that failed in one lump",
    true,
    [
      [0, [hello(2)]],
      [6_000, [started(3, 0), failed(4, 6)]],
    ],
  ],
  [
    "a turn that was stopped, in one lump",
    true,
    [
      [0, [hello(2)]],
      [6_000, [started(3, 0), cancelled(4, 6)]],
    ],
  ],
  [
    "a lump that was read in pieces",
    true,
    [
      [0, [hello(2)]],
      [6_000, [started(3, 0), word(1)]],
      [6_000 + LUMP_MS, [completed(4, 6)]],
    ],
  ],
  [
    "two pieces that came apart",
    false,
    [
      [0, [hello(2)]],
      [6_000, [started(3, 0)]],
      [6_001 + LUMP_MS, [completed(4, 6)]],
    ],
  ],
  [
    "a short turn",
    false,
    [
      [0, [hello(2)]],
      [3_000, turn(3, HELD_MS / 1_000)],
    ],
  ],
  [
    "a turn just long enough",
    true,
    [
      [0, [hello(2)]],
      [3_000, turn(3, HELD_MS / 1_000 + 0.001)],
    ],
  ],
  ["a replay", false, [[0, [hello(4), ...turn(3, 6)]]]],
  ["a turn that a replay began", false, [[0, [hello(3), ...turn(3, 6)]]]],
  ["the lump of a proxy that held the replay back as well", true, [[0, [hello(2), ...turn(3, 6)]]]],
  [
    "a turn over a new connection",
    false,
    [
      [0, [hello(2)]],
      [10, [started(3, 0)]],
      [20, [hello(4), completed(4, 6)]],
    ],
  ],
  [
    "what a page reads that slept",
    false,
    [
      [0, [hello(2)]],
      [60_000, turn(3, 6), 200],
    ],
  ],
  [
    "what a page reads that slept for a part of it",
    false,
    [
      [0, [hello(2)]],
      [60_000, turn(3, 6), 5_999],
    ],
  ],
  [
    "the end of another turn",
    false,
    [
      [0, [hello(2)]],
      [6_000, [started(3, 0), completed(4, 6, "trn_0")]],
    ],
  ],
  [
    "an end without a beginning",
    false,
    [
      [0, [hello(2)]],
      [6_000, [completed(3, 6)]],
    ],
  ],
])("%s: held %s", (_, held, reads) => {
  expect(noteAll(reads).held).toBe(held);
});

test("it holds on until a turn that is long enough comes in pieces", () => {
  const lump = noteAll([
    [0, [hello(2)]],
    [6_000, turn(3, 6)],
  ]);
  const short = noteAll([[10_000, turn(5, 1)]], lump);
  expect(short.held).toBe(true);
  const asleep = noteAll([[90_000, turn(7, 9), 100]], short);
  expect(asleep.held).toBe(true);
  const spread = noteAll(
    [
      [91_000, [started(9, 0)]],
      [97_000, [completed(10, 6)]],
    ],
    asleep,
  );
  expect(spread.held).toBe(false);
});

let stop: () => void;
let seen: DocumentVisibilityState = "visible";

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "Date", "performance"] });
  vi.spyOn(document, "visibilityState", "get").mockImplementation(() => seen);
  seen = "visible";
  stop = startPulse();
});

afterEach(() => {
  stop();
  vi.restoreAllMocks();
  vi.useRealTimers();
});

test("a page is awake while it is seen and its timers ring", () => {
  vi.advanceTimersByTime(20_000);
  expect(awakeMs()).toBeGreaterThanOrEqual(20_000);
});

test("a page that was hidden, or stood still, has only just woken", () => {
  vi.advanceTimersByTime(20_000);
  seen = "hidden";
  vi.advanceTimersByTime(2_000);
  seen = "visible";
  vi.advanceTimersByTime(1_000);
  expect(awakeMs()).toBeLessThanOrEqual(2_000);
  vi.advanceTimersByTime(20_000);
  document.dispatchEvent(new Event("visibilitychange"));
  expect(awakeMs()).toBe(0);

  vi.advanceTimersByTime(20_000);
  vi.setSystemTime(Date.now() + 60_000); // no timer rings while the device sleeps
  expect(awakeMs()).toBe(0);
});
