/** Read-only copies of sessions for moments without a server: what is kept of them, and how long. */

import {
  type MessageView,
  REDUCER_VERSION,
  type SessionInfo,
  type SessionView,
} from "../protocol/types.gen.ts";

/** Copies of so many sessions are kept, those that were read last. */
export const COPIED_SESSIONS = 5;
/** The messages of a copy, the newest. */
export const COPIED_MESSAGES = 50;

/** One session as it was. */
export interface SessionCopy {
  readonly session: string;
  /** Whose it is. */
  readonly user: string;
  /** Milliseconds since 1970 of the moment that it shows. */
  readonly at: number;
  readonly row: SessionInfo;
  readonly view: SessionView;
}

/**
 * A copy of a view without what only a server can say: what runs, waits or asks.
 *
 * Nothing of a copy can be answered, and a turn that ran then may long be over.
 */
export function makeCopy(view: SessionView, user: string, at: number): SessionCopy {
  const messages = view.messages.slice(-COPIED_MESSAGES);
  const gone = new Set(view.messages.slice(0, -COPIED_MESSAGES).flatMap(callsOf));
  const left = view.open_calls.map((call) => ({ ...call, status: "unknown" }));
  const kept: SessionView = {
    ...view,
    messages,
    older: view.older || messages.length < view.messages.length,
    calls: [...view.calls.filter(({ call }) => !gone.has(call)), ...left],
    open_calls: [],
    open_messages: [],
    permissions: [],
    questions: [],
    queue: [],
    turn: null,
    waiting: null,
  };
  return { session: view.session, user, at, row: rowOf(kept), view: kept };
}

function callsOf({ content }: MessageView): string[] {
  return content.flatMap((block) => (block.type === "tool_call" ? [block.id] : []));
}

function rowOf(view: SessionView): SessionInfo {
  const { session: id, agent, model, mode, title, cwd, created, updated, seq: last_seq } = view;
  const closed = view.closed !== null;
  return { id, agent, model, mode, title, cwd, created, updated, last_seq, closed, live: false };
}

/** The copies that may be shown to a user, newest first: those of another reducer are thrown away. */
export function usableCopies(copies: readonly SessionCopy[], user: string): SessionCopy[] {
  return copies
    .filter((copy) => copy.user === user && copy.view.reducer === REDUCER_VERSION)
    .sort((a, b) => b.at - a.at);
}

/** The sessions whose copies make room. */
export function surplus(copies: readonly Pick<SessionCopy, "session" | "at">[]): string[] {
  return [...copies]
    .sort((a, b) => b.at - a.at)
    .slice(COPIED_SESSIONS)
    .map(({ session }) => session);
}
