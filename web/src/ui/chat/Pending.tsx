import "../../core/words.later.ts";
import { t } from "../../core/i18n.ts";
import { visible } from "../../core/visible.ts";
import type { Chat } from "../../state/chat.ts";
import {
  contentOf,
  drafts,
  dropEntry,
  outbox,
  type PromptEntry,
  sendAgain,
} from "../../state/outbox.ts";
import { editing } from "./editing.ts";
import { UserBubble } from "./Message.tsx";
import { waits } from "./QueueBar.tsx";

/** Prompts that begin in a moment, and those that are still on their way to the session. */
export function Pending({ chat }: { chat: Chat }) {
  const mine = outbox.value.filter((entry) => entry.session === chat.session);
  return (
    <>
      {!waits(chat) &&
        chat.queue.value.map((prompt) => (
          <article key={prompt.prompt} class="entry user" aria-label={t("chat.you")}>
            <UserBubble content={prompt.content} />
          </article>
        ))}
      {mine.map((entry) => (
        <PendingEntry key={entry.key} entry={entry} />
      ))}
    </>
  );
}

/** A prompt of which the log knows nothing yet. */
export function PendingEntry({ entry }: { entry: PromptEntry }) {
  const { key, session, text, blocks, turn, state, message, code } = entry;
  const stuck = state === "refused" || state === "unknown";
  const shown = stuck || state === "sending" ? state : "accepted";
  const edit = (): void => {
    dropEntry(key);
    drafts.write(session, text);
    // What it was to replace may be gone by another device: then it is a new message.
    editing.value = { session, text, blocks, ...(turn && code !== "rejected" && { turn }) };
  };
  return (
    <article class="entry user" aria-label={t("chat.you")}>
      <UserBubble content={contentOf(entry)} />
      <p class={stuck ? "delivery bad" : "delivery"}>
        {t(`send.${shown}`, { message: visible(message) })}
        {stuck && (
          <span class="delivery-actions">
            <button type="button" class="link-button" onClick={() => sendAgain(key)}>
              {t("retry")}
            </button>
            <button type="button" class="link-button" onClick={edit}>
              {t("send.edit")}
            </button>
          </span>
        )}
      </p>
    </article>
  );
}
