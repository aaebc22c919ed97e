import "../../core/words.code.ts";
import { t } from "../../core/i18n.ts";
import { formatSpan, leftMs } from "../../core/time.ts";
import { visible } from "../../core/visible.ts";
import type { Fault } from "../../protocol/types.gen.ts";
import type { Chat } from "../../state/chat.ts";
import { complaintOf, deliver, newKey } from "../../state/outbox.ts";
import { Button } from "../base/Button.tsx";
import { useNow } from "../hooks/useNow.ts";

/** The model that a fault names, as a session takes it. */
export function suggestedModel(fault: Fault, model: string): string | null {
  const name = fault.details?.suggested_model;
  if (typeof name !== "string" || name === "") return null;
  const provider = model.split("/", 1)[0] ?? "";
  return name.startsWith(`${provider}/`) ? name : `${provider}/${name}`;
}

/** Says the last prompt again; tells what was wrong. */
export async function sayAgain(chat: Chat): Promise<void> {
  const path = { session: chat.session };
  chat.complaint.value = await complaintOf(deliver("retry", { path, key: newKey() }));
}

interface TurnFailureProps {
  chat: Chat;
  turn: string | null;
  fault: Fault;
  time: string;
}

/** When it can be tried again, and with which other model; of the last turn only. */
export function TurnFailure({ chat, turn, fault, time }: TurnFailureProps) {
  const view = chat.parts;
  const isLast = view.turn === null && view.last_turn?.id === turn && view.closed === null;
  const until = new Date(Date.parse(time) + (fault.retry_after_s ?? 0) * 1_000).toISOString();
  const now = useNow(isLast && Boolean(fault.retry_after_s));
  if (!isLast) return null;
  const left = leftMs(until, now, chat.clockAheadMs.value);
  const other = suggestedModel(fault, view.model);
  const change = async (model: string): Promise<void> => {
    const path = { session: chat.session };
    const said = deliver("update_session", { path, key: newKey(), body: { model } });
    chat.complaint.value = await complaintOf(said);
    if (chat.complaint.value === null) await sayAgain(chat);
  };
  return (
    <div class="turn-ways">
      <Button onClick={() => void sayAgain(chat)}>
        {t("retry")}
        {left > 0 && ` · ${formatSpan(left)}`}
      </Button>
      {other !== null && other !== view.model && (
        <Button kind="main" onClick={() => void change(other)}>
          {t("turn.switch", { model: visible(other) })}
        </Button>
      )}
    </div>
  );
}
