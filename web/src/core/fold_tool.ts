/** The reducer's part for tool calls, permissions and questions. */

import type { CallView, FileChange, Partial, SessionView } from "../protocol/types.gen.ts";
import { addCost } from "./fold_turn.ts";
import { countPoints, dropPoints, takePoints } from "./points.ts";
import type { Folds } from "./reducer.ts";

/** Code points of a running call's output that a view holds: some 200 lines. */
const MAX_OUTPUT = 8192;
/** Changed files of one call that a view holds: nobody reads more in a card. */
const MAX_CHANGES = 100;
/** Code points of a file's diff that a view holds: some 400 lines. */
const MAX_DIFF = 16_384;

/** Code points of the outputs that grow, so that they are not counted again with each piece. */
const POINTS = new WeakMap<CallView, number>();

function change(view: SessionView, id: string, how: (call: CallView) => CallView): SessionView {
  if (!view.open_calls.some((call) => call.call === id)) return view;
  const calls = view.open_calls.map((call) => (call.call === id ? how(call) : call));
  return { ...view, open_calls: calls };
}

function withTail(call: CallView, at: number, output: string): CallView {
  const points = countPoints(output);
  const over = Math.max(0, points - MAX_OUTPUT);
  const grown = { ...call, output_at: at + over, output: dropPoints(output, over) };
  POINTS.set(grown, points - over);
  return grown;
}

function withChanges(call: CallView, more: readonly FileChange[]): CallView {
  const changes = [...call.changes, ...more.map(shortChange)];
  const changes_truncated = call.changes_truncated || changes.length > MAX_CHANGES;
  return { ...call, changes: changes.slice(0, MAX_CHANGES), changes_truncated };
}

function shortChange(change: FileChange): FileChange {
  const diff = takePoints(change.diff ?? "", MAX_DIFF);
  return diff === (change.diff ?? "") ? change : { ...change, diff, truncated: true };
}

/** The list with an item in the place of the one that has the same key, or at the end. */
function replaceOrAdd<T>(items: readonly T[], item: T, isSame: (other: T) => boolean): T[] {
  const place = items.findIndex(isSame);
  return place < 0 ? [...items, item] : items.with(place, item);
}

/** A running call as it stands: replaces what was built from deltas. */
export function takePartialCall(view: SessionView, partial: Partial): SessionView {
  const { call: id, at = 0, output = "", progress = null, fraction = null } = partial;
  if (id === undefined || id === null) return view;
  return change(view, id, (call) => withTail({ ...call, progress, fraction }, at, output));
}

export const TOOL_FOLDS: Folds = {
  tool_proposed: (view, event, envelope) => {
    const call: CallView = {
      call: event.call,
      tool: event.tool,
      title: event.title,
      effect: event.effect,
      arguments: event.arguments,
      status: "pending",
      preview: event.preview ?? null,
      turn: envelope.turn ?? null,
      started: null,
      progress: null,
      fraction: null,
      output: "",
      output_at: 0,
      content: [],
      is_error: false,
      duration_ms: 0,
      artifacts: [],
      changes: [],
      changes_truncated: false,
      decision: null,
      expires_at: null,
      claimed_by: null,
      arguments_file: event.arguments_file ?? null,
      files: [],
      child: null,
    };
    const kept = view.open_calls.filter((other) => other.call !== event.call);
    return { ...view, open_calls: [...kept, call] };
  },
  tool_started: (view, event, envelope) =>
    change(view, event.call, (call) => ({
      ...call,
      status: "in_progress",
      started: call.started ?? envelope.time,
      child: event.child ?? call.child,
    })),
  tool_progress: (view, event) =>
    change(view, event.call, (call) => ({
      ...call,
      progress: event.text,
      fraction: event.fraction ?? null,
    })),
  tool_output_delta: (view, event) => {
    const call = view.open_calls.find((open) => open.call === event.call);
    if (!call) return view;
    const end = call.output_at + (POINTS.get(call) ?? countPoints(call.output));
    if (event.at > end) return { ...view, lost: true };
    const grown = call.output + dropPoints(event.text, end - event.at);
    return change(view, event.call, (open) => withTail(open, open.output_at, grown));
  },
  tool_ended: (before, event) => {
    const view = event.usage ? { ...before, cost: addCost(before.cost, event.cost) } : before;
    const open = view.open_calls.find((call) => call.call === event.call);
    if (!open) return view;
    const ended: CallView = {
      ...open,
      status: event.status,
      progress: null,
      fraction: null,
      output: "",
      output_at: 0,
      content: event.content,
      is_error: event.is_error ?? false,
      duration_ms: event.duration_ms ?? 0,
      artifacts: event.artifacts ?? [],
      files: event.files ?? [],
    };
    const kept = view.open_calls.filter((call) => call.call !== event.call);
    return { ...view, open_calls: kept, calls: [...view.calls, ended] };
  },
  client_call_offered: (view, event) =>
    change(view, event.call, (call) => ({
      ...call,
      expires_at: event.expires_at,
      claimed_by: event.to ?? null,
    })),
  client_call_claimed: (view, event) =>
    change(view, event.call, (call) => ({ ...call, claimed_by: event.by })),
  files_changed: (view, event) =>
    change(view, event.call, (call) => withChanges(call, event.changes)),
  permission_requested: (view, event) => ({
    ...view,
    permissions: replaceOrAdd(
      view.permissions,
      event,
      (other) => other.permission === event.permission,
    ),
  }),
  permission_resolved: (view, event, envelope) => {
    const asked = view.permissions.find((request) => request.permission === event.permission);
    const permissions = view.permissions.filter((request) => request !== asked);
    if (!asked) return { ...view, permissions };
    const { option, by, note } = event;
    const decision = { option, by, note: note ?? null, time: envelope.time };
    return change({ ...view, permissions }, asked.call, (call) => ({ ...call, decision }));
  },
  question_asked: (view, event) => ({
    ...view,
    questions: replaceOrAdd(view.questions, event, (other) => other.question === event.question),
  }),
  question_resolved: (view, event) => ({
    ...view,
    questions: view.questions.filter((question) => question.question !== event.question),
  }),
};
