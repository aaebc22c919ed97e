import "../../core/words.code.ts";
import { t } from "../../core/i18n.ts";
import type { Block, PromptBlock } from "../../protocol/types.gen.ts";
import type { Chat } from "../../state/chat.ts";
import { IconButton } from "../base/Button.tsx";
import { editing } from "../chat/editing.ts";
import { plainText } from "../chat/Message.tsx";
import { Clock } from "./Clock.tsx";

interface OwnFooterProps {
  chat: Chat;
  turn: string;
  content: readonly Block[];
  time: string;
}

/** Brings what was said back into the composer, to be said anew in its place. */
export function editOwn(chat: Chat, turn: string, content: readonly Block[]): void {
  if (chat.turn.peek()) {
    chat.complaint.value = t("turn.first");
    return;
  }
  // What the text mentions is looked for again.
  const files = content.filter((block) =>
    block.type === "file" ? !block.path : block.type === "image",
  );
  const blocks = files as readonly PromptBlock[];
  editing.value = { session: chat.session, text: plainText(content), blocks, turn };
}

/**
 * When something was said, and the way to say it otherwise.
 *
 * It stays as it is while turns come and go: what is being read must not move.
 */
export function OwnFooter({ chat, turn, content, time }: OwnFooterProps) {
  return (
    <div class="message-actions">
      <Clock time={time} />
      {chat.current.peek().closed === null && (
        <IconButton
          icon="pencil"
          label={t("send.edit")}
          onClick={() => editOwn(chat, turn, content)}
        />
      )}
    </div>
  );
}
