import "../../core/words.code.ts";
import { useComputed } from "@preact/signals";
import { useState } from "preact/hooks";
import { t } from "../../core/i18n.ts";
import { copyText } from "../../platform/clipboard.ts";
import type { CallView, FileChange } from "../../protocol/types.gen.ts";
import type { Chat } from "../../state/chat.ts";
import { IconButton } from "../base/Button.tsx";
import { Icon } from "../base/Icon.tsx";
import { lazy } from "../base/lazy.tsx";
import { Counts } from "./Changes.tsx";

/** The details of a turn: of no use before somebody asks. */
export const TurnSheet = lazy(async () => (await import("./TurnSheet.tsx")).TurnSheet);

interface MessageFooterProps {
  chat: Chat;
  turn: string | null;
  /** What the answer says. */
  text: string;
}

/** What can be done with an answer, and what its turn did to files. */
export function MessageFooter({ chat, turn, text }: MessageFooterProps) {
  const [open, setOpen] = useState(false);
  const [copied, setCopied] = useState(false);
  // Each answer has a footer: none of them may be made anew with each word of the next one.
  const calls = useComputed(() => chat.current.value.calls).value;
  const changes = changesOf(calls, turn);
  const copy = async (): Promise<void> => {
    if (!(await copyText(text))) return;
    setCopied(true);
    setTimeout(() => setCopied(false), 1_500);
  };
  return (
    <div class="message-actions">
      {text !== "" && (
        <IconButton
          icon={copied ? "check" : "copy"}
          label={t(copied ? "copied" : "copy")}
          onClick={() => void copy()}
        />
      )}
      {turn !== null && (
        <IconButton icon="more" label={t("turn.more")} onClick={() => setOpen(true)} />
      )}
      {changes.length > 0 && (
        <button type="button" class="files-button" onClick={() => setOpen(true)}>
          <Icon name="pencil" />
          {tellFiles(new Set(changes.map(({ path }) => path)).size)}
          <Counts diffs={changes.flatMap(({ diff }) => diff ?? [])} />
        </button>
      )}
      {open && turn !== null && (
        <TurnSheet chat={chat} turn={turn} onClose={() => setOpen(false)} />
      )}
    </div>
  );
}

/** What the calls of a turn changed; the same file may stand there more than once. */
function changesOf(calls: readonly CallView[], turn: string | null): FileChange[] {
  if (turn === null) return [];
  return calls.flatMap((call) => (call.turn === turn ? call.changes : []));
}

function tellFiles(count: number): string {
  return count === 1 ? t("turn.file") : t("turn.files", { count });
}
