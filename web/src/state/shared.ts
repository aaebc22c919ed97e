/** What another app handed over ("Share"): it becomes the draft of a new chat. */

import { signal } from "@preact/signals";
import { drafts } from "./outbox.ts";

/** Where the worker keeps it; said twice, since the worker is one script without imports. */
export const SHARED = "towline-shared";

/** Pictures that wait for the composer of a new chat. */
export const sharedFiles = signal<readonly File[]>([]);

/** Takes over what the worker kept, once, and takes the word for it out of the address. */
export async function takeShared(): Promise<void> {
  history.replaceState(null, "", `${location.pathname}${location.hash}`);
  try {
    const cache = await caches.open(SHARED);
    const text = await (await cache.match("/shared/text"))?.text();
    const pictures = (await cache.keys()).filter(({ url }) => /\d$/.test(url));
    sharedFiles.value = await Promise.all(pictures.map((one) => readFile(cache, one)));
    // A draft that is there already stays, above what is new.
    if (text) drafts.write(null, [drafts.read(null), text].filter(Boolean).join("\n\n"));
    await caches.delete(SHARED);
  } catch {
    // Without a worker nothing was kept.
  }
}

async function readFile(cache: Cache, request: Request): Promise<File> {
  const response = await cache.match(request);
  const name = decodeURIComponent(response?.headers.get("x-name") ?? "");
  const type = response?.headers.get("content-type") ?? "";
  return new File([(await response?.blob()) ?? ""], name, { type });
}
