import { h, render } from "preact";
import { afterEach, expect, test, vi } from "vitest";
import { COPIED_MESSAGES, makeCopy, surplus, usableCopies } from "../src/core/copies.ts";
import { emptyView } from "../src/core/empty_view.ts";
import { IDLE } from "../src/core/link.ts";
import { isIos } from "../src/platform/install.ts";
import { answerCounts, countOthers } from "../src/platform/windows.ts";
import type { MessageView, SessionView } from "../src/protocol/types.gen.ts";
import { access } from "../src/state/account.ts";
import { Chat, chat } from "../src/state/chat.ts";
import { isOnlyHere, sortDevices } from "../src/state/devices.ts";
import { countVisits } from "../src/state/install.ts";
import { openRequests } from "../src/state/open_requests.ts";
import { drafts } from "../src/state/outbox.ts";
import { sessions } from "../src/state/sessions.ts";
import { findShared, SHARED, settleShared, shared } from "../src/state/shared.ts";
import { makeSwitch } from "../src/state/switch.ts";
import { crowded, MOST_STREAMS, startWindows } from "../src/state/windows.ts";
import * as share from "../src/sw/share.ts";
import { Places } from "../src/ui/shell/Places.tsx";
import { REQUEST, SESSION, TIME } from "./chat_screen.tsx";

afterEach(() => {
  vi.useRealTimers();
  localStorage.clear();
});

function message(seq: number, call?: string): MessageView {
  const content = call
    ? [{ type: "tool_call" as const, id: call, name: "read", arguments: "{}" }]
    : [{ type: "text" as const, text: `Message ${seq}` }];
  const rest = { turn: "trn_1", time: TIME, cut: null, key: null, mark: null, undone: false };
  return { seq, id: `msg_${seq}`, role: "assistant", content: content as never, ...rest };
}

function view(more: Partial<SessionView> = {}): SessionView {
  return { ...emptyView(), session: SESSION, ...more };
}

// rules: W12
test("a copy holds the newest messages and nothing that only a server can say", () => {
  const messages = Array.from({ length: COPIED_MESSAGES + 2 }, (_, at) =>
    message(at, at === 0 ? "call_old" : at === COPIED_MESSAGES ? "call_new" : undefined),
  );
  const calls = [{ call: "call_old" }, { call: "call_new" }] as never;
  const open_calls = [{ call: "call_open", status: "in_progress" }] as never;
  const turn = { id: "trn_1" } as never;
  const whole = view({ messages, calls, open_calls, turn, permissions: [REQUEST], title: "Rope" });
  const { view: kept, row, at, user } = makeCopy(whole, "ada", 5);
  expect([at, user, row.title, row.live]).toEqual([5, "ada", "Rope", false]);
  expect(kept.messages.map(({ seq }) => seq)).toEqual(messages.slice(2).map(({ seq }) => seq));
  expect(kept.older).toBe(true);
  expect(kept.calls.map(({ call }) => call)).toEqual(["call_new", "call_open"]);
  expect(kept.calls[1]?.status).toBe("unknown");
  expect([kept.turn, kept.permissions, kept.open_calls, kept.queue]).toEqual([null, [], [], []]);
  expect(makeCopy(view({ messages: [message(1)] }), "ada", 5).view.older).toBe(false);
});

test("copies of another user or another reducer are not shown, and five of them are kept", () => {
  const copies = [1, 2, 3, 4, 5, 6].map((at) => ({
    ...makeCopy(view(), "ada", at),
    session: `ses_${at}`,
  }));
  expect(surplus(copies)).toEqual(["ses_1"]);
  expect(usableCopies(copies, "ada").map(({ at }) => at)).toEqual([6, 5, 4, 3, 2, 1]);
  expect(usableCopies(copies, "bob")).toEqual([]);
  const old = makeCopy(view({ reducer: emptyView().reducer - 1 }), "ada", 9);
  expect(usableCopies([old], "ada")).toEqual([]);
});

test("a visit counts once, however often the page is started in it", () => {
  const first = countVisits(null, 1_000);
  expect(first.count).toBe(1);
  expect(countVisits(first.keep, 61_000).count).toBe(1);
  expect(countVisits(first.keep, 3_600_000).count).toBe(2);
  expect(countVisits("spoilt", 1_000_000_000_000).count).toBe(1);
});

test("an iPad that calls itself a Mac is known by its touch screen", () => {
  expect(isIos("Mozilla/5.0 (iPhone; CPU iPhone OS 18_0)", 5)).toBe(true);
  expect(isIos("Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15)", 5)).toBe(true);
  expect(isIos("Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15)", 0)).toBe(false);
  expect(isIos("Mozilla/5.0 (Linux; Android 16)", 5)).toBe(false);
});

