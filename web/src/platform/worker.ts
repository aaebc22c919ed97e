/** The service worker, as the page sees it: registered, and let in when somebody says so. */

/** A browser that has trusted types; the others take the plain address. */
interface TrustedTypes {
  createPolicy(
    name: string,
    rules: { createScriptURL: (address: string) => string },
  ): { createScriptURL(address: string): unknown };
}

const WORKER = "/sw.js";
/** A worker that has not taken over by then is not waited for, in milliseconds. */
const TAKE_OVER_MS = 5_000;

/** The worker's address under the one policy that the page's headers allow. */
function trustedAddress(): string {
  const types = (globalThis as { trustedTypes?: TrustedTypes }).trustedTypes;
  if (!types) return WORKER;
  const policy = types.createPolicy("app", {
    createScriptURL(address) {
      if (address !== WORKER) throw new TypeError(`${address} is no script of this page`);
      return address;
    },
  });
  return policy.createScriptURL(WORKER) as string;
}

/** Registers the worker; nothing where there can be none (plain HTTP, private windows). */
export async function registerWorker(): Promise<ServiceWorkerRegistration | null> {
  if (!("serviceWorker" in navigator)) return null;
  try {
    return await navigator.serviceWorker.register(trustedAddress(), {
      scope: "/",
      updateViaCache: "none",
    });
  } catch {
    return null;
  }
}

/** Tells each time that a worker of another build waits to be let in. */
export function watchWaiting(registration: ServiceWorkerRegistration, onWaiting: () => void): void {
  const look = (): void => {
    if (registration.waiting && navigator.serviceWorker.controller) onWaiting();
  };
  look();
  registration.addEventListener("updatefound", () => {
    registration.installing?.addEventListener("statechange", look);
  });
}

/** Lets the newest worker in, and comes back when it has taken over or it takes too long. */
export async function letIn(registration: ServiceWorkerRegistration): Promise<void> {
  const done = AbortSignal.timeout(TAKE_OVER_MS);
  const over = new Promise<void>((resolve) => {
    done.addEventListener("abort", () => resolve());
    navigator.serviceWorker.addEventListener("controllerchange", () => resolve(), { once: true });
  });
  const knock = (): void => registration.waiting?.postMessage("take_over");
  registration.addEventListener("updatefound", () => {
    registration.installing?.addEventListener("statechange", knock);
  });
  registration.installing?.addEventListener("statechange", knock);
  // What is fetched here is the server's newest; without a network the waiting one is let in.
  await Promise.race([registration.update().catch(() => undefined), over]);
  if (!registration.installing && !registration.waiting) return;
  knock();
  await over;
}
