import "../../core/words.code.ts";
import { useComputed } from "@preact/signals";
import { useRef, useState } from "preact/hooks";
import { t } from "../../core/i18n.ts";
import { copyText } from "../../platform/clipboard.ts";
import type { CallView, FileChange } from "../../protocol/types.gen.ts";
import type { Chat } from "../../state/chat.ts";
import { IconButton } from "../base/Button.tsx";
import { Icon } from "../base/Icon.tsx";
import { lazy } from "../base/lazy.tsx";
import { Counts } from "./Changes.tsx";
import { Clock } from "./Clock.tsx";
import { sayAgain } from "./TurnFailure.tsx";

/** The details of a turn: of no use before somebody asks. */
export const TurnSheet = lazy(async () => (await import("./TurnSheet.tsx")).TurnSheet);

interface MessageFooterProps {
  chat: Chat;
  turn: string | null;
  /** What the answer says. */
  text: string;
  time: string;
}

/** What can be done with an answer, and what its turn did to files. */
export function MessageFooter({ chat, turn, text, time }: MessageFooterProps) {
  const place = useRef<HTMLDivElement>(null);
  const [open, setOpen] = useState(false);
  const [copied, setCopied] = useState(false);
  const changes = changesOf(chat.parts.calls, turn);
  const isLast = useComputed(() => {
    const { turn: running, last_turn, closed } = chat.parts;
    return running === null && closed === null && last_turn?.id === turn;
  }).value;
  const copy = async (): Promise<void> => {
    if (!(await copyText(readShown(place.current?.closest("article"), text)))) return;
    setCopied(true);
    setTimeout(() => setCopied(false), 1_500);
  };
  return (
    <div ref={place} class="message-actions">
      {text !== "" && (
        <IconButton
          icon={copied ? "check" : "copy"}
          label={t(copied ? "copied" : "copy")}
          onClick={() => void copy()}
        />
      )}
      {isLast && chat.current.peek().last_turn?.outcome !== "failed" && (
        <button type="button" class="files-button" onClick={() => void sayAgain(chat)}>
          {t("retry")}
        </button>
      )}
      {changes.length > 0 && (
        <button type="button" class="files-button" onClick={() => setOpen(true)}>
          <Icon name="pencil" />
          {tellFiles(new Set(changes.map(({ path }) => path)).size)}
          <Counts changes={changes} />
        </button>
      )}
      {turn !== null && (
        <IconButton icon="more" label={t("turn.more")} onClick={() => setOpen(true)} />
      )}
      <Clock time={time} />
      {open && turn !== null && (
        <TurnSheet chat={chat} turn={turn} text={text} onClose={() => setOpen(false)} />
      )}
    </div>
  );
}

/** An answer as it reads on the page, without the words of its buttons. */
function readShown(article: Element | null | undefined, text: string): string {
  if (!article) return text;
  article.classList.add("copying");
  // biome-ignore lint/performance/useDomNodeTextContent: lines and lists as they read on the page
  const parts = [...article.querySelectorAll<HTMLElement>(".md")].map((one) => one.innerText);
  article.classList.remove("copying");
  return parts.join("\n\n").trim() || text;
}

/** What the calls of a turn changed; the same file may stand there more than once. */
function changesOf(calls: readonly CallView[], turn: string | null): FileChange[] {
  if (turn === null) return [];
  return calls.flatMap((call) => (call.turn === turn ? call.changes : []));
}

function tellFiles(count: number): string {
  return count === 1 ? t("turn.file") : t("turn.files", { count });
}