test("a switch is remembered, and its usual place needs no memory", () => {
  const first = makeSwitch("offers", true);
  first.value = false;
  expect(localStorage.getItem("towline.offers")).toBe("off");
  expect(makeSwitch("offers", true).value).toBe(false);
  first.value = true;
  expect(localStorage.getItem("towline.offers")).toBeNull();
});

// rules: W06
test("the badge counts what waits in all sessions, the open one by what it shows", () => {
  const open = new Chat(SESSION, "page");
  open.view(view({ permissions: [REQUEST] }));
  access.value = "in";
  chat.value = open;
  sessions.value = [
    { id: SESSION, pending: 3 },
    { id: "ses_b", pending: 2 },
    { id: "ses_c" },
  ] as never;
  expect(openRequests.value).toBe(3);
  open.view(view());
  expect(openRequests.value).toBe(2);
  const tabs = document.createElement("div");
  render(h(Places, { wide: false }), tabs);
  expect(tabs.querySelector(".count")?.firstChild?.textContent).toBe("2");
  render(null, tabs);
  access.value = "out";
  expect(openRequests.value).toBe(0);
  chat.value = null;
  sessions.value = [];
});

test("this device stands first, then those that were used last", () => {
  const rows = [
    { id: "a", last_used: "2026-01-01T00:00:00Z" },
    { id: "b", last_used: "2026-03-01T00:00:00Z" },
    { id: "c", last_used: "2026-02-01T00:00:00Z", current: true },
  ] as never;
  expect(sortDevices(rows).map(({ id }) => id)).toEqual(["c", "b", "a"]);
  expect(["http://127.0.0.1:1", "http://[::1]:1", "http://localhost"].map(isOnlyHere)).toEqual([
    true,
    true,
    true,
  ]);
  expect(isOnlyHere("http://192.168.1.5:4747")).toBe(false);
});

// rules: W21
test("windows that hold a stream answer when another one counts those before it", async () => {
  const ends = [1, null, 3].map((since) => answerCounts(() => since));
  expect(await countOthers(Number.POSITIVE_INFINITY)).toBe(2);
  const counts = [countOthers(2), countOthers(9)];
  expect(await Promise.all(counts)).toEqual([1, 2]);
  for (const end of ends) end();
});

// rules: W21
test("the window that came last gives way, so that one connection stays free", async () => {
  const others = Array.from({ length: MOST_STREAMS }, (_, at) => answerCounts(() => at));
  startWindows();
  const open = new Chat("ses_a", "page");
  const stopped = vi.spyOn(open, "stop").mockImplementation(() => undefined);
  chat.value = open;
  open.link({ ...IDLE, phase: "live" });
  await vi.waitFor(() => expect(crowded.value).toBe(true));
  expect(stopped).toHaveBeenCalledOnce();
  expect(await countOthers(Number.POSITIVE_INFINITY)).toBe(MOST_STREAMS + 1);

  open.link(IDLE);
  others.pop()?.();
  open.link({ ...IDLE, phase: "live" });
  expect(crowded.value).toBe(false);
  await countOthers(0);
  await vi.waitFor(() => expect(crowded.value).toBe(false));
  expect(stopped).toHaveBeenCalledOnce();
  chat.value = null;
  for (const end of others) end();
});

test("what was shared waits, also over a reload, and is in no draft until it is taken", async () => {
  expect(SHARED).toBe(share.SHARED);
  const kept = new Map([
    ["/shared/text", new Response("From elsewhere")],
    [
      "/shared/0",
      new Response("png", { headers: { "content-type": "image/png", "x-name": "a%20b.png" } }),
    ],
  ]);
  const cache = {
    match: async (asked: string | { url: string }) =>
      kept.get(typeof asked === "string" ? asked : new URL(asked.url).pathname),
    keys: async () => [...kept.keys()].map((path) => ({ url: `https://desk.example${path}` })),
  };
  const gone: string[] = [];
  vi.stubGlobal("caches", {
    open: async () => cache,
    delete: async (one: string) => gone.push(one),
  });
  drafts.write(null, "Half a thought");
  await findShared();
  expect(drafts.read(null)).toBe("Half a thought");
  expect(shared.value?.text).toBe("From elsewhere");
  expect(shared.value?.files.map(({ name, type }) => [name, type])).toEqual([
    ["a b.png", "image/png"],
  ]);
  expect(gone).toEqual([]);
  await settleShared();
  vi.unstubAllGlobals();
  expect(shared.value).toBeNull();
  expect(gone).toEqual([SHARED]);
  drafts.write(null, "");
});
