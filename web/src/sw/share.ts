/** What another app hands over ("Share"): kept on this device until the page takes it. */

import { orNothing, type ShellTools } from "./shell.ts";

/** Where what was handed over lies until then. */
export const SHARED = "towline-shared";
/** The page takes it when its address says so. */
export const SHARED_START = "/?shared=1#/";

const MOST_FILES = 6;
/** Any page of the web can hand something over: this is no place for a book, or a film. */
const MOST_CHARS = 100_000;
const MOST_BYTES = 50_000_000;

/**
 * Keeps what was shared and leads to the page; nothing when a request is no share. What cannot be
 * read, or kept for want of room, leads there as well.
 */
export function receiveShare(
  request: Request,
  { caches, origin }: Pick<ShellTools, "caches" | "origin">,
): Promise<Response> | undefined {
  const { pathname, origin: asked } = new URL(request.url);
  if (request.method !== "POST" || pathname !== "/share" || asked !== origin) return undefined;
  return orNothing(keep(request, caches)).then(() =>
    Response.redirect(`${origin}${SHARED_START}`, 303),
  );
}

async function keep(request: Request, caches: CacheStorage): Promise<void> {
  const form = await request.formData();
  const parts = ["title", "text", "url"].map((name) => form.get(name));
  const said = new Set(
    parts.filter((part): part is string => typeof part === "string" && part !== ""),
  );
  let room = MOST_BYTES;
  const files: File[] = [];
  for (const part of form.getAll("images")) {
    if (!(part instanceof File) || part.size === 0 || part.size > room) continue;
    room -= part.size;
    files.push(part);
  }
  await caches.delete(SHARED);
  const cache = await caches.open(SHARED);
  await cache.put("/shared/text", new Response([...said].join("\n").slice(0, MOST_CHARS)));
  for (const [at, file] of files.slice(0, MOST_FILES).entries()) {
    const headers = { "content-type": file.type, "x-name": encodeURIComponent(file.name) };
    await cache.put(`/shared/${at}`, new Response(file, { headers }));
  }
}
