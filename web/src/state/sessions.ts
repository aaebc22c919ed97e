/** The list of sessions, newest first. */

import { signal } from "@preact/signals";
import { makeKey } from "../core/ids.ts";
import { ApiFault, call, learn } from "../platform/api.ts";
import type { SessionInfo, SessionList } from "../protocol/types.gen.ts";
import { signOut } from "./account.ts";
import { go, route } from "./router.ts";

const PAGE = 50;
/** A deletion can be taken back for so long, in milliseconds. */
const UNDO_MS = 6_000;
/** Nobody who signs out waits longer for what is still to be deleted, in milliseconds. */
const LEAVE_MS = 3_000;

/** The rows that were loaded. */
export const sessions = signal<readonly SessionInfo[]>([]);
/** Whether they were loaded at least once, and how the last try went. */
export const listState = signal<"loading" | "ready" | "failed">("loading");
/** The cursor of older rows; nothing when all are here. */
export const older = signal<string | null>(null);

/** The rows with fresh ones put in, newest first. */
export function mergeRows(
  known: readonly SessionInfo[],
  fresh: readonly SessionInfo[],
): SessionInfo[] {
  const rows = new Map([...known, ...fresh].map((row) => [row.id, row]));
  return [...rows.values()].sort((a, b) => (a.updated < b.updated ? 1 : -1));
}

async function load(after: string | null): Promise<SessionList | undefined> {
  try {
    const page = await call("list_sessions", {
      query: after === null ? { limit: PAGE } : { limit: PAGE, after },
    });
    listState.value = "ready";
    return page;
  } catch (error) {
    if (!(error instanceof ApiFault)) throw error;
    if (error.code === "unauthorized") signOut(true);
    listState.value = sessions.value.length > 0 ? "ready" : "failed";
    return undefined;
  }
}

/** Loads the newest rows again. A row that is gone from among them was deleted. */
export async function refreshSessions(): Promise<void> {
  const page = await load(null);
  if (!page) return;
  const oldest = page.next == null ? "" : (page.sessions.at(-1)?.updated ?? "");
  const beyond = sessions.value.filter((row) => row.updated < oldest);
  sessions.value = mergeRows(beyond, page.sessions);
  if (beyond.length === 0) older.value = page.next ?? null;
}

/** Loads the next older rows. */
export async function loadOlder(): Promise<void> {
  const page = older.value === null ? undefined : await load(older.value);
  if (!page) return;
  sessions.value = mergeRows(sessions.value, page.sessions);
  older.value = page.next ?? null;
}

/** Puts one row in without asking the server. */
export function putSession(row: SessionInfo): void {
  sessions.value = mergeRows(sessions.value, [row]);
}

type Timer = ReturnType<typeof setTimeout> | undefined;

/** Rows that are deleted in a moment, unless somebody takes that back; no timer once that is too late. */
export const leaving = signal<ReadonlyMap<string, Timer>>(new Map());
/** Why the last row that was to be deleted is still there. */
export const leaveFault = signal("");

/** Deletes a session when the time to take it back is over; who reads it is led away. */
export function leaveSession(id: string): void {
  stayWith(id);
  leaveFault.value = "";
  const timer = setTimeout(() => void remove(id), UNDO_MS);
  leaving.value = new Map([...leaving.peek(), [id, timer]]);
  // Of a page that is out of sight nobody knows whether it ever comes back.
  for (const event of ["pagehide", "visibilitychange"]) addEventListener(event, leaveNow, true);
  // What deletes must be there by then.
  void learn().catch(() => undefined);
  const here = route.peek();
  if (here.page === "chat" && here.session === id) go({ page: "new" }, true);
}

/** Takes a deletion back. */
export function stayWith(id: string): void {
  const left = new Map(leaving.peek());
  clearTimeout(left.get(id));
  left.delete(id);
  leaving.value = left;
}

/** Deletes at once all that waits: who goes takes nothing back. */
function leaveNow(): void {
  for (const id of leaving.peek().keys()) void remove(id);
}

/** Deletes at once all that waits, for one who signs out: returns when it was tried, or soon. */
export async function leaveAll(): Promise<void> {
  const all = [...leaving.peek().keys()].map((id) => remove(id, false));
  await Promise.race([Promise.all(all), new Promise((go) => setTimeout(go, LEAVE_MS))]);
}

async function remove(session: string, stays = true): Promise<void> {
  const timer = leaving.peek().get(session);
  if (!timer) return;
  clearTimeout(timer);
  leaving.value = new Map([...leaving.peek(), [session, undefined]]);
  try {
    await call("delete_session", {
      path: { session },
      key: makeKey((bytes) => crypto.getRandomValues(bytes)),
    });
    drop(session);
  } catch (error) {
    if (!(error instanceof ApiFault)) throw error;
    if (error.code === "gone" || error.code === "not_found") drop(session);
    else leaveFault.value = error.message;
  }
  if (stays) await refreshSessions();
  stayWith(session);
}

/** Takes a row out without asking the server: it may not answer a page that is just put away. */
function drop(session: string): void {
  sessions.value = sessions.value.filter(({ id }) => id !== session);
}

/** The rows that a search finds, or those that are put away; nothing when they do not come. */
export async function findSessions(
  search: string,
  archived: boolean,
): Promise<readonly SessionInfo[] | null> {
  try {
    const query = { limit: PAGE, archived: String(archived), ...(search && { search }) };
    return (await call("list_sessions", { query })).sessions;
  } catch (error) {
    if (!(error instanceof ApiFault)) throw error;
    return null;
  }
}
