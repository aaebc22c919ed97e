/** Which addresses of a message may become links or pictures. */

/** Controls: browsers drop some of them, which turns `java\tscript:` into a scheme. */
const INVISIBLE = /\p{Cc}/gu;
const ALLOWED = /^(?:https?:\/\/|mailto:|#(?!\/)|\/(?![/\\]))/i;

/** The address if a link may have it, else nothing. In-page routes (`#/…`) are the app's own. */
export function allowLink(href: string): string | undefined {
  const clean = href.replace(INVISIBLE, "").trim();
  return ALLOWED.test(clean) ? clean : undefined;
}

/** The address if a picture may load it: our own origin or a blob this page made. */
export function allowImage(href: string, origin: string): string | undefined {
  const clean = href.replace(INVISIBLE, "").trim();
  const own = clean.startsWith(`${origin}/`) || clean.startsWith(`blob:${origin}/`);
  return own || /^\/(?![/\\])/.test(clean) ? clean : undefined;
}
