import "../../core/words.code.ts";
import { useEffect, useState } from "preact/hooks";
import { t } from "../../core/i18n.ts";
import { visible } from "../../core/visible.ts";
import { ApiFault, call } from "../../platform/api.ts";
import type { FileChange } from "../../protocol/types.gen.ts";
import type { Chat } from "../../state/chat.ts";
import { deliver, newKey } from "../../state/outbox.ts";
import { go } from "../../state/router.ts";
import { putSession } from "../../state/sessions.ts";
import { Button } from "../base/Button.tsx";
import { Sheet } from "../base/Sheet.tsx";
import { Changes } from "./Changes.tsx";
import { Undo } from "./Undo.tsx";

interface TurnSheetProps {
  chat: Chat;
  turn: string;
  onClose: () => void;
}

/** What a turn changed, and the ways on from it: again, branch, undo. */
export function TurnSheet({ chat, turn, onClose }: TurnSheetProps) {
  const [undoing, setUndoing] = useState(false);
  const [complaint, setComplaint] = useState("");
  const { last_turn, turn: running } = chat.current.value;
  const path = { session: chat.session };
  const attempt = async (work: () => Promise<unknown>): Promise<void> => {
    setComplaint("");
    try {
      await work();
      onClose();
    } catch (error) {
      if (!(error instanceof ApiFault)) throw error;
      setComplaint(error.message);
    }
  };
  const again = () => attempt(() => deliver("retry", { path, key: newKey() }));
  const branch = () =>
    attempt(async () => {
      const made = await deliver("fork_session", { path, key: newKey(), body: { turn } });
      putSession(made);
      go({ page: "chat", session: made.id });
    });
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
        <Undo
          session={chat.session}
          turn={turn}
          onBack={() => setUndoing(false)}
          onClose={onClose}
        />
      ) : (
        <div class="turn-ways">
          {running === null && last_turn?.id === turn && (
            <Button onClick={() => void again()}>{t("turn.again")}</Button>
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
