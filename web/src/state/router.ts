/** Where the page is: the fragment of its address. */

import { signal } from "@preact/signals";

/** The pages beside the chat: each is `#/name`, and a part of it `#/name/part`. */
const PAGES = ["settings"] as const;

/** The name of a page beside the chat. */
export type Page = (typeof PAGES)[number];

/** A place in the app. */
export type Route =
  | { page: "new" }
  | { page: "chat"; session: string; request?: string | undefined }
  | { page: Page; part?: string | undefined };

/** The route that a fragment names; what is not known is the start. */
export function parseRoute(hash: string): Route {
  const [, name, part, request] =
    /^#\/(\w+)(?:\/([\w-]+)(?:\?request=([\w-]+))?)?$/.exec(hash) ?? [];
  if (name === "s" && part) return { page: "chat", session: part, request };
  const page = PAGES.find((one) => one === name);
  return page ? { page, part } : { page: "new" };
}

/** The fragment of a route. */
export function formatRoute(route: Route): string {
  if (route.page === "chat") return `#/s/${route.session}`;
  if (route.page === "new") return "#/";
  return `#/${route.page}${route.part ? `/${route.part}` : ""}`;
}

/** The current route. */
export const route = signal<Route>({ page: "new" });

/** Goes to a route; `replace` leaves no step back. */
export function go(to: Route, replace = false): void {
  const hash = formatRoute(to);
  if (replace) history.replaceState(null, "", hash);
  else if (location.hash !== hash) history.pushState(null, "", hash);
  route.value = to;
}

/** Follows the address from now on. */
export function startRouter(): void {
  route.value = parseRoute(location.hash);
  addEventListener("popstate", () => {
    route.value = parseRoute(location.hash);
  });
}

/**
 * The one-time code that the address carried, taken out of the address and of the history.
 *
 * Asked once, at the start: a fragment that turns up later is never taken for a code.
 */
export function takeCode(): string | undefined {
  const code = /^#code=([\w-]+)$/.exec(location.hash)?.[1];
  if (code) history.replaceState(null, "", `${location.pathname}${location.search}`);
  return code;
}
