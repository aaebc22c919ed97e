import "../../core/words.later.ts";
import { localeNow, t, type Word } from "../../core/i18n.ts";
import { dayOf, formatWhen } from "../../core/time.ts";
import { visibleName } from "../../core/visible.ts";
import type { SessionInfo } from "../../protocol/types.gen.ts";
import { formatRoute, go, route } from "../../state/router.ts";
import { listState, loadOlder, older, refreshSessions, sessions } from "../../state/sessions.ts";
import { Button } from "../base/Button.tsx";
import { Icon } from "../base/Icon.tsx";

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
  const pick = (event: MouseEvent, to: Parameters<typeof go>[0]): void => {
    if (event.metaKey || event.ctrlKey || event.shiftKey) return;
    event.preventDefault();
    go(to);
    onPick();
  };
  return (
    <nav class="sessions" aria-label={t("sessions.title")}>
      <a
        class="button main new-chat"
        href={formatRoute({ page: "new" })}
        onClick={(event) => pick(event, { page: "new" })}
      >
        <Icon name="plus" />
        {t("sessions.new")}
      </a>
      <div class="sessions-scroll">
        {rows.length === 0 && <NoRows />}
        {GROUPS.map((group) => (
          <RowGroup
            key={group}
            label={`sessions.${group}`}
            rows={rows.filter((row) => groupOf(row, now) === group)}
            now={now}
            pick={pick}
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
  pick: (event: MouseEvent, to: Parameters<typeof go>[0]) => void;
}

function RowGroup({ label, rows, now, pick }: RowGroupProps) {
  if (rows.length === 0) return null;
  return (
    <section>
      <h2 class="label">{t(label)}</h2>
      <ul>
        {rows.map((row) => (
          <li key={row.id}>
            <Row
              row={row}
              now={now}
              onClick={(event) => pick(event, { page: "chat", session: row.id })}
            />
          </li>
        ))}
      </ul>
    </section>
  );
}

interface RowProps {
  row: SessionInfo;
  now: number;
  onClick: (event: MouseEvent) => void;
}

function Row({ row, now, onClick }: RowProps) {
  const here = route.value;
  const isHere = here.page === "chat" && here.session === row.id;
  const state = stateOf(row);
  return (
    <a
      class="session-row"
      href={formatRoute({ page: "chat", session: row.id })}
      aria-current={isHere ? "page" : undefined}
      onClick={onClick}
    >
      <span class="session-title">{visibleName(row.title ?? "") || t("sessions.untitled")}</span>
      <span class="session-meta">
        {state && <span class={`dot ${state}`}>{t(`sessions.${state}`)}</span>}
        <span>{formatWhen(row.updated, now, localeNow())}</span>
      </span>
    </a>
  );
}

function stateOf(row: SessionInfo): "needs" | "working" | "queued" | null {
  if ((row.pending ?? 0) > 0) return "needs";
  if (row.turn) return "working";
  return (row.queued ?? 0) > 0 ? "queued" : null;
}
