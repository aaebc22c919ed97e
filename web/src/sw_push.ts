/** The push part of the worker: shows what comes, and leads to the right place. It imports nothing. */

/** What a click opens, and what a later message replaces. */
export interface Shown {
  title: string;
  options: {
    tag: string;
    renotify: boolean;
    body?: string;
    lang?: string;
    actions?: { action: string; title: string }[];
    data: { hash: string };
  };
}

/** A window of this page, as a worker sees it. */
export interface PageClient {
  url: string;
  focused?: boolean;
  visibilityState?: string;
  focus(): Promise<unknown>;
  postMessage(message: unknown): void;
}

/** What a worker needs for this; `ServiceWorkerGlobalScope` has it. */
export interface PushScope {
  registration: {
    scope: string;
    showNotification(title: string, options: Shown["options"]): Promise<void>;
  };
  clients: {
    matchAll(options: {
      type: "window";
      includeUncontrolled: boolean;
    }): Promise<readonly PageClient[]>;
    openWindow(url: string): Promise<unknown>;
  };
  addEventListener(type: string, listener: (event: never) => void): void;
}

/** What a page is told when a notification was clicked. */
export interface OpenPlace {
  type: "open_place";
  /** The fragment to go to. */
  hash: string;
}

const ID = /^[\w-]{1,64}$/;

type Raw = Record<string, unknown>;

function isRaw(value: unknown): value is Raw {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function idOf(value: unknown): string | undefined {
  return typeof value === "string" && ID.test(value) ? value : undefined;
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" && value ? value.slice(0, 300) : undefined;
}

/** Where a message leads: made of its ids alone, so that no message leads anywhere else. */
export function placeOf(message: Raw): string {
  const session = idOf(message.session);
  if (!session) return "#/settings/notifications";
  const request = idOf(message.request);
  return `#/s/${session}${request ? `?request=${request}` : ""}`;
}

function actionsOf(value: unknown): { action: string; title: string }[] {
  if (!Array.isArray(value)) return [];
  return value.filter(isRaw).flatMap((one) => {
    const action = idOf(one.action);
    const title = textOf(one.title);
    return action && title ? [{ action, title }] : [];
  });
}

/**
 * What to show for a message. A browser takes the right away from a page that shows nothing, so
 * something is shown for whatever comes.
 */
export function readMessage(text: string): Shown {
  let raw: unknown;
  try {
    raw = JSON.parse(text);
  } catch {
    raw = undefined;
  }
  const message = isRaw(raw) ? raw : {};
  const told = isRaw(message.notification) ? message.notification : {};
  const body = textOf(told.body);
  const lang = textOf(told.lang);
  const actions = actionsOf(told.actions);
  return {
    title: textOf(told.title) ?? textOf(message.title) ?? "towline",
    options: {
      tag: textOf(told.tag) ?? "towline",
      renotify: true,
      ...(body && { body }),
      ...(lang && { lang }),
      ...(actions.length > 0 && { actions }),
      data: { hash: placeOf(message) },
    },
  };
}

/** Of the open windows of this page, the one to go on in: the one in use, else the newest. */
export function pickClient(clients: readonly PageClient[], scope: string): PageClient | undefined {
  const ours = clients.filter(({ url }) => url.startsWith(scope));
  return (
    ours.find(({ focused }) => focused) ??
    ours.find(({ visibilityState }) => visibilityState === "visible") ??
    ours[0]
  );
}

/** Goes to a place of the page: in a window that is open, else in a new one. */
export async function openPlace(scope: PushScope, hash: string): Promise<void> {
  const clients = await scope.clients.matchAll({ type: "window", includeUncontrolled: true });
  const client = pickClient(clients, scope.registration.scope);
  if (client) {
    client.postMessage({ type: "open_place", hash } satisfies OpenPlace);
    try {
      await client.focus();
      return;
    } catch {
      // The browser keeps it in the background; it went to the place all the same.
      return;
    }
  }
  await scope.clients.openWindow(`${scope.registration.scope}${hash}`);
}

interface PushCame {
  data: { text(): string } | null;
  waitUntil(work: Promise<unknown>): void;
}

interface Clicked {
  notification: { data?: unknown; close(): void };
  waitUntil(work: Promise<unknown>): void;
}

/** Listens; called once by the worker when it starts. Each action opens the place, and decides nothing. */
export function listenForPush(scope: PushScope): void {
  scope.addEventListener("push", (event: PushCame) => {
    const { title, options } = readMessage(event.data?.text() ?? "");
    event.waitUntil(scope.registration.showNotification(title, options));
  });
  scope.addEventListener("notificationclick", (event: Clicked) => {
    const { data } = event.notification;
    event.notification.close();
    const hash = isRaw(data) && typeof data.hash === "string" ? data.hash : "#/";
    event.waitUntil(openPlace(scope, hash));
  });
}
