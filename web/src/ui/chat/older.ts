/** Messages of before the view, a page at a time. */

import { ApiFault, call } from "../../platform/api.ts";
import type { Chat } from "../../state/chat.ts";

/** Messages of a page. */
const PAGE = 60;

/** What is known of the part that is not here. */
export type OlderState = "more" | "loading" | "none" | "failed";

/**
 * Reads what stands before the first message that is held, and tells whether there is more.
 *
 * @param ready what is done just before it comes in
 */
export async function readOlder(chat: Chat, ready: () => void): Promise<OlderState> {
  const first = chat.messages.peek()[0];
  if (!first) return "none";
  try {
    const query = { before: first.seq, limit: PAGE };
    const page = await call("get_history", { path: { session: chat.session }, query });
    const before = chat.before.peek();
    ready();
    chat.before.value = {
      ...before,
      messages: [...(page.messages ?? []), ...before.messages],
      calls: [...(page.calls ?? []), ...before.calls],
    };
    return page.next == null ? "none" : "more";
  } catch (error) {
    if (!(error instanceof ApiFault)) throw error;
    return "failed";
  }
}
