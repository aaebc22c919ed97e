// rules: C7.1 W29

import { beforeEach, describe, expect, test, vi } from "vitest";
import { decodeKey, fitsKey, judge, type PushPlace } from "../src/platform/push.ts";
import {
  listenForPush,
  openPlace,
  type PageClient,
  type PushScope,
  pickClient,
  placeOf,
  readMessage,
} from "../src/sw_push.ts";

const SCOPE = "https://desk.example.org/";

const PERMISSION = {
  web_push: 8030,
  notification: {
    title: "The agent asks for permission",
    lang: "en",
    tag: "ses_1:permission",
    navigate: "https://evil.example/",
    actions: [
      { action: "allow", title: "Allow…", navigate: "https://evil.example/" },
      { action: "deny", title: "Deny…" },
    ],
  },
  session: "ses_1",
  request: "prm_1",
  kind: "permission",
  title: "The agent asks for permission",
};

describe("a message", () => {
  test("is shown with its tag and actions, and leads by its ids alone", () => {
    expect(readMessage(JSON.stringify(PERMISSION))).toEqual({
      title: "The agent asks for permission",
      options: {
        tag: "ses_1:permission",
        renotify: true,
        lang: "en",
        actions: [
          { action: "allow", title: "Allow…" },
          { action: "deny", title: "Deny…" },
        ],
        data: { hash: "#/s/ses_1?request=prm_1" },
      },
    });
  });

  test("that says nothing usable is shown all the same", () => {
    for (const text of ["", "{", "null", "[]", '"text"', "7", '{"notification":[]}']) {
      const { title, options } = readMessage(text);
      expect(title).toBe("towline");
      expect(options.data.hash).toBe("#/settings/notifications");
    }
  });

  test("with odd ids leads nowhere else", () => {
    for (const session of ["../x", "a b", "", 7, null, "x".repeat(65), "//evil.example"]) {
      expect(placeOf({ session })).toBe("#/settings/notifications");
    }
    expect(placeOf({ session: "ses_1", request: "a&b" })).toBe("#/s/ses_1");
  });
});

function client(url: string, more: Partial<PageClient> = {}): PageClient {
  return { url, focus: vi.fn(async () => undefined), postMessage: vi.fn(), ...more };
}

function scopeWith(clients: PageClient[]) {
  const listeners = new Map<string, (event: never) => void>();
  const scope = {
    registration: { scope: SCOPE, showNotification: vi.fn(async () => undefined) },
    clients: { matchAll: vi.fn(async () => clients), openWindow: vi.fn(async () => undefined) },
    addEventListener: (type: string, listener: (event: never) => void) => {
      listeners.set(type, listener);
    },
  };
  listenForPush(scope satisfies PushScope);
  const send = async (type: string, event: object): Promise<void> => {
    const work: Promise<unknown>[] = [];
    const waitUntil = (one: Promise<unknown>): number => work.push(one);
    listeners.get(type)?.({ ...event, waitUntil } as never);
    await Promise.all(work);
  };
  return { scope, send };
}

describe("a click", () => {
  test("goes on in the window that is in use, and opens none", async () => {
    const hidden = client(`${SCOPE}#/`, { visibilityState: "hidden" });
    const used = client(`${SCOPE}#/s/ses_2`, { focused: true });
    const { scope, send } = scopeWith([hidden, used]);
    const close = vi.fn();
    const data = { hash: "#/s/ses_1?request=prm_1" };
    await send("notificationclick", { notification: { data, close }, action: "allow" });
    expect(used.postMessage).toHaveBeenCalledWith({ type: "open_place", hash: data.hash });
    expect(used.focus).toHaveBeenCalledOnce();
    expect(hidden.postMessage).not.toHaveBeenCalled();
    expect(scope.clients.openWindow).not.toHaveBeenCalled();
    expect(close).toHaveBeenCalledOnce();
  });

  test("opens a window where none is open", async () => {
    const { scope } = scopeWith([client("https://other.example/")]);
    await openPlace(scope, "#/s/ses_1");
    expect(scope.clients.openWindow).toHaveBeenCalledWith(`${SCOPE}#/s/ses_1`);
  });

  test("prefers what is seen to what is not", () => {
    const hidden = client(SCOPE, { visibilityState: "hidden" });
    const seen = client(SCOPE, { visibilityState: "visible" });
    expect(pickClient([hidden, seen], SCOPE)).toBe(seen);
    expect(pickClient([hidden], SCOPE)).toBe(hidden);
    expect(pickClient([], SCOPE)).toBeUndefined();
  });

  test("still leads on when the browser lets nobody have the focus", async () => {
    const focus = vi.fn(async () => {
      throw new TypeError("not allowed");
    });
    const open = client(SCOPE, { focus });
    const { scope } = scopeWith([open]);
    await openPlace(scope, "#/s/ses_1");
    expect(open.postMessage).toHaveBeenCalledOnce();
  });
});

test("what comes is shown before the worker may sleep", async () => {
  const { scope, send } = scopeWith([]);
  await send("push", { data: { text: () => JSON.stringify(PERMISSION) } });
  await send("push", { data: null });
  expect(scope.registration.showNotification).toHaveBeenCalledTimes(2);
});

describe("how push stands", () => {
  const place: PushPlace = {
    secure: true,
    agent: "Mozilla/5.0 (Linux; Android 15)",
    touches: 5,
    standalone: false,
    permission: "default",
    hasPush: true,
  };
  const iphone = { agent: "Mozilla/5.0 (iPhone)", hasPush: false };
  const ipad = { agent: "Mozilla/5.0 (Macintosh)", touches: 5, hasPush: false };

  test.each([
    [{}, false, "off"],
    [{ permission: "granted" }, true, "on"],
    [{ permission: "granted" }, false, "off"],
    [{ permission: "default" }, true, "off"],
    [{ permission: "denied" }, true, "blocked"],
    [{ secure: false, permission: "denied" }, false, "insecure"],
    [{ hasPush: false }, false, "unsupported"],
    [{ permission: undefined }, false, "unsupported"],
    [iphone, false, "install"],
    [ipad, false, "install"],
    [{ ...iphone, standalone: true }, false, "unsupported"],
    [{ ...iphone, standalone: true, hasPush: true, permission: "granted" }, true, "on"],
  ] as const)("%o, subscribed %s: %s", (more, subscribed, state) => {
    expect(judge({ ...place, ...more }, subscribed)).toBe(state);
  });
});

describe("a key", () => {
  const key = "AQID-_8";
  let made: PushSubscription;

  beforeEach(() => {
    const applicationServerKey = decodeKey(key).buffer;
    made = { options: { applicationServerKey } } as unknown as PushSubscription;
  });

  test("is read from base64url", () => {
    expect([...decodeKey(key)]).toEqual([1, 2, 3, 251, 255]);
  });

  test("fits the subscription that was made with it, and no other", () => {
    expect(fitsKey(made, key)).toBe(true);
    expect(fitsKey(made, "AQID-_4")).toBe(false);
    expect(fitsKey(made, "AQID")).toBe(false);
    expect(fitsKey({ options: {} } as unknown as PushSubscription, key)).toBe(false);
  });
});
