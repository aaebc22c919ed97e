/** Where copies of sessions lie in this browser. Each failure is the same as keeping nothing. */

import type { SessionCopy } from "../core/copies.ts";
import type { Identity } from "../protocol/types.gen.ts";

const DATABASE = "towline";
const VERSION = 1;
const SESSIONS = "sessions";
const OWNER = "owner";

function finished<Value>(request: IDBRequest<Value>): Promise<Value> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

async function open(): Promise<IDBDatabase> {
  const request = indexedDB.open(DATABASE, VERSION);
  request.onupgradeneeded = () => {
    request.result.createObjectStore(SESSIONS, { keyPath: "session" });
    request.result.createObjectStore(OWNER);
  };
  return finished(request);
}

type Work<Value> = (sessions: IDBObjectStore, owner: IDBObjectStore) => Promise<Value>;

async function use<Value>(mode: IDBTransactionMode, work: Work<Value>): Promise<Value | undefined> {
  try {
    const database = await open();
    try {
      const all = database.transaction([SESSIONS, OWNER], mode);
      return await work(all.objectStore(SESSIONS), all.objectStore(OWNER));
    } finally {
      database.close();
    }
  } catch {
    return undefined;
  }
}

/** All copies, and whose they are; nothing when there is none. */
export async function readCopies(): Promise<{ owner: Identity; copies: SessionCopy[] } | null> {
  const found = await use("readonly", async (sessions, owner) => {
    const asked = [finished(owner.get(0)), finished(sessions.getAll())] as const;
    const [who, copies] = await Promise.all(asked);
    return { owner: who as Identity | undefined, copies: copies as SessionCopy[] };
  });
  return found?.owner ? { owner: found.owner, copies: found.copies } : null;
}

/** Says whose copies are kept from now on; anybody else's go. */
export async function claimCopies(owner: Identity): Promise<void> {
  await use("readwrite", async (sessions, owners) => {
    if (!(await isOwner(owners, owner.user))) await finished(sessions.clear());
    await finished(owners.put(owner, 0));
  });
}

async function isOwner(owners: IDBObjectStore, user: string): Promise<boolean> {
  return ((await finished(owners.get(0))) as Identity | undefined)?.user === user;
}

/**
 * Keeps one, and lets those go that `surplus` names. It is not kept when its owner has signed out
 * meanwhile in another window.
 */
export async function writeCopy(
  copy: SessionCopy,
  surplus: (copies: readonly SessionCopy[]) => readonly string[],
): Promise<void> {
  await use("readwrite", async (sessions, owners) => {
    if (!(await isOwner(owners, copy.user))) return;
    await finished(sessions.put(copy));
    const all = (await finished(sessions.getAll())) as SessionCopy[];
    await Promise.all(surplus(all).map((session) => finished(sessions.delete(session))));
  });
}

/** Leaves nothing behind. */
export async function wipeCopies(): Promise<void> {
  await use("readwrite", async (sessions, owner) => {
    await Promise.all([finished(sessions.clear()), finished(owner.clear())]);
  });
}
