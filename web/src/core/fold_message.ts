/** The reducer's part for messages and the pieces that they grow by. */

import type {
  Block,
  OpenMessage,
  Partial,
  SessionView,
  TextDelta,
  ThinkingDelta,
  ToolCallDelta,
} from "../protocol/types.gen.ts";
import { addEntry } from "./entry.ts";
import { countPoints, dropPoints } from "./points.ts";
import type { Folds } from "./reducer.ts";

/** A piece of a block of an open message. */
export type PieceDelta = TextDelta | ThinkingDelta | ToolCallDelta;

/** Blocks of an open message: a peer cannot make a view grow by naming a far block. */
const MAX_OPEN_BLOCKS = 1024;

/** Code points of the blocks that grow, so that a long text is not counted again with each piece. */
const POINTS = new WeakMap<Block, number>();

/** Stands for a block of which nothing has come yet; its first piece tells its kind. */
const HOLDER: Block = { type: "text", text: "" };

/** What a block of each kind begins as. */
const BLANKS: Record<PieceDelta["type"], Block> = {
  text_delta: HOLDER,
  thinking_delta: { type: "thinking", text: "" },
  tool_call_delta: { type: "tool_call", id: "", name: "", arguments: "" },
};

/** The block with the piece at its end, without what it has of it already; nothing for a hole. */
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
  while (blocks.length <= delta.block) blocks.push(HOLDER);
  const found = blocks[delta.block];
  // A place holder takes the kind of its first piece.
  const isHolder = !found || (found.type === "text" && found.text === "");
  const grown = growBlock(isHolder ? BLANKS[delta.type] : found, delta);
  if (!grown) return undefined;
  blocks[delta.block] = grown;
  return blocks;
}

/** The view with a piece put into its open message, or lost for a hole. */
export function takePiece(view: SessionView, delta: PieceDelta): SessionView {
  const place = view.open_messages.findIndex((message) => message.id === delta.message);
  const message = view.open_messages[place];
  if (!message) return view; // ended or discarded already: its truth has been told
  const content = growContent(message.content, delta);
  if (!content) return { ...view, lost: true };
  return { ...view, open_messages: view.open_messages.with(place, { ...message, content }) };
}

function withoutOpen(view: SessionView, id: string): OpenMessage[] {
  return view.open_messages.filter((message) => message.id !== id);
}

/** An open message as it stands: replaces what was built from deltas. */
export function takePartialMessage(view: SessionView, partial: Partial): SessionView {
  const { message: id, content = [] } = partial;
  if (id === undefined || id === null) return view;
  const opened = view.open_messages.map((open) => (open.id === id ? { ...open, content } : open));
  return { ...view, open_messages: opened };
}

export const MESSAGE_FOLDS: Folds = {
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
    addEntry({ ...view, open_messages: withoutOpen(view, event.message) }, envelope, {
      role: "assistant",
      id: event.message,
      content: event.content,
      cut: event.cut ?? null,
    }),
  message_discarded: (view, event) => ({
    ...view,
    open_messages: withoutOpen(view, event.message),
  }),
};
