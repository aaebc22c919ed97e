import { signal } from "@preact/signals";
import type { PromptBlock } from "../../protocol/types.gen.ts";

/** A text that the composer of a session should take over. */
export const editing = signal<{
  session: string | null;
  text: string;
  /** The files that went along. */
  blocks?: readonly PromptBlock[];
  /** The turn in whose place it will be said. */
  turn?: string;
} | null>(null);
