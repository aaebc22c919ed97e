/**
 * How much of what is being written a screen shows: whole messages only, or no thinking at all.
 *
 * The twin of the protocol package's `present`: both must pass the same golden vectors.
 */

import type { Block, MessageView, OpenMessage, SessionView } from "../protocol/types.gen.ts";

/** What a person wants to see of messages. */
export interface Presentation {
  /** `stream` shows words as they come, `final` when their message has ended. */
  readonly text: "stream" | "final";
  /** The same for thinking; `off` shows none. */
  readonly thinking: "stream" | "final" | "off";
}

/** All is shown as it comes. */
export const PLAIN: Presentation = { text: "stream", thinking: "stream" };

/** Message id to the option of each of its blocks. */
type Options = ReadonlyMap<string, readonly Presentation[]>;

/** What `present` remembers from one view to the next; begin with `NOTHING_SHOWN`. */
export interface Shown {
  /** The view as it came. */
  readonly view: SessionView | null;
  /** Its finished messages as they are shown. */
  readonly messages: readonly MessageView[];
  /** The options of the blocks that were seen; nothing while all are plain. */
  readonly options: Options | null;
}

export const NOTHING_SHOWN: Shown = { view: null, messages: [], options: null };

/**
 * The view as it is to be shown, and what to remember for the next one.
 *
 * A block keeps the option that was in force when it was first seen, so a change counts from the
 * next block on. With the default the view itself is shown, at no cost.
 */
export function present(
  shown: Shown,
  view: SessionView,
  wanted: Presentation,
): [Shown, SessionView] {
  if (shown.options === null && wanted.text === "stream" && wanted.thinking === "stream") {
    return [{ view, messages: [], options: null }, view];
  }
  // Until now all was shown as it was.
  const known = shown.options ?? remember(new Map(), shown.view, PLAIN);
  const before = shown.options === null ? shown.view?.messages : shown.messages;
  const options = remember(known, view, wanted);
  const isSame = view.messages === shown.view?.messages && before !== undefined;
  const messages = isSame ? before : view.messages.map((entry) => showFinished(entry, options));
  const open_messages = view.open_messages.map((entry) => showOpen(entry, options));
  return [
    { view, messages, options },
    { ...view, messages, open_messages },
  ];
}

/** The options of all blocks of the view; those that are new get this one. */
function remember(known: Options, view: SessionView | null, wanted: Presentation): Options {
  const found = new Map<string, readonly Presentation[]>();
  for (const { id, content } of [...(view?.messages ?? []), ...(view?.open_messages ?? [])]) {
    if (id === null) continue;
    const old = known.get(id) ?? [];
    const more = Math.max(0, content.length - old.length);
    found.set(id, more ? [...old, ...Array<Presentation>(more).fill(wanted)] : old);
  }
  return found;
}

function showFinished(entry: MessageView, options: Options): MessageView {
  const own = options.get(entry.id ?? "") ?? [];
  const content = entry.content.filter(
    (block, place) => block.type !== "thinking" || own[place]?.thinking !== "off",
  );
  return content.length === entry.content.length ? entry : { ...entry, content };
}

function showOpen(entry: OpenMessage, options: Options): OpenMessage {
  const own = options.get(entry.id) ?? [];
  const content = entry.content.flatMap((block, place) => showBlock(block, own[place] ?? PLAIN));
  return { ...entry, content };
}

/** A block that is being written, with or without its words, or nothing of it. */
function showBlock(block: Block, { text, thinking }: Presentation): Block[] {
  if (block.type === "text") return [text === "final" ? { ...block, text: "" } : block];
  if (block.type !== "thinking" || thinking === "stream") return [block];
  return thinking === "final" ? [{ ...block, text: "" }] : [];
}
