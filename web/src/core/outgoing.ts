/** Prompts on their way, beside those that the log shows. */

import type { OutgoingPrompt, SessionView } from "../protocol/types.gen.ts";

/**
 * The view with the prompts that are on their way and that it does not hold itself.
 *
 * A prompt whose key stands in `queue` waits, one whose key a message has is delivered: neither is
 * on its way. What this gives is for showing, not for folding more frames into it.
 */
export function showOutgoing(view: SessionView, entries: readonly OutgoingPrompt[]): SessionView {
  const held = new Set([...view.queue, ...view.messages].map((entry) => entry.key));
  const outgoing = entries.filter((entry) => !held.has(entry.key));
  const shown = view.outgoing;
  const isSame =
    outgoing.length === shown.length && outgoing.every((entry, place) => entry === shown[place]);
  return isSame ? view : { ...view, outgoing };
}
