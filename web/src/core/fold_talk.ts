/** The reducer's part for sessions, prompts, turns and messages. */

import type {
  Block,
  EndedTurn,
  Envelope,
  Mark,
  MessageView,
  OpenMessage,
  Partial,
  SessionView,
  TextDelta,
  ThinkingDelta,
  ToolCallDelta,
  Usage,
} from "../protocol/types.gen.ts";
import { countPoints, dropPoints, takePoints } from "./points.ts";
import type { Folds } from "./reducer.ts";

type PieceDelta = TextDelta | ThinkingDelta | ToolCallDelta;

/** Finished entries that a view holds. */
export const MAX_MESSAGES = 200;
/** Notices that a view holds. */
export const MAX_NOTICES = 20;
/** Code points of a prompt that become the title. */
const TITLE_POINTS = 60;
/** Blocks of an open message: a peer cannot make a view grow by naming a far block. */
const MAX_OPEN_BLOCKS = 1024;

/** Code points of the blocks that grow, so that a long text is not counted again with each piece. */
const POINTS = new WeakMap<Block, number>();

/** The text of all text blocks, joined as it stands. */
export function blockText(blocks: readonly Block[]): string {
  return blocks.map((block) => (block.type === "text" ? block.text : "")).join("");
}

function makeTitle(content: readonly Block[]): string | null {
  const words = blockText(content)
    .replace(/[ \t\n\r\f\v\u0085\u2028\u2029]+/g, " ")
    .replace(/^ | $/g, "");
  return takePoints(words, TITLE_POINTS) || null;
}

