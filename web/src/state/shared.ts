/** What another app handed over ("Share"): it waits for a word of the person, since any site can do so. */

import { signal } from "@preact/signals";

/** Where the worker keeps it; said twice, since the worker is one script without imports. */
export const SHARED = "towline-shared";

/** What was handed over. */
export interface Shared {
  readonly text: string;
  readonly files: readonly File[];
}

/** What waits to be taken or left; nothing of it is in a draft. */
export const shared = signal<Shared | null>(null);

/** Looks at what the worker kept. It stays there, so that a reload forgets nothing. */
export async function findShared(): Promise<void> {
  try {
    const cache = await caches.open(SHARED);
    const text = (await (await cache.match("/shared/text"))?.text()) ?? "";
    const pictures = (await cache.keys()).filter(({ url }) => /\d$/.test(url));
    const files = await Promise.all(pictures.map((one) => readFile(cache, one)));
    if (text || files.length > 0) shared.value = { text, files };
  } catch {
    // Without a worker nothing was kept.
  }
}

/** It was taken, or left: it is gone from here, and the word for it from the address. */
export async function settleShared(): Promise<void> {
  shared.value = null;
  history.replaceState(null, "", `${location.pathname}${location.hash}`);
  await caches.delete(SHARED);
}

async function readFile(cache: Cache, request: Request): Promise<File> {
  const response = await cache.match(request);
  const name = decodeURIComponent(response?.headers.get("x-name") ?? "");
  const type = response?.headers.get("content-type") ?? "";
  return new File([(await response?.blob()) ?? ""], name, { type });
}
