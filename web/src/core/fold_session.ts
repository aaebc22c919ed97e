/** The reducer's part for sessions, their prompts, their plan and their notices. */

import type { Block, Compacted, SessionView } from "../protocol/types.gen.ts";
import { addEntry, addMark } from "./entry.ts";
import { addCost, addUsage } from "./fold_turn.ts";
import { countPoints, takePoints } from "./points.ts";
import type { Folds } from "./reducer.ts";

/** Notices that a view holds. */
const MAX_NOTICES = 20;
/** Code points of a prompt that become the title. */
const TITLE_POINTS = 60;

/** The view with a title made of what was said first. */
function withTitle(view: SessionView, content: readonly Block[]): SessionView {
  const words = content
    .map((block) => (block.type === "text" ? block.text : ""))
    .join("")
    .replace(/[ \t\n\r\f\v\u0085\u2028\u2029]+/g, " ")
    .replace(/^ | $/g, "");
  if (words === "") return view;
  const title_truncated = countPoints(words) > TITLE_POINTS;
  return { ...view, title: takePoints(words, TITLE_POINTS), title_truncated };
}

function withoutQueued(view: SessionView, prompt: string): SessionView {
  return { ...view, queue: view.queue.filter((queued) => queued.prompt !== prompt) };
}

/** What a summary cost; what was used in a turn stands in the turn's own sum. */
function withSpent(view: SessionView, event: Compacted, inTurn: boolean): SessionView {
  if (!event.usage) return view; // nobody was asked
  return {
    ...view,
    cost: addCost(view.cost, event.cost),
    usage: inTurn ? view.usage : addUsage(view.usage, event.usage),
  };
}

/**
 * The place of the first entry that a revert takes back.
 *
 * As a transcript does, it looks only at what is not undone yet. A turn that the view holds nothing
 * of began before all it holds, when it holds not everything.
 */
function firstUndone(view: SessionView, turn: string): number {
  const { messages } = view;
  const place = messages.findIndex((entry) => entry.turn === turn && !entry.undone);
  if (place >= 0) return place;
  const known = !view.older || messages.some((entry) => entry.turn === turn);
  return known ? messages.length : 0;
}

export const SESSION_FOLDS: Folds = {
  session_created: (view, event, envelope) => ({
    ...view,
    session: envelope.session,
    agent: event.agent,
    model: event.model,
    mode: event.mode,
    title: event.title ?? null,
    cwd: event.cwd ?? null,
    labels: event.labels ?? [],
    parent: event.parent ?? null,
    created: envelope.time,
  }),
  session_updated: (view, event) => ({
    ...view,
    title: event.title ?? view.title,
    title_truncated: view.title_truncated && typeof event.title !== "string",
    model: event.model ?? view.model,
    mode: event.mode ?? view.mode,
    archived: event.archived ?? view.archived,
    labels: event.labels ?? view.labels,
  }),
  session_closed: (view, event, envelope) =>
    addMark({ ...view, closed: event.reason }, envelope, { kind: "closed", text: event.reason }),
  prompt_admitted: (view, event, envelope) => {
    const titled = view.title === null ? withTitle(view, event.content) : view;
    const queue = view.queue.toSpliced(Math.max(event.position ?? 0, 0), 0, {
      prompt: event.prompt,
      content: event.content,
      when: event.when,
      key: event.key ?? null,
      time: envelope.time,
    });
    return { ...titled, queue };
  },
  prompt_delivered: (view, event, envelope) => {
    const waited = view.queue.find((queued) => queued.prompt === event.prompt);
    if (!waited) return view;
    const { time, content, key } = waited;
    const entry = { role: "user", id: event.prompt, turn: event.turn, time, content, key };
    return addEntry(withoutQueued(view, event.prompt), envelope, entry);
  },
  prompt_withdrawn: (view, event) => withoutQueued(view, event.prompt),
  compacted: (view, event, envelope) => {
    const { before_tokens, after_tokens } = event;
    const window = view.context?.window;
    const context = typeof window === "number" ? { used: after_tokens, window } : null;
    const spent = withSpent(view, event, typeof envelope.turn === "string");
    const text = event.summary ?? "";
    const mark = { kind: "compacted", text, before_tokens, after_tokens };
    return addMark({ ...spent, context: context ?? { used: after_tokens } }, envelope, mark);
  },
  reverted: (view, event, envelope) => {
    const first = firstUndone(view, event.to_turn);
    const messages = view.messages.map((entry, place) =>
      place < first || entry.undone ? entry : { ...entry, undone: true },
    );
    return addMark({ ...view, messages }, envelope, {
      kind: "reverted",
      text: event.to_turn,
      files: event.files ?? [],
      not_reverted: event.not_reverted ?? [],
    });
  },
  files_reverted: (view, event, envelope) => {
    const conflicts = (event.conflicts ?? []).map(({ path, what }) => `${path}: ${what}`);
    return addMark(view, envelope, {
      kind: "files_reverted",
      text: event.turn,
      files: event.files ?? [],
      not_reverted: [...conflicts, ...(event.unkept ?? [])],
    });
  },
  todos_updated: (view, event) => ({ ...view, todos: event.todos }),
  notice: (view, { code, message, scope = "turn" }, envelope) => {
    const notices = [...view.notices, { seq: envelope.seq ?? 0, code, message, scope }];
    const older_notices = view.older_notices || notices.length > MAX_NOTICES;
    return { ...view, notices: notices.slice(-MAX_NOTICES), older_notices };
  },
};
