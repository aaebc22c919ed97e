/** The reducer's part for turns and steps. */

import type { EndedTurn, Envelope, SessionView, Usage } from "../protocol/types.gen.ts";
import { addMark } from "./entry.ts";
import type { Folds } from "./reducer.ts";

/** The sum, fields that are zero left out as the wire does. */
export function addUsage(one: Usage, other: Usage): Usage {
  const sum: { -readonly [K in keyof Usage]: number } = {};
  for (const key of ["input", "output", "cache_read", "cache_write", "reasoning"] as const) {
    const tokens = (one[key] ?? 0) + (other[key] ?? 0);
    if (tokens) sum[key] = tokens;
  }
  return sum;
}

/** A sum of US dollars with one more cost in it: not known once one of them is not. */
export function addCost(
  sum: number | null | undefined,
  more: number | null | undefined,
): number | null {
  if (typeof sum !== "number" || typeof more !== "number") return null;
  return sum + more;
}

/** What is common to every end: nothing of the turn stays open. */
function endTurn(
  view: SessionView,
  envelope: Envelope,
  end: Partial<EndedTurn> & { outcome: string; usage: Usage },
): SessionView {
  const left = view.open_calls.map((call) => ({
    ...call,
    status: "unknown",
    progress: null,
    fraction: null,
    output: "",
    output_at: 0,
  }));
  return {
    ...view,
    turn: null,
    last_turn: {
      id: envelope.turn ?? "",
      stop_reason: null,
      time: envelope.time,
      cost: null,
      summary: null,
      fault: null,
      ...end,
    },
    open_messages: [],
    open_calls: [],
    calls: [...view.calls, ...left],
    permissions: [],
    questions: [],
    usage: addUsage(view.usage, end.usage),
  };
}

export const TURN_FOLDS: Folds = {
  turn_started: (view, event, envelope) => {
    if (!envelope.turn) return view;
    const { prompt, model } = event;
    const turn = { id: envelope.turn, prompt, model, started: envelope.time, step: 0, attempt: 0 };
    return { ...view, turn };
  },
  turn_resumed: (view, event) =>
    view.turn ? { ...view, turn: { ...view.turn, attempt: event.attempt } } : view,
  turn_completed: (view, event, envelope) => {
    const ended = endTurn({ ...view, fault: null }, envelope, {
      outcome: "completed",
      stop_reason: event.stop_reason,
      usage: event.usage,
      cost: event.cost ?? null,
      summary: event.summary ?? null,
    });
    if (event.stop_reason === "end_turn") return ended;
    return addMark(ended, envelope, { kind: "turn_limited", text: event.stop_reason });
  },
  turn_failed: (view, event, envelope) => {
    const { fault, usage } = event;
    const ended = endTurn({ ...view, fault }, envelope, { outcome: "failed", usage, fault });
    return addMark(ended, envelope, { kind: "turn_failed", text: fault.message, fault });
  },
  turn_cancelled: (view, event, envelope) => {
    const ended = endTurn(view, envelope, { outcome: "cancelled", usage: event.usage });
    return addMark(ended, envelope, { kind: "turn_cancelled", text: event.reason });
  },
  step_started: (view, event) => {
    if (!view.turn || (event.attempt ?? 1) !== 1) return view;
    return { ...view, turn: { ...view.turn, step: view.turn.step + 1 } };
  },
  step_ended: (view, event) => {
    const cost = addCost(view.cost, event.cost);
    return { ...view, cost, context: event.context ?? view.context };
  },
  waiting: (view, event) => ({ ...view, waiting: event }),
  fallback: (view, event, envelope) =>
    addMark(view, envelope, {
      kind: "fallback",
      text: `${event.from} → ${event.to}`,
      fault: event.fault,
    }),
};