/** One more entry; the oldest one, and its calls, make room. */
function append(
  view: SessionView,
  envelope: Envelope,
  entry: globalThis.Partial<MessageView> & { role: string },
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

function mark(
  view: SessionView,
  envelope: Envelope,
  kind: string,
  text = "",
  fault: Mark["fault"] = null,
): SessionView {
  return append(view, envelope, { role: "mark", mark: { kind, text, fault } });
}

/** The sum, fields that are zero left out as the wire does. */
function addUsage(one: Usage, other: Usage): Usage {
  const sum: { -readonly [K in keyof Usage]: number } = {};
  for (const key of ["input", "output", "cache_read", "cache_write", "reasoning"] as const) {
    const tokens = (one[key] ?? 0) + (other[key] ?? 0);
    if (tokens) sum[key] = tokens;
  }
  return sum;
}

/** What is common to every end: nothing of the turn stays open. */
function endTurn(
  view: SessionView,
  envelope: Envelope,
  end: globalThis.Partial<EndedTurn> & { outcome: string; usage: Usage },
): SessionView {
  const left = view.open_calls.map((call) => ({
    ...call,
    status: "unknown",
    progress: null,
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

function blank(type: PieceDelta["type"]): Block {
  if (type === "tool_call_delta") return { type: "tool_call", id: "", name: "", arguments: "" };
  return { type: type === "text_delta" ? "text" : "thinking", text: "" };
}

/** A block with a piece put in; nothing for a hole. */
function growBlock(block: Block, delta: PieceDelta): Block | undefined {
  if (block.type !== "text" && block.type !== "thinking" && block.type !== "tool_call") {
    return undefined;
  }
  const field = block.type === "tool_call" ? block.arguments : block.text;
  const written = POINTS.get(block) ?? countPoints(field);
  if (delta.at > written) return undefined;
  const piece = dropPoints(delta.text, written - delta.at);
  const text = field + piece;
  const grown = block.type === "tool_call" ? { ...block, arguments: text } : { ...block, text };
  POINTS.set(grown, written + countPoints(piece));
  return grown;
}

function growContent(content: readonly Block[], delta: PieceDelta): Block[] | undefined {
  if (delta.block < 0 || delta.block >= MAX_OPEN_BLOCKS) return undefined;
  const blocks = [...content];
  while (blocks.length <= delta.block) blocks.push(blank(delta.type));
  const found = blocks[delta.block];
  // A place holder takes the kind of its first piece.
  const isHolder = !found || (found.type === "text" && found.text === "");
  const grown = growBlock(isHolder ? blank(delta.type) : found, delta);
  if (!grown) return undefined;
  blocks[delta.block] = grown;
  return blocks;
}

function takePiece(view: SessionView, delta: PieceDelta): SessionView {
  const place = view.open_messages.findIndex((message) => message.id === delta.message);
  const message = view.open_messages[place];
  if (!message) return view; // ended or discarded already: its truth has been told
  const content = growContent(message.content, delta);
  if (!content) return { ...view, lost: true };
  const opened = [...view.open_messages];
  opened[place] = { ...message, content };
  return { ...view, open_messages: opened };
}

function withoutOpen(view: SessionView, id: string): OpenMessage[] {
  return view.open_messages.filter((message) => message.id !== id);
}

function withoutQueued(view: SessionView, prompt: string): SessionView {
  return { ...view, queue: view.queue.filter((queued) => queued.prompt !== prompt) };
}

/** An open message as it stands: replaces what was built from deltas. */
export function takePartialMessage(view: SessionView, partial: Partial): SessionView {
  const { message: id, content = [] } = partial;
  if (id === undefined || id === null) return view;
  const opened = view.open_messages.map((open) => (open.id === id ? { ...open, content } : open));
  return { ...view, open_messages: opened };
}

export const TALK_FOLDS: Folds = {
  session_created: (view, event, envelope) => ({
    ...view,
    session: envelope.session,
    agent: event.agent,
    model: event.model,
    mode: event.mode,
    title: event.title ?? null,
    cwd: event.cwd ?? null,
    labels: event.labels ?? [],
    created: envelope.time,
  }),
  session_updated: (view, event) => ({
    ...view,
    title: event.title ?? view.title,
    model: event.model ?? view.model,
    mode: event.mode ?? view.mode,
    archived: event.archived ?? view.archived,
    labels: event.labels ?? view.labels,
  }),
  session_closed: (view, event, envelope) =>
    mark({ ...view, closed: event.reason }, envelope, "closed", event.reason),
  prompt_admitted: (view, event, envelope) => ({
    ...view,
    title: view.title ?? makeTitle(event.content),
    queue: view.queue.toSpliced(Math.max(event.position ?? 0, 0), 0, {
      prompt: event.prompt,
      content: event.content,
      when: event.when,
      key: event.key ?? null,
      time: envelope.time,
    }),
  }),
  prompt_delivered: (view, event, envelope) => {
    const waiting = view.queue.find((queued) => queued.prompt === event.prompt);
    const rest = withoutQueued(view, event.prompt);
    if (!waiting) return rest;
    const { time, content, key } = waiting;
    const entry = { role: "user", id: event.prompt, turn: event.turn, time, content, key };
    return append(rest, envelope, entry);
  },
  prompt_withdrawn: (view, event) => withoutQueued(view, event.prompt),
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
    return mark(ended, envelope, "turn_limited", event.stop_reason);
  },
  turn_failed: (view, event, envelope) => {
    const { fault, usage } = event;
    const ended = endTurn({ ...view, fault }, envelope, { outcome: "failed", usage, fault });
    return mark(ended, envelope, "turn_failed", fault.message, fault);
  },
  turn_cancelled: (view, event, envelope) =>
    mark(
      endTurn(view, envelope, { outcome: "cancelled", usage: event.usage }),
      envelope,
      "turn_cancelled",
      event.reason,
    ),
  step_started: (view, event) => {
    if (!view.turn) return view;
    const step = view.turn.step + ((event.attempt ?? 1) === 1 ? 1 : 0);
    return { ...view, turn: { ...view.turn, step } };
  },
  step_ended: (view, event) => {
    const unknown = view.cost === null || event.cost === undefined || event.cost === null;
    const cost = unknown ? null : (view.cost ?? 0) + (event.cost ?? 0);
    return { ...view, cost, context: event.context ?? view.context };
  },
  waiting: (view, event) => ({ ...view, waiting: event }),
  fallback: (view, event, envelope) =>
    mark(view, envelope, "fallback", `${event.from} → ${event.to}`, event.fault),
  message_started: (view, event, envelope) => ({
    ...view,
    open_messages: [
      ...withoutOpen(view, event.message),
      { id: event.message, turn: envelope.turn ?? null, time: envelope.time, content: [] },
    ],
  }),
  text_delta: takePiece,
  thinking_delta: takePiece,
  tool_call_delta: takePiece,
  message_ended: (view, event, envelope) =>
    append({ ...view, open_messages: withoutOpen(view, event.message) }, envelope, {
      role: "assistant",
      id: event.message,
      content: event.content,
      cut: event.cut ?? null,
    }),
  message_discarded: (view, event) => ({
    ...view,
    open_messages: withoutOpen(view, event.message),
  }),
  compacted: (view, event, envelope) => mark(view, envelope, "compacted", event.summary ?? ""),
  reverted: (view, event, envelope) => mark(view, envelope, "reverted", event.to_turn),
  todos_updated: (view, event) => ({ ...view, todos: event.todos }),
  notice: (view, event) => ({ ...view, notices: [...view.notices, event].slice(-MAX_NOTICES) }),
};
