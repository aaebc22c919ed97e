/** Where the page is: the fragment of its address. */

import { signal } from "@preact/signals";

/** A place in the app. */
export type Route = { page: "new" } | { page: "chat"; session: string };

/** The route that a fragment names; what is not known is the start. */
export function parseRoute(hash: string): Route {
  const found = /^#\/s\/([\w-]+)$/.exec(hash);
  return found?.[1] ? { page: "chat", session: found[1] } : { page: "new" };
}

/** The fragment of a route. */
export function formatRoute(route: Route): string {
  return route.page === "chat" ? `#/s/${route.session}` : "#/";
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
