import "../../core/words.later.ts";
import { useComputed } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { t, tMaybe } from "../../core/i18n.ts";
import { formatSpan, leftMs } from "../../core/time.ts";
import { visible } from "../../core/visible.ts";
import type { SessionView } from "../../protocol/types.gen.ts";
import type { Chat } from "../../state/chat.ts";
import { localModel, watchLocalModel } from "../../state/local_model.ts";
import { useNow } from "../hooks/useNow.ts";
import { localText } from "./LocalLine.tsx";

/** What the turn does at this moment, in a few words. */
export function activityOf(view: SessionView): string {
  if (view.permissions.length > 0 || view.questions.length > 0) return t("turn.waiting.you");
  if (view.waiting) {
    const { reason } = view.waiting;
    return tMaybe(`turn.waiting.${reason}`) ?? t("turn.waiting", { reason: visible(reason) });
  }
  const block = view.open_messages.at(-1)?.content.at(-1);
  if (block?.type === "text") return t("turn.writing");
  return t(block?.type === "thinking" ? "turn.thinking" : "turn.working");
}

/** What runs for the turn; nothing when the model itself is at work. */
function runningOf({ open_calls }: SessionView): string {
  return visible(open_calls.findLast(({ status }) => status === "in_progress")?.title ?? "");
}

/** Waits during which the server's own model works for this turn. */
const OWN_WAITS = ["model_loading", "reading"];

/** What the server's own model does for this turn; nothing while a person or a tool is waited for. */
function localOf(view: SessionView, running: string): string {
  const { permissions, questions, waiting } = view;
  const waits = permissions.length + questions.length > 0;
  if (running || waits || (waiting && !OWN_WAITS.includes(waiting.reason))) return "";
  return localText();
}

/** The words of it: what the turn does, for how long, and what runs for it. */
export function WorkingWords({ chat }: { chat: Chat }) {
  const turn = chat.turn.value;
  const now = useNow(turn !== null);
  const view = chat.parts;
  // Not with each word that is written.
  const activity = useComputed(() => activityOf(view)).value;
  const { model } = view;
  const busy = turn !== null;
  useEffect(() => (busy ? watchLocalModel(model) : undefined), [busy, model]);
  if (!turn) return null;
  const elapsed = now + chat.clockAheadMs.value - Date.parse(turn.started);
  const isStopping = chat.stopping.value === turn.id;
  const running = isStopping ? "" : runningOf(view);
  const local = isStopping ? "" : localOf(view, running);
  // How far the model is says more than that it works.
  const leads =
    local && (view.waiting?.reason === "model_loading" || localModel.value?.state === "reading");
  const last = view.calls.at(-1);
  const done = leads && last?.turn === turn.id ? visible(last.title) : "";
  return (
    <>
      <span class="ring" aria-hidden="true" />
      <span>{isStopping ? t("turn.stopping") : leads ? local : activity}</span>
      <span class="quiet" aria-hidden="true">
        · {formatSpan(elapsed)}
      </span>
      {local && !leads && <span class="quiet">· {local}</span>}
      {(running || done) && <span class="activity-now">· {running || done}</span>}
    </>
  );
}

/** What else there is to say of a running turn, and how not to wait for it. */
export function WorkingMore({ chat }: { chat: Chat }) {
  const turn = chat.turn.value;
  const now = useNow(turn !== null);
  const { waiting } = chat.parts;
  // Else `until` is only when it is given up.
  const isTimed = waiting?.reason === "rate_limit" || waiting?.reason === "retry";
  const left = isTimed ? leftMs(waiting.until, now, chat.clockAheadMs.value) : 0;
  if (!turn) return null;
  return (
    <>
      {left > 0 && (
        <span class="quiet">
          {t("turn.waiting.left", { span: formatSpan(left) })}
          <button type="button" class="link-button" onClick={() => void chat.interrupt()}>
            {t("compose.cancel")}
          </button>
        </span>
      )}
      {chat.escaped.value && <span class="quiet">{t("turn.escape")}</span>}
      {turn.attempt > 0 && <span class="quiet">{t("turn.resumed")}</span>}
    </>
  );
}

/** One quiet line under the conversation while a turn runs and no step of it tells so. */
export function WorkingLine({ chat }: { chat: Chat }) {
  if (!chat.turn.value) return null;
  return (
    <p class="activity">
      <WorkingWords chat={chat} />
      <WorkingMore chat={chat} />
    </p>
  );
}
