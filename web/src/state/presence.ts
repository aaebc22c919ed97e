/** Tells the server while somebody looks at this page, so that nobody is called who sees it anyway. */

import { effect } from "@preact/signals";
import { call } from "../platform/api.ts";
import { access } from "./account.ts";
import { newKey } from "./outbox.ts";
import { keepSubscription } from "./push.ts";
import { parseRoute, route } from "./router.ts";

/** How often, in milliseconds; it counts for 45 s. */
export const BEACON_MS = 20_000;

/** This page's name among the user's clients. */
const CLIENT = newKey();

/** Says it once. What does not get through is said again in a while: nobody need be told. */
function tell(visible: boolean): void {
  void call("note_presence", { body: { client: CLIENT, visible } }).catch(() => undefined);
}

/** Tells it until the answer is called. */
function keepTelling(): () => void {
  const stop = new AbortController();
  let told: boolean | undefined;
  const look = (): void => {
    const visible = document.visibilityState === "visible";
    if (visible || told) tell(visible);
    told = visible;
  };
  const timer = setInterval(look, BEACON_MS);
  document.addEventListener("visibilitychange", look, { signal: stop.signal });
  addEventListener(
    "pagehide",
    () => {
      if (told) tell(false);
      told = false;
    },
    { signal: stop.signal },
  );
  look();
  return () => {
    clearInterval(timer);
    stop.abort();
  };
}

/** Goes where a notification leads that was clicked. */
function followClicks(): void {
  if (!("serviceWorker" in navigator)) return;
  navigator.serviceWorker.addEventListener("message", ({ data }: MessageEvent<unknown>) => {
    const hash = typeof data === "object" && data !== null && "hash" in data ? data.hash : "";
    if (typeof hash !== "string" || !/^#\/[\w/?=-]*$/.test(hash)) return;
    history.pushState(null, "", hash);
    route.value = parseRoute(hash);
  });
}

let begun = false;

/** Begins, once for the life of the page: it tells only while somebody is signed in. */
export function beginPresence(): void {
  if (begun) return;
  begun = true;
  followClicks();
  let stop: (() => void) | undefined;
  effect(() => {
    const inside = access.value === "in";
    stop?.();
    stop = inside ? keepTelling() : undefined;
    if (inside) void keepSubscription().catch(() => undefined);
  });
}
