import "../../core/words.code.ts";
import { useRef, useState } from "preact/hooks";
import { t } from "../../core/i18n.ts";
import { visible } from "../../core/visible.ts";
import type { TurnReverted } from "../../protocol/types.gen.ts";
import type { Chat } from "../../state/chat.ts";
import { complaintOf, deliver, newKey } from "../../state/outbox.ts";
import { Button } from "../base/Button.tsx";

interface UndoProps {
  chat: Chat;
  turn: string;
  onBack: () => void;
  onClose: () => void;
}

/** Takes a turn back, after a second tap; what others changed since stays, and is told. */
export function Undo({ chat, turn, onBack, onClose }: UndoProps) {
  const [talk, setTalk] = useState(true);
  const [busy, setBusy] = useState(false);
  const [done, setDone] = useState<TurnReverted | null>(null);
  const [complaint, setComplaint] = useState("");
  const [since, setSince] = useState(0);
  // One key for one wish: a second tap, or a tap after a lost answer, asks for the same thing.
  const keys = useRef<Record<string, string>>({});
  const undo = async (skip_conflicts: boolean): Promise<void> => {
    setBusy(true);
    setComplaint("");
    const body = { conversation: talk, skip_conflicts };
    const path = { session: chat.session, turn };
    const wish = `${talk}${skip_conflicts}`;
    keys.current[wish] ??= newKey();
    const key = keys.current[wish];
    const said = deliver("revert_turn", { path, key, body });
    setSince(chat.current.peek().seq);
    setComplaint((await complaintOf(said.then(setDone))) ?? "");
    setBusy(false);
  };
  const known = done ?? (complaint ? toldOf(chat, turn, since) : null);
  if (known) {
    return <Outcome done={known} busy={busy} onOthers={() => void undo(true)} onClose={onClose} />;
  }
  return (
    <section class="undo" aria-label={t("turn.undo.do")}>
      <p>{t("turn.undo.lead")}</p>
      <label class="check">
        <input
          type="checkbox"
          checked={talk}
          onChange={(event) => setTalk(event.currentTarget.checked)}
        />
        {t("turn.undo.talk")}
      </label>
      {complaint && (
        <p class="complaint" role="alert">
          {visible(complaint)}
        </p>
      )}
      <div class="turn-ways">
        <Button onClick={onBack}>{t("turn.undo.back")}</Button>
        <Button kind="danger" disabled={busy} onClick={() => void undo(false)}>
          {t("turn.undo.do")}
        </Button>
      </div>
    </section>
  );
}

/** What the talk tells of it: a crash may cut off the answer to an undo that is done all the same. */
function toldOf(chat: Chat, turn: string, since: number): TurnReverted | null {
  const mark = chat.messages.value.findLast(
    (one) => one.seq > since && one.mark?.text === turn && one.mark.kind.endsWith("reverted"),
  )?.mark;
  if (!mark) return null;
  return { turn, reverted: mark.files, unkept: mark.not_reverted };
}

interface OutcomeProps {
  done: TurnReverted;
  busy: boolean;
  onOthers: () => void;
  onClose: () => void;
}

function Outcome({ done, busy, onOthers, onClose }: OutcomeProps) {
  const { reverted = [], conflicts = [], unkept = [] } = done;
  // Without a wish to skip them, even one conflict keeps everything as it is.
  const stays = conflicts.length > 0 && reverted.length === 0;
  return (
    <section class="undo" role="status">
      {!stays && (
        <p>
          {reverted.length > 0
            ? t("turn.undo.done", { count: reverted.length })
            : t("turn.undo.nothing")}
        </p>
      )}
      {conflicts.length > 0 && (
        <>
          <p>{t(stays ? "turn.undo.stays" : "turn.undo.left")}</p>
          <ul>
            {conflicts.map(({ path, what }) => (
              <li key={path}>
                <span class="change-path">{visible(path)}</span> {visible(what)}
              </li>
            ))}
          </ul>
        </>
      )}
      {unkept.length > 0 && (
        <>
          <p>{t("turn.undo.unkept")}</p>
          <ul>
            {unkept.map((sentence) => (
              <li key={sentence}>{visible(sentence)}</li>
            ))}
          </ul>
        </>
      )}
      <div class="turn-ways">
        {stays && (
          <Button disabled={busy} onClick={onOthers}>
            {t("turn.undo.rest")}
          </Button>
        )}
        <Button onClick={onClose}>{t("close")}</Button>
      </div>
    </section>
  );
}
