import "../../core/words.code.ts";
import { useEffect, useState } from "preact/hooks";
import { localeNow, t, type Word } from "../../core/i18n.ts";
import { dayOf, formatWhen } from "../../core/time.ts";
import { visible, visibleName } from "../../core/visible.ts";
import type { SessionInfo } from "../../protocol/types.gen.ts";
import { route } from "../../state/router.ts";
import {
  findSessions,
  leaveFault,
  leaving,
  listState,
  loadOlder,
  older,
  refreshSessions,
  sessions,
  stayWith,
} from "../../state/sessions.ts";
import { Button, IconButton } from "../base/Button.tsx";
import { Icon } from "../base/Icon.tsx";
import { Link } from "../base/Link.tsx";
import { sessionAsked } from "../shell/drawer.ts";

/** Typing must pause for this long before the server is asked, in milliseconds. */
const PAUSE_MS = 200;

const GROUPS = ["needs", "working", "today", "earlier"] as const;
type Group = (typeof GROUPS)[number];
/** Rows, nothing yet, or none to be had. */
type Found = readonly SessionInfo[] | null | "failed";

/** Where a row stands: what waits for a person comes first. */
export function groupOf(row: SessionInfo, nowMs: number): Group {
  if ((row.pending ?? 0) > 0) return "needs";
  if (row.turn) return "working";
  return dayOf(Date.parse(row.updated)) === dayOf(nowMs) ? "today" : "earlier";
}

/** All sessions, and a way to begin one. */
export function SessionList({ onPick }: { onPick: () => void }) {
  const [sought, setSought] = useState("");
  const [archived, setArchived] = useState(false);
  const found = useFound(sought.trim(), archived);
  const isSought = sought.trim() !== "";
  const isAll = !isSought && !archived;
  const rows = (isAll ? sessions.value : found === "failed" ? [] : (found ?? [])).filter(
    ({ id }) => !leaving.value.has(id),
  );
  const groups = isAll ? GROUPS : (["found"] as const);
  const now = Date.now();
  return (
    <nav class="sessions" aria-label={t("sessions.title")}>
      <Link className="button main new-chat" to={{ page: "new" }} onGo={onPick}>
        <Icon name="plus" />
        {t("sessions.new")}
      </Link>
      <div class="field">
        <input
          id="session-search"
          type="search"
          value={sought}
          placeholder={t("sessions.search")}
          aria-label={t("sessions.search")}
          onInput={(event) => setSought(event.currentTarget.value)}
        />
      </div>
      <div class="sessions-scroll">
        {rows.length === 0 && <NoRows found={isAll ? undefined : found} sought={isSought} />}
        {groups.map((group) => (
          <RowGroup
            key={group}
            label={archived ? "sessions.archived" : `group.${group}`}
            rows={group === "found" ? rows : rows.filter((row) => groupOf(row, now) === group)}
            now={now}
            onPick={onPick}
          />
        ))}
        {isAll && older.value !== null && (
          <Button onClick={() => void loadOlder()}>{t("sessions.more")}</Button>
        )}
        <button type="button" class="link-button" onClick={() => setArchived(!archived)}>
          {t(archived ? "turn.undo.back" : "sessions.archived")}
        </button>
      </div>
      <Leaving />
    </nav>
  );
}

/** What a search finds; asked anew when the list has moved, nothing while no answer has come. */
function useFound(sought: string, archived: boolean): Found {
  const [found, setFound] = useState<Found>(null);
  const list = sessions.value;
  useEffect(() => setFound(null), [sought, archived]);
  useEffect(() => {
    if (sought === "" && !archived) return;
    let left = false;
    const timer = setTimeout(() => {
      void findSessions(sought, archived).then((rows) => left || setFound(rows ?? "failed"));
    }, PAUSE_MS);
    return () => {
      left = true;
      clearTimeout(timer);
    };
  }, [sought, archived, list]);
  return found;
}

/** What is deleted in a moment, with the way back. */
function Leaving() {
  const [id] = [...leaving.value].filter(([, timer]) => timer).at(-1) ?? [];
  if (id === undefined && !leaveFault.value) return null;
  return (
    <p class="snackbar" role="status">
      {id === undefined ? visible(leaveFault.value) : t("sessions.deleted")}
      {id !== undefined && (
        <button type="button" class="link-button" onClick={() => stayWith(id)}>
          {t("turn.undo.do")}
        </button>
      )}
    </p>
  );
}

function NoRows({ found, sought }: { found: Found | undefined; sought: boolean }) {
  const state = found === undefined ? listState.value : (found ?? "loading");
  if (state === "loading") return <p class="quiet">{t("chat.loading")}</p>;
  if (state !== "failed") {
    const none = found === undefined ? "sessions.none" : "sessions.archived.none";
    return <p class="quiet">{t(sought ? "palette.none" : none)}</p>;
  }
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
    <section class={label}>
      <h2 class="label">{t(label)}</h2>
      <ul>
        {rows.map((row) => (
          <li key={row.id} class="session-line">
            <Row row={row} now={now} onPick={onPick} />
            <IconButton
              icon="more"
              label={t("menu.open")}
              onClick={() => {
                sessionAsked.value = row;
              }}
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
  onPick: () => void;
}

function Row({ row, now, onPick }: RowProps) {
  const here = route.value;
  const isHere = here.page === "chat" && here.session === row.id;
  const state = stateOf(row);
  const isNew = row.unread === true && !isHere;
  return (
    <Link
      className={isNew ? "session-row unread" : "session-row"}
      to={{ page: "chat", session: row.id }}
      current={isHere}
      onGo={onPick}
    >
      <span class="session-title">{visibleName(row.title ?? "") || t("sessions.untitled")}</span>
      {row.last_line && <span class="session-last">{visibleName(row.last_line)}</span>}
      <span class="session-meta">
        {isNew && <span class="dot unread">{t("sessions.unread")}</span>}
        {state && <span class={`dot ${state}`}>{t(`group.${state}`)}</span>}
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
