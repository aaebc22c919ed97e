import { useSignalEffect } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { ApiFault, call } from "../../platform/api.ts";
import type { Chat } from "../../state/chat.ts";
import { begun } from "../../state/outbox.ts";
import { putSession, sessions } from "../../state/sessions.ts";

/** Who has looked for so long has read what is there, in milliseconds. */
const READ_MS = 1_000;

/** Tells the server how far a session has been read, and the list where the new part begins. */
export function useReadMark(chat: Chat): void {
  useEffect(() => {
    void begin(chat);
    let left = chat.current.peek().seq;
    const turn = (): void => {
      if (document.visibilityState === "hidden") left = chat.current.peek().seq;
      else chat.newAfter.value = left;
    };
    document.addEventListener("visibilitychange", turn);
    return () => document.removeEventListener("visibilitychange", turn);
  }, [chat]);
  useSignalEffect(() => {
    const { seq } = chat.parts;
    // What is shown from a copy is old, and a session is its owner's to read.
    if (seq === 0 || chat.copied.value !== null || document.visibilityState !== "visible") return;
    const timer = setTimeout(() => void mark(chat.session, seq), READ_MS);
    return () => clearTimeout(timer);
  });
}

/** What was new when the session was opened; nothing of one that was just begun here. */
async function begin(chat: Chat): Promise<void> {
  if (begun.delete(chat.session)) return;
  await quietly(async () => {
    const path = { session: chat.session };
    const { unread, read_seq = 0 } = await call("get_session", { path });
    if (unread) chat.newAfter.value ??= read_seq;
  });
}

async function mark(session: string, seq: number): Promise<void> {
  await quietly(async () => {
    await call("mark_read", { path: { session }, body: { seq } });
    const row = sessions.peek().find(({ id }) => id === session);
    if (row?.unread) putSession({ ...row, unread: false, read_seq: seq });
  });
}

/** A mark that is not kept is no fault of the session. */
async function quietly(work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (!(error instanceof ApiFault)) throw error;
  }
}
