import "../../core/words.code.ts";
import { useEffect, useState } from "preact/hooks";
import { t } from "../../core/i18n.ts";
import { visible } from "../../core/visible.ts";
import { ApiFault, call } from "../../platform/api.ts";
import { copyText } from "../../platform/clipboard.ts";
import type { FileChange } from "../../protocol/types.gen.ts";
import type { Chat } from "../../state/chat.ts";
import { complaintOf, deliver, newKey } from "../../state/outbox.ts";
import { go } from "../../state/router.ts";
import { putSession } from "../../state/sessions.ts";
import { Button } from "../base/Button.tsx";
import { Sheet } from "../base/Sheet.tsx";
import { Changes } from "./Changes.tsx";
import { Undo } from "./Undo.tsx";

interface TurnSheetProps {
  chat: Chat;
  turn: string;
  /** The answer, as Markdown. */
  text: string;
  onClose: () => void;
}

/** What a turn changed, and the ways on from it: copy, share, branch, undo. */
export function TurnSheet({ chat, turn, text, onClose }: TurnSheetProps) {
  const [undoing, setUndoing] = useState(false);
  const [complaint, setComplaint] = useState("");
  const path = { session: chat.session };
  const branch = async (): Promise<void> => {
    const said = deliver("fork_session", { path, key: newKey(), body: { turn } });
    const problem = await complaintOf(
      said.then((made) => {
        putSession(made);
        go({ page: "chat", session: made.id });
      }),
    );
    setComplaint(problem ?? "");
    if (problem === null) onClose();
  };
  const copy = async (): Promise<void> => {
    if (await copyText(text)) onClose();
  };
  const share = (): void => {
    // Who gives it up has not asked for a word about it.
    navigator.share({ text }).then(onClose, () => undefined);
  };
  return (
    <Sheet title={t("turn.title")} onClose={onClose}>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must take the keys */}
      <div class="sheet-scroll" tabIndex={0}>
        <TurnChanges session={chat.session} turn={turn} />
      </div>
      {complaint && (
        <p class="complaint" role="alert">
          {visible(complaint)}
        </p>
      )}
      {undoing ? (
        <Undo chat={chat} turn={turn} onBack={() => setUndoing(false)} onClose={onClose} />
      ) : (
        <div class="turn-ways">
          {text !== "" && <Button onClick={() => void copy()}>{t("turn.markdown")}</Button>}
          {text !== "" && "share" in navigator && (
            <Button onClick={share}>{t("turn.share")}</Button>
          )}
          <Button onClick={() => void branch()}>{t("turn.branch")}</Button>
          <Button kind="danger" onClick={() => setUndoing(true)}>
            {t("turn.undo")}
          </Button>
        </div>
      )}
    </Sheet>
  );
}

interface Loaded {
  changes: readonly FileChange[];
  next: string | null;
  state: "loading" | "ready" | "failed";
  fault: string;
}

const NOTHING: Loaded = { changes: [], next: null, state: "loading", fault: "" };

function TurnChanges({ session, turn }: { session: string; turn: string }) {
  const [loaded, setLoaded] = useState(NOTHING);
  const load = async (from: Loaded): Promise<void> => {
    setLoaded({ ...from, state: "loading" });
    try {
      const page = await call("get_diff", {
        path: { session, turn },
        query: from.next === null ? {} : { after: from.next },
      });
      const changes = [...from.changes, ...page.changes];
      setLoaded({ changes, next: page.next ?? null, state: "ready", fault: "" });
    } catch (error) {
      if (!(error instanceof ApiFault)) throw error;
      setLoaded({ ...from, state: "failed", fault: error.message });
    }
  };
  useEffect(() => void load(NOTHING), [session, turn]);
  const { changes, next, state, fault } = loaded;
  return (
    <>
      <Changes changes={changes} />
      {state === "loading" && <p class="quiet">{t("turn.diff.loading")}</p>}
      {state === "ready" && changes.length === 0 && <p class="quiet">{t("turn.diff.none")}</p>}
      {state === "failed" && (
        <p class="complaint" role="alert">
          {t("turn.diff.failed", { message: visible(fault) })}{" "}
          <button type="button" class="link-button" onClick={() => void load(loaded)}>
            {t("retry")}
          </button>
        </p>
      )}
      {state === "ready" && next !== null && (
        <Button onClick={() => void load(loaded)}>{t("turn.diff.next")}</Button>
      )}
    </>
  );
}
