import "../../core/words.code.ts";
import { useState } from "preact/hooks";
import { t } from "../../core/i18n.ts";
import { visible, visibleName } from "../../core/visible.ts";
import type { SessionInfo, UpdateSession } from "../../protocol/types.gen.ts";
import { complaintOf, deliver, newKey } from "../../state/outbox.ts";
import { leaveSession, putSession, refreshSessions } from "../../state/sessions.ts";
import { Button } from "../base/Button.tsx";
import { Sheet } from "../base/Sheet.tsx";

/** What can be done with a session: name it, put it away, delete it. */
export function SessionSheet({ row, onClose }: { row: SessionInfo; onClose: () => void }) {
  const { id, archived = false } = row;
  const [title, setTitle] = useState(visibleName(row.title ?? ""));
  const [complaint, setComplaint] = useState<string | null>(null);
  const change = async (body: UpdateSession): Promise<void> => {
    const said = deliver("update_session", { path: { session: id }, key: newKey(), body });
    const problem = await complaintOf(said.then(putSession));
    setComplaint(problem);
    if (problem !== null) return;
    onClose();
    await refreshSessions();
  };
  return (
    <Sheet title={visibleName(row.title ?? "") || t("sessions.untitled")} onClose={onClose}>
      <form
        class="field"
        onSubmit={(event) => {
          event.preventDefault();
          if (title.trim()) void change({ title: title.trim() });
        }}
      >
        <label class="label" for="session-title">
          {t("sessions.title.label")}
        </label>
        <input
          id="session-title"
          dir="auto"
          value={title}
          onInput={(event) => setTitle(event.currentTarget.value)}
        />
        {title.trim() && title.trim() !== row.title && (
          <Button type="submit">{t("sessions.rename")}</Button>
        )}
      </form>
      {complaint !== null && (
        <p class="complaint" role="alert">
          {visible(complaint)}
        </p>
      )}
      <div class="turn-ways">
        <Button onClick={() => void change({ archived: !archived })}>
          {t(archived ? "sessions.unarchive" : "sessions.archive")}
        </Button>
        <Button
          kind="danger"
          onClick={() => {
            leaveSession(id);
            onClose();
          }}
        >
          {t("sessions.delete")}
        </Button>
      </div>
    </Sheet>
  );
}
