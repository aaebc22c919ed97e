/** What became of the page's connections: for people who look for the cause of a trouble. */

import { signal } from "@preact/signals";
import type { LinkState } from "../core/link.ts";

/** One change of a connection. */
export interface Transition {
  atMs: number;
  session: string;
  phase: LinkState["phase"];
  attempt: number;
  failures: number;
  failed: LinkState["failed"];
}

/** More than that says nothing new. */
const MOST = 200;

/** The last ones, oldest first; gone when the page is left. */
export const connectionLog = signal<readonly Transition[]>([]);

/** Notes a state of a connection, unless it is the one before. */
export function noteLink(session: string, state: LinkState, atMs: number): void {
  const { phase, attempt, failures, failed } = state;
  const known = connectionLog.peek();
  const last = known.at(-1);
  // An attempt that changes nothing else is no news.
  const isSame = last?.phase === phase && last.failures === failures && last.failed === failed;
  if (isSame && last.session === session) return;
  const entry = { atMs, session, phase, attempt, failures, failed };
  connectionLog.value = [...known, entry].slice(-MOST);
}
