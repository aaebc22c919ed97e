/** Runs: what a turn thinks and does with no words to the reader between, over its messages. */

import type { Block } from "../../protocol/types.gen.ts";

/** A thought or a call. */
function isStep(block: Block): boolean {
  return block.type === "tool_call" || block.type === "thinking";
}

/** Whether there is nothing of it to see; models put empty words between their calls. */
function isBlank(block: Block): boolean {
  return (block.type === "text" || block.type === "thinking") && !/\S/.test(block.text);
}

/** How many blocks there are before the first words to the reader. */
export function countLead(content: readonly Block[]): number {
  const at = content.findIndex((block) => !isStep(block) && !isBlank(block));
  return at < 0 ? content.length : at;
}

/** The steps among some blocks. */
export function stepsOf(content: readonly Block[]): readonly Block[] {
  return content.filter((block) => isStep(block) && !isBlank(block));
}

/** A piece of a message: one block, or a run of steps; its place is that of its first block. */
export interface Piece {
  at: number;
  block: Block;
  /** Empty for what is no run. */
  steps: Block[];
}

/** The pieces of a message from a place on. */
export function piecesOf(content: readonly Block[], from: number): Piece[] {
  const pieces: Piece[] = [];
  content.forEach((block, at) => {
    if (at < from || isBlank(block)) return;
    const last = pieces.at(-1);
    if (!isStep(block)) pieces.push({ at, block, steps: [] });
    else if (last && last.steps.length > 0) last.steps.push(block);
    else pieces.push({ at, block, steps: [block] });
  });
  return pieces;
}

/** Where there are steps in a message. */
export interface Outline {
  /** Before the first words to the reader. */
  leads: boolean;
  /** Behind the last ones. */
  acts: boolean;
  /** Whether there are no such words. */
  whole: boolean;
}

/** The outline of a message; one with nothing in it is whole. */
export function outlineOf(content: readonly Block[]): Outline {
  const pieces = piecesOf(content, 0);
  const isRun = (piece?: Piece): boolean => piece !== undefined && piece.steps.length > 0;
  const [leads, acts] = [isRun(pieces[0]), isRun(pieces.at(-1))];
  return { leads, acts, whole: pieces.length === 0 || (leads && pieces.length === 1) };
}

/** How runs that go over more than one message are shown: all of it by the message that begins it. */
export interface Joined {
  /** Whether the message before shows the run that this one begins with. */
  led: boolean;
  /** Steps of the messages behind that belong to the last run of this one. */
  joined: readonly Block[];
  /** The message that is being written, when it begins with more of that run. */
  follows: string | null;
  /** Whether the turn is at its last run at this moment. */
  live: boolean;
}

interface Entry extends Joined {
  id: string;
  role: string;
  turn: string | null;
  content: readonly Block[];
  open: boolean;
  undone: boolean;
}

/**
 * Joins runs over the entries of a conversation, in place.
 *
 * @param written the outlines of the messages that are being written, by their ids
 * @param busy whether a turn runs
 * @returns whether one of the runs is live
 */
export function joinRuns(
  entries: Entry[],
  written: ReadonlyMap<string, Outline>,
  busy: boolean,
): boolean {
  let begun: Entry | undefined; // who shows the run that the entry before ended with
  for (const entry of entries) {
    const isSame = begun?.turn === entry.turn && begun.undone === entry.undone;
    const outline = (entry.open && written.get(entry.id)) || outlineOf(entry.content);
    begun =
      entry.role === "assistant" ? join(isSame ? begun : undefined, entry, outline) : undefined;
  }
  if (!busy || !begun) return false;
  begun.live = true;
  return true;
}

/** Hands what an entry begins with to the one before; tells who shows the run that it ends with. */
function join(before: Entry | undefined, entry: Entry, outline: Outline): Entry | undefined {
  const { content, open, id } = entry;
  if (before && outline.leads) {
    entry.led = true;
    if (open) before.follows = id;
    else before.joined = [...before.joined, ...stepsOf(content.slice(0, countLead(content)))];
  }
  if (before && outline.whole) return before;
  return outline.acts ? entry : undefined;
}
