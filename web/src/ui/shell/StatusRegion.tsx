import "../../core/words.later.ts";
import { effect } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import { t, type Word } from "../../core/i18n.ts";
import type { SessionView } from "../../protocol/types.gen.ts";
import type { Chat } from "../../state/chat.ts";
import { useReadMark } from "../hooks/useReadMark.ts";

const OUTCOMES: Record<string, Word> = {
  completed: "status.done",
  failed: "mark.turn_failed",
  cancelled: "mark.turn_cancelled",
};

/** What a screen reader should hear when one view follows another; nothing for most of them. */
export function newsOf(before: SessionView, after: SessionView): Word | null {
  if (before.session !== after.session) return null;
  if (after.permissions.length > before.permissions.length) return "status.ask";
  const ended = after.last_turn;
  if (ended && ended.id !== before.last_turn?.id) return OUTCOMES[ended.outcome] ?? "status.done";
  if (after.turn && after.turn.id !== before.turn?.id) return "turn.working";
  return null;
}

/** The one region that speaks by itself: the log does not. */
export function StatusRegion({ chat }: { chat: Chat }) {
  useReadMark(chat);
  const [news, setNews] = useState("");
  useEffect(() => {
    let last = chat.current.peek();
    return effect(() => {
      const view = chat.current.value;
      const word = newsOf(last, view);
      last = view;
      if (word) setNews(t(word));
    });
  }, [chat]);
  return (
    <div class="visually-hidden" role="status" aria-live="polite">
      {news}
    </div>
  );
}
