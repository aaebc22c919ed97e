import "../../core/words.code.ts";
import { t } from "../../core/i18n.ts";
import { visible } from "../../core/visible.ts";
import { call } from "../../platform/api.ts";
import type { QueuedPrompt } from "../../protocol/types.gen.ts";
import type { Chat } from "../../state/chat.ts";
import { complaintOf } from "../../state/outbox.ts";
import { IconButton } from "../base/Button.tsx";
import { plainText } from "./Message.tsx";

/** Whether a stop holds back what waits. */
function isHeld(chat: Chat): boolean {
  return chat.turn.value === null && chat.parts.last_turn?.outcome === "cancelled";
}

/** Whether prompts wait for longer than a moment. */
export function waits(chat: Chat): boolean {
  return chat.turn.value !== null || isHeld(chat);
}

/** The prompts that wait: each can be taken back, and those that a stop holds be let go. */
export function QueueBar({ chat }: { chat: Chat }) {
  const queue = chat.queue.value;
  if (queue.length === 0 || !waits(chat)) return null;
  const path = { session: chat.session };
  const ask = async (work: Promise<unknown>): Promise<void> => {
    chat.complaint.value = await complaintOf(work);
  };
  return (
    <section class="queue" aria-label={t("queue.label")}>
      {isHeld(chat) && (
        <p class="queue-head">
          {t("queue.held")}
          <button
            type="button"
            class="link-button"
            onClick={() => void ask(call("resume_queue", { path }))}
          >
            {t("queue.resume")}
          </button>
        </p>
      )}
      <ul>
        {queue.map((one) => (
          <Waiting
            key={one.prompt}
            prompt={one}
            onRemove={() =>
              void ask(call("withdraw_prompt", { path: { ...path, prompt: one.prompt } }))
            }
          />
        ))}
      </ul>
    </section>
  );
}

function Waiting({ prompt, onRemove }: { prompt: QueuedPrompt; onRemove: () => void }) {
  const text = visible(plainText(prompt.content)) || t("chat.picture");
  return (
    <li>
      <span class="quiet">{t("compose.held")}</span>
      <span class="queue-text">{text}</span>
      <IconButton icon="close" label={t("attach.remove", { name: text })} onClick={onRemove} />
    </li>
  );
}
