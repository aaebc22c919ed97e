import "../../core/words.later.ts";
import { localeNow, t, type Word } from "../../core/i18n.ts";
import { dayOf, formatWhen } from "../../core/time.ts";
import { visibleName } from "../../core/visible.ts";
import type { SessionInfo } from "../../protocol/types.gen.ts";
import { route } from "../../state/router.ts";
import { listState, loadOlder, older, refreshSessions, sessions } from "../../state/sessions.ts";
import { Button } from "../base/Button.tsx";
import { Icon } from "../base/Icon.tsx";
import { Link } from "../base/Link.tsx";

const GROUPS = ["needs", "working", "today", "earlier"] as const;
type Group = (typeof GROUPS)[number];

/** Where a row stands: what waits for a person comes first. */
export function groupOf(row: SessionInfo, nowMs: number): Group {
  if ((row.pending ?? 0) > 0) return "needs";
  if (row.turn) return "working";
  return dayOf(Date.parse(row.updated)) === dayOf(nowMs) ? "today" : "earlier";
}

/** All sessions, and a way to begin one. */
export function SessionList({ onPick }: { onPick: () => void }) {
  const rows = sessions.value;
  const now = Date.now();
  return (
    <nav class="sessions" aria-label={t("sessions.title")}>
      <Link className="button main new-chat" to={{ page: "new" }} onGo={onPick}>
        <Icon name="plus" />
        {t("sessions.new")}
      </Link>
      <div class="sessions-scroll">
        {rows.length === 0 && <NoRows />}
        {GROUPS.map((group) => (
          <RowGroup
            key={group}
            label={`sessions.${group}`}
            rows={rows.filter((row) => groupOf(row, now) === group)}
            now={now}
            onPick={onPick}
          />
        ))}
        {older.value !== null && (
          <Button onClick={() => void loadOlder()}>{t("sessions.more")}</Button>
        )}
      </div>
    </nav>
  );
}

function NoRows() {
  if (listState.value === "loading") return <p class="quiet">{t("chat.loading")}</p>;
  if (listState.value === "ready") return <p class="quiet">{t("sessions.none")}</p>;
  return (
    <p class="quiet">
      {t("sessions.failed")}{" "}
      <button type="button" class="link-button" onClick={() => void refreshSessions()}>
        {t("retry")}
      </button>
    </p>
  );
}

interface RowGroupProps {
  label: Word;
  rows: readonly SessionInfo[];
  now: number;
  onPick: () => void;
}

function RowGroup({ label, rows, now, onPick }: RowGroupProps) {
  if (rows.length === 0) return null;
  return (
    <section>
      <h2 class="label">{t(label)}</h2>
      <ul>
        {rows.map((row) => (
          <li key={row.id}>
            <Row row={row} now={now} onPick={onPick} />
          </li>
        ))}
      </ul>
    </section>
  );
}

interface RowProps {
  row: SessionInfo;
  now: number;
  onPick: () => void;
}

function Row({ row, now, onPick }: RowProps) {
  const here = route.value;
  const isHere = here.page === "chat" && here.session === row.id;
  const state = stateOf(row);
  return (
    <Link
      className="session-row"
      to={{ page: "chat", session: row.id }}
      current={isHere}
      onGo={onPick}
    >
      <span class="session-title">{visibleName(row.title ?? "") || t("sessions.untitled")}</span>
      <span class="session-meta">
        {state && <span class={`dot ${state}`}>{t(`sessions.${state}`)}</span>}
        <span>{formatWhen(row.updated, now, localeNow())}</span>
      </span>
    </Link>
  );
}

function stateOf(row: SessionInfo): "needs" | "working" | "queued" | null {
  if ((row.pending ?? 0) > 0) return "needs";
  if (row.turn) return "working";
  return (row.queued ?? 0) > 0 ? "queued" : null;
}
