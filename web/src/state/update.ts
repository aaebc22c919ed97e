/** Whether the server holds another build of this page, and the change to it. */

import { computed, signal } from "@preact/signals";
import { letIn, registerWorker, watchWaiting } from "../platform/worker.ts";
import { serverBuild } from "./chat.ts";

/** This page's own build, as it stands in the document. */
export const ownBuild =
  document.querySelector('meta[name="towline-build"]')?.getAttribute("content") ?? "";

/** Whether a worker of another build waits. */
export const workerWaits = signal(false);
/** Whether the change is under way. */
export const updating = signal(false);

/** Whether a reload would bring another build. */
export const updateReady = computed(() => {
  const build = serverBuild.value;
  const isOther = build !== null && ownBuild !== "" && !build.startsWith(ownBuild);
  return isOther || workerWaits.value;
});

let registration: ServiceWorkerRegistration | null = null;

/** Registers the worker, and listens for a newer one from then on. */
export async function startWorker(): Promise<void> {
  registration = await registerWorker();
  if (!registration) return;
  watchWaiting(registration, () => {
    workerWaits.value = true;
  });
}

/** Asks the server whether it has a newer worker; nobody needs to wait for it. */
export function lookForUpdate(): void {
  registration?.update().catch(() => undefined);
}

/** Changes to the server's build: never by itself, only when somebody asked for it. */
export async function takeUpdate(): Promise<void> {
  if (updating.peek()) return;
  updating.value = true;
  if (registration) await letIn(registration);
  location.reload();
}
