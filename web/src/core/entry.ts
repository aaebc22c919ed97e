/** The entries of the conversation, which every fold may add to. */

import type { Envelope, Mark, MessageView, SessionView } from "../protocol/types.gen.ts";

/** Finished entries that a view holds. */
const MAX_MESSAGES = 200;

/** The view with one more entry; the oldest one, and its calls, make room. */
export function addEntry(
  view: SessionView,
  envelope: Envelope,
  entry: Partial<MessageView> & { role: string },
): SessionView {
  const message: MessageView = {
    seq: envelope.seq ?? 0,
    id: null,
    turn: envelope.turn ?? null,
    time: envelope.time,
    content: [],
    cut: null,
    key: null,
    mark: null,
    undone: false,
    ...entry,
  };
  const messages = [...view.messages, message];
  if (messages.length <= MAX_MESSAGES) return { ...view, messages };
  const oldest = messages.shift();
  const gone = new Set(
    oldest?.content.map((block) => (block.type === "tool_call" ? block.id : "")),
  );
  const calls = view.calls.filter((call) => !gone.has(call.call));
  return { ...view, messages, calls: gone.size ? calls : view.calls, older: true };
}

/** The view with a quiet line at its end. */
export function addMark(
  view: SessionView,
  envelope: Envelope,
  mark: Partial<Mark> & { kind: string },
): SessionView {
  const whole: Mark = {
    text: "",
    fault: null,
    files: [],
    not_reverted: [],
    before_tokens: null,
    after_tokens: null,
    ...mark,
  };
  return addEntry(view, envelope, { role: "mark", mark: whole });
}
