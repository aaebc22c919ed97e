/** Push as the browser has it: what is possible, and the one subscription of this page. */

/** What stands in the way, or how it stands. */
export type PushState =
  | "unsupported"
  /** iPhone and iPad give push to what was added to the Home Screen alone. */
  | "install"
  /** The page did not come over HTTPS. */
  | "insecure"
  /** The person, or the browser, said no: a page may not ask again. */
  | "blocked"
  | "off"
  | "on";

/** What of the browser is asked; a test brings its own. */
export interface PushPlace {
  secure: boolean;
  agent: string;
  touches: number;
  standalone: boolean;
  permission: NotificationPermission | undefined;
  hasPush: boolean;
}

/** The browser as it is. */
export function lookAround(): PushPlace {
  const standalone = matchMedia("(display-mode: standalone)").matches;
  return {
    secure: isSecureContext,
    agent: navigator.userAgent,
    touches: navigator.maxTouchPoints,
    standalone,
    permission: "Notification" in globalThis ? Notification.permission : undefined,
    hasPush: "serviceWorker" in navigator && "PushManager" in globalThis,
  };
}

/** How push stands in a browser, as far as it says so by itself. */
export function judge(place: PushPlace, subscribed: boolean): PushState {
  if (!place.secure) return "insecure";
  const apple = /iPhone|iPad/.test(place.agent) || (/Mac/.test(place.agent) && place.touches > 1);
  if (apple && !place.standalone && !place.hasPush) return "install";
  if (!place.hasPush || place.permission === undefined) return "unsupported";
  if (place.permission === "denied") return "blocked";
  return subscribed && place.permission === "granted" ? "on" : "off";
}

/** The page's worker; nothing while there is none. */
async function worker(): Promise<ServiceWorkerRegistration | undefined> {
  if (!("serviceWorker" in navigator)) return undefined;
  return await navigator.serviceWorker.getRegistration();
}

/** The browser's subscription; nothing when there is none. */
export async function currentSubscription(): Promise<PushSubscription | undefined> {
  return (await (await worker())?.pushManager.getSubscription()) ?? undefined;
}

/** The bytes of a base64url text. */
export function decodeKey(text: string): Uint8Array<ArrayBuffer> {
  const plain = atob(text.replace(/-/g, "+").replace(/_/g, "/"));
  return Uint8Array.from(plain, (letter) => letter.charCodeAt(0));
}

/** Whether a subscription was made with this key of the server. */
export function fitsKey(subscription: PushSubscription, key: string): boolean {
  const made = subscription.options.applicationServerKey;
  if (!made) return false;
  const bytes = new Uint8Array(made);
  const wanted = decodeKey(key);
  return bytes.length === wanted.length && bytes.every((byte, at) => byte === wanted[at]);
}

/** Why there is no subscription. */
export class NoPush extends Error {
  readonly why: "blocked" | "no_worker" | "refused";

  constructor(why: NoPush["why"]) {
    super(why);
    this.name = "NoPush";
    this.why = why;
  }
}

/**
 * Asks the person where that is needed, and subscribes; one made with another key is given up first.
 *
 * @throws NoPush when there is none in the end
 */
export async function makeSubscription(key: string): Promise<PushSubscription> {
  if ((await Notification.requestPermission()) !== "granted") throw new NoPush("blocked");
  const found = await worker();
  if (!found) throw new NoPush("no_worker");
  const before = await found.pushManager.getSubscription();
  if (before && fitsKey(before, key)) return before;
  await before?.unsubscribe();
  try {
    return await found.pushManager.subscribe({
      userVisibleOnly: true,
      applicationServerKey: decodeKey(key),
    });
  } catch {
    throw new NoPush("refused");
  }
}

/** A SHA-256 in hex; `crypto.subtle` is there wherever push is. */
export async function hashText(text: string): Promise<string> {
  const bytes = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return [...new Uint8Array(bytes)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
