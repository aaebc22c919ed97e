/** The service worker: an entry of its own, which knows nothing of what is shown. */

import { receiveShare } from "./sw/share.ts";
import { Shell, type ShellFiles } from "./sw/shell.ts";
import { listenForPush, type PushScope } from "./sw_push.ts";

declare const self: ServiceWorkerGlobalScope;
/** Filled in by the build. */
declare const __SHELL__: ShellFiles;

const tools = {
  caches,
  fetch: (...asked: Parameters<typeof fetch>) => fetch(...asked),
  origin: self.location.origin,
};
const shell = new Shell(__SHELL__, tools);

/** What some browsers can: to leave the worker out of what it never answers for. */
interface RoutingEvent {
  addRoutes?(rule: object): Promise<void>;
}

self.addEventListener("install", (event) => {
  // What goes by the worker is lost, now and then, when the page that asks for it goes.
  const rule = { condition: { urlPattern: { pathname: "/api/*" } }, source: "network" };
  void (event as RoutingEvent).addRoutes?.(rule).catch(() => undefined);
  event.waitUntil(shell.fill());
});

self.addEventListener("activate", (event) => {
  event.waitUntil(shell.clear().then(() => self.clients.claim()));
});

self.addEventListener("message", (event) => {
  // Only a tap on "Reload" sends this.
  if (event.data === "take_over") event.waitUntil(self.skipWaiting());
});

self.addEventListener("fetch", (event) => {
  const answer = receiveShare(event.request, tools) ?? shell.answer(event.request);
  if (answer) event.respondWith(answer);
});

listenForPush(self as unknown as PushScope);
