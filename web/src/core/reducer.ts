/**
 * The view of a session as a pure function of its frames.
 *
 * The twin of the protocol package's reducer: both must pass the same golden vectors.
 */

import type { Incoming } from "../protocol/events.ts";
import {
  type Envelope,
  type Event,
  type Partial,
  REDUCER_VERSION,
  type SessionView,
} from "../protocol/types.gen.ts";
import { TALK_FOLDS, takePartialMessage } from "./fold_talk.ts";
import { TOOL_FOLDS, takePartialCall } from "./fold_tool.ts";

/** The view before any event: where a replay from the beginning starts. */
export function emptyView(): SessionView {
  return {
    reducer: REDUCER_VERSION,
    session: "",
    seq: 0,
    agent: "",
    model: "",
    mode: "",
    title: null,
    cwd: null,
    created: "",
    updated: "",
    archived: false,
    labels: [],
    closed: null,
    turn: null,
    last_turn: null,
    waiting: null,
    messages: [],
    older: false,
    open_messages: [],
    calls: [],
    open_calls: [],
    permissions: [],
    questions: [],
    queue: [],
    todos: [],
    notices: [],
    usage: {},
    cost: 0,
    context: null,
    fault: null,
    unknown: 0,
    lost: false,
  };
}

/** How one kind of event changes a view. */
export type Fold<E extends Event = Event> = (
  view: SessionView,
  event: E,
  envelope: Envelope,
) => SessionView;

/** Event type to its fold; a type that changes no view is left out. */
export type Folds = { [T in Event["type"]]?: Fold<Extract<Event, { type: T }>> };

const FOLDS: Folds = {
  ...TALK_FOLDS,
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
