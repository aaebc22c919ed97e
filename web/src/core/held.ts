/** Whether something between the server and this page collects the stream before it hands it on. */

import type { Incoming } from "../protocol/frames.ts";
import type { Envelope } from "../protocol/types.gen.ts";

/** Events that are so far apart, in milliseconds, were not sent in one go. */
export const HELD_MS = 3_000;
/** What comes within this time came in one go: a large lump is read in several pieces. */
export const LUMP_MS = 250;

/** What was noticed so far. */
export interface Lumps {
  /** The last event of the replay: what was before the page listened comes in one go by right. */
  readonly lastSeq: number;
  /** The turn whose beginning came after the replay. */
  readonly turn: string | null;
  /** When it began, by the server's clock. */
  readonly begunMs: number;
  /** When that came, by the page's clock. */
  readonly cameMs: number;
  /** Whether the last turn that was long enough came as one lump. */
  readonly held: boolean;
}

/** Nothing was noticed yet. */
export const NO_LUMPS: Lumps = { lastSeq: 0, turn: null, begunMs: 0, cameMs: 0, held: false };

const ENDS: ReadonlySet<string> = new Set(["turn_completed", "turn_failed", "turn_cancelled"]);

/**
 * What is known after these frames, which came at `cameMs`.
 *
 * A page that slept reads late by itself: a turn counts when the page was awake for as long as the
 * turn took, `awakeMs` being for how long it is by now. A turn that comes piece by piece takes the
 * reproach back: a radio hole looks the same once.
 */
export function noteLumps(
  before: Lumps,
  frames: readonly Incoming[],
  cameMs: number,
  awakeMs: number,
): Lumps {
  let known = before;
  for (const frame of frames) {
    if (frame.kind === "hello") known = { ...known, lastSeq: frame.value.last_seq, turn: null };
    else if (frame.kind === "envelope") known = note(known, frame.value, cameMs, awakeMs);
  }
  return known;
}

function note(known: Lumps, envelope: Envelope, cameMs: number, awakeMs: number): Lumps {
  const { seq, turn, event } = envelope;
  const atMs = Date.parse(envelope.time);
  if (!turn) return known;
  if (event.type === "turn_started") {
    return (seq ?? 0) > known.lastSeq ? { ...known, turn, begunMs: atMs, cameMs } : known;
  }
  if (turn !== known.turn || !ENDS.has(event.type)) return known;
  const tookMs = atMs - known.begunMs;
  const counts = tookMs > HELD_MS && awakeMs >= tookMs;
  const held = counts ? cameMs - known.cameMs <= LUMP_MS : known.held;
  return { ...known, turn: null, held };
}
