/** Copies of what was read, for moments without a server: made, shown and wiped. */

import { effect, signal } from "@preact/signals";
import { makeCopy, type SessionCopy, surplus, usableCopies } from "../core/copies.ts";
import { ApiFault, call } from "../platform/api.ts";
import { claimCopies, readCopies, wipeCopies, writeCopy } from "../platform/copies.ts";
import { isSecure } from "../platform/secure.ts";
import { access, identity, signOut } from "./account.ts";
import { chat } from "./chat.ts";
import { listState, refreshSessions, sessions } from "./sessions.ts";
import { makeSwitch } from "./switch.ts";

/** A copy is made when a session has been still for so long, in milliseconds. */
const STILL_MS = 1_500;
/** A start that has heard nothing by then shows a copy meanwhile, in milliseconds. */
const PATIENCE_MS = 4_000;
/** How often a server is asked whether it is back, in milliseconds. */
const ASK_AGAIN_MS = 10_000;

/** Whether copies are kept at all. */
export const keepsCopies = makeSwitch("copies", true);
/** Whether nobody could be asked who this is: what is shown are copies. */
export const offline = signal(false);

/** Keeps, shows and wipes copies from now on. */
export function startCopies(): void {
  // Over plain HTTP no page starts without its server, so that nobody could read them.
  if (!isSecure) return;
  effect(() => wipeWhenNobodys());
  effect(() => keepWhatIsRead());
  effect(() => startWithout());
  effect(() => showCopyOfChat());
  effect(() => comeBack());
}

/** Copies are one user's, and only as long as the switch is on. */
function wipeWhenNobodys(): void {
  if (access.value === "out" || !keepsCopies.value) {
    offline.value = false;
    void wipeCopies();
    return;
  }
  const owner = identity.value;
  if (access.value === "in" && owner && !offline.peek()) void claimCopies(owner);
}

function keepWhatIsRead(): (() => void) | undefined {
  const open = chat.value;
  const owner = identity.value;
  if (!open?.loaded.value || open.copied.value !== null || !owner || !keepsCopies.value) return;
  // Not each piece of an answer, but each entry that is finished.
  if (open.messages.value.length === 0) return;
  const keep = (): void => {
    void writeCopy(makeCopy(open.current.peek(), owner.user, Date.now()), surplus);
  };
  const timer = setTimeout(keep, STILL_MS);
  const leaving = new AbortController();
  addEventListener("pagehide", keep, { signal: leaving.signal });
  return () => {
    clearTimeout(timer);
    leaving.abort();
  };
}

/** A start to which no server answers goes on with what is kept. */
function startWithout(): (() => void) | undefined {
  if (access.value === "unreachable") void goOnWithCopies();
  if (access.value !== "asking") return;
  const timer = setTimeout(() => void goOnWithCopies(), PATIENCE_MS);
  return () => clearTimeout(timer);
}

async function goOnWithCopies(): Promise<void> {
  const kept = keepsCopies.peek() ? await readCopies() : null;
  if (!kept || access.peek() === "in" || access.peek() === "out") return;
  const copies = usableCopies(kept.copies, kept.owner.user);
  if (copies.length === 0) return;
  offline.value = true;
  identity.value = kept.owner;
  sessions.value = copies.map(({ row }) => row);
  listState.value = "ready";
  access.value = "in";
}

/** The copy of the session that was asked for, as long as nothing newer has come. */
function showCopyOfChat(): void {
  const open = chat.value;
  const user = identity.value?.user;
  if (!open || user === undefined || open.loaded.value) return;
  if (!offline.value && open.state.value.failures === 0) return;
  void findCopy(open.session, user).then((copy) => {
    if (copy && chat.peek() === open && !open.loaded.peek()) open.showCopy(copy.view, copy.at);
  });
}

async function findCopy(session: string, user: string): Promise<SessionCopy | undefined> {
  const kept = await readCopies();
  return usableCopies(kept?.copies ?? [], user).find((copy) => copy.session === session);
}

/** Asks until a server says who this is. */
function comeBack(): (() => void) | undefined {
  if (!offline.value) return;
  const ask = (): void => {
    if (document.visibilityState === "visible") void askAgain();
  };
  const timer = setInterval(ask, ASK_AGAIN_MS);
  const leaving = new AbortController();
  addEventListener("online", ask, { signal: leaving.signal });
  document.addEventListener("visibilitychange", ask, { signal: leaving.signal });
  return () => {
    clearInterval(timer);
    leaving.abort();
  };
}

/** Asks now whether the server is there again. */
export async function askAgain(): Promise<void> {
  const before = identity.peek()?.user;
  try {
    const found = await call("me");
    if (!offline.peek()) return;
    if (found.user !== before) {
      await wipeCopies();
      location.reload();
      return;
    }
    offline.value = false;
    identity.value = found;
    chat.peek()?.retryNow();
    await refreshSessions();
  } catch (error) {
    if (!(error instanceof ApiFault)) throw error;
    if (error.code === "unauthorized") signOut(true);
  }
}
