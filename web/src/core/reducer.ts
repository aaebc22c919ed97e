/**
 * The view of a session as a pure function of its frames.
 *
 * The twin of the protocol package's reducer: both must pass the same golden vectors.
 */

import type { Incoming } from "../protocol/frames.ts";
import type { Envelope, Event, Partial, SessionView } from "../protocol/types.gen.ts";
import { MESSAGE_FOLDS, type PieceDelta, takePartialMessage, takePiece } from "./fold_message.ts";
import { SESSION_FOLDS } from "./fold_session.ts";
import { TOOL_FOLDS, takePartialCall } from "./fold_tool.ts";
import { TURN_FOLDS } from "./fold_turn.ts";
import { countPoints } from "./points.ts";

/** How one kind of event changes a view. */
export type Fold<E extends Event = Event> = (
  view: SessionView,
  event: E,
  envelope: Envelope,
) => SessionView;

/** Event type to its fold; a type that changes no view is left out. */
export type Folds = { [T in Event["type"]]?: Fold<Extract<Event, { type: T }>> };

const FOLDS: Folds = {
  ...SESSION_FOLDS,
  ...TURN_FOLDS,
  ...MESSAGE_FOLDS,
  ...TOOL_FOLDS,
  unknown: (view) => ({ ...view, unknown: view.unknown + 1 }),
};

/**
 * The view after one more frame. Pure; never throws.
 *
 * A stored event at or below `view.seq` is a duplicate and changes nothing. One that leaves a hole,
 * and a delta that does, set `lost`; a lost view takes no more stored events.
 */
export function reduce(view: SessionView, frame: Incoming): SessionView {
  if (frame.kind === "envelope") return takeEnvelope(view, frame.value);
  if (frame.kind === "partial") return takePartial(view, frame.value);
  return frame.kind === "gap" ? { ...view, lost: true } : view;
}

/**
 * The view after these frames: what `reduce` makes of them one after the other.
 *
 * Pieces of a block that follow each other are put in as one.
 */
export function reduceAll(view: SessionView, frames: Iterable<Incoming>): SessionView {
  let next = view;
  let run: Run | undefined;
  for (const frame of frames) {
    const piece = pieceOf(frame);
    if (run && piece && goesOn(run, piece)) {
      run.texts.push(piece.text);
      run.end += countPoints(piece.text);
      continue;
    }
    if (run) next = takeRun(next, run);
    run = piece && { first: piece, texts: [piece.text], end: piece.at + countPoints(piece.text) };
    if (!piece) next = reduce(next, frame);
  }
  return run ? takeRun(next, run) : next;
}

/** Pieces of one block, each of which goes on where the one before ended. */
interface Run {
  first: PieceDelta;
  texts: string[];
  /** Code points of the block after them. */
  end: number;
}

function pieceOf(frame: Incoming): PieceDelta | undefined {
  if (frame.kind !== "envelope") return undefined;
  const { event, seq } = frame.value;
  if (seq !== undefined && seq !== null) return undefined;
  const { type } = event;
  if (type === "text_delta" || type === "thinking_delta" || type === "tool_call_delta") {
    return event;
  }
  return undefined;
}

function goesOn({ first, end }: Run, piece: PieceDelta): boolean {
  return (
    piece.at === end &&
    piece.block === first.block &&
    piece.message === first.message &&
    piece.type === first.type
  );
}

function takeRun(view: SessionView, { first, texts }: Run): SessionView {
  return takePiece(view, { ...first, text: texts.join("") });
}

function takeEnvelope(view: SessionView, envelope: Envelope): SessionView {
  const { seq } = envelope;
  if (seq === undefined || seq === null) return apply(view, envelope);
  if (seq <= view.seq || view.lost) return view;
  if (seq !== view.seq + 1) return { ...view, lost: true };
  return apply({ ...view, seq, updated: envelope.time, waiting: null }, envelope);
}

function apply(view: SessionView, envelope: Envelope): SessionView {
  const fold = FOLDS[envelope.event.type] as Fold | undefined;
  return fold ? fold(view, envelope.event, envelope) : view;
}

function takePartial(view: SessionView, partial: Partial): SessionView {
  return takePartialCall(takePartialMessage(view, partial), partial);
}
