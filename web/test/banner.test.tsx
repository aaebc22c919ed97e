import { render } from "preact";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { emptyView } from "../src/core/empty_view.ts";
import { IDLE } from "../src/core/link.ts";
import { Chat, serverBuild } from "../src/state/chat.ts";
import { offline } from "../src/state/copies.ts";
import { held } from "../src/state/held.ts";
import { offer, visits } from "../src/state/install.ts";
import { acceptLimits, plain } from "../src/state/plain_http.ts";
import { updating, workerWaits } from "../src/state/update.ts";
import { crowded } from "../src/state/windows.ts";
import { Banner } from "../src/ui/shell/Banner.tsx";

let place: HTMLElement;
let open: Chat;

beforeEach(() => {
  vi.useFakeTimers();
  place = document.createElement("div");
  document.body.append(place);
  open = new Chat("ses_a", "page");
  open.view({ ...emptyView(), session: "ses_a" });
});

afterEach(() => {
  render(null, place);
  place.remove();
  for (const one of [workerWaits, updating, crowded, held, offline, plain]) one.value = false;
  serverBuild.value = null;
  offer.value = null;
  localStorage.clear();
  vi.useRealTimers();
});

async function said(chat: Chat | null = open): Promise<string> {
  render(<Banner chat={chat} />, place);
  await vi.advanceTimersByTimeAsync(50);
  return place.querySelector(".banner span")?.textContent ?? "";
}

async function press(name: string): Promise<void> {
  [...place.querySelectorAll("button")].find(({ textContent }) => textContent === name)?.click();
  await vi.advanceTimersByTimeAsync(50);
}

// rules: W18 W20 W22
test("one line at most, and the most important one", async () => {
  expect(await said()).toBe("");
  visits.value = 2;
  offer.value = new Event("beforeinstallprompt") as never;
  expect(await said()).toBe("Install towline as an app?");
  held.value = true;
  expect(await said()).toBe("Proxy holds the stream back");
  plain.value = true;
  expect(await said()).toContain("Limited on plain HTTP");
  offline.value = true;
  expect(await said(null)).toContain("Earlier chats are copies");
  open.link({ ...IDLE, phase: "retrying" });
  await said();
  await vi.advanceTimersByTimeAsync(2_000);
  expect(await said()).toBe("Reconnecting…");
  open.showCopy(open.current.value, new Date(2026, 0, 31, 14, 2).getTime());
  expect(await said()).toMatch(/^Copy from .+\. No connection\.$/);
  workerWaits.value = true;
  expect(await said()).toBe("A new version of this page is ready.");
  updating.value = true;
  expect(await said()).toBe("Loading the new version…");
  expect(place.querySelectorAll(".banner")).toHaveLength(1);
  expect(place.querySelectorAll("button")).toHaveLength(0);
});

test("a copy is no copy any more once the server has said how it is", async () => {
  open.showCopy(open.current.value, Date.now());
  expect(await said()).toContain("Copy from");
  open.view({ ...emptyView(), session: "ses_a" });
  open.link({ ...IDLE, phase: "live" });
  expect(await said()).toBe("");
});

// rules: W21
test("too many windows are named, with a way to try again", async () => {
  open.link({ ...IDLE, phase: "retrying", failures: 1 });
  crowded.value = true;
  await said();
  await vi.advanceTimersByTimeAsync(2_000);
  expect(await said()).toContain("Open in too many windows");
  open.showCopy(open.current.value, Date.now());
  expect(await said()).toContain("Open in too many windows");
  const begun = vi.spyOn(open, "start").mockImplementation(() => undefined);
  const retried = vi.spyOn(open, "retryNow").mockImplementation(() => undefined);
  await press("Retry");
  expect([begun.mock.calls.length, retried.mock.calls.length]).toEqual([1, 1]);
});

// rules: W22
test("of a proxy that holds the stream back one reads what to set, and then no more of it", async () => {
  await import("../src/ui/shell/HeldSheet.tsx");
  held.value = true;
  await said();
  await press("What to do");
  expect(document.querySelector("dialog")?.textContent).toContain("proxy_buffering off;");
  await press("OK");
  expect(await said()).toBe("");
  expect(document.querySelector("dialog")).toBeNull();
});

// rules: W22
test("of a line that is silent or dead one reads which, and of many windows that they are", async () => {
  open.link({ ...IDLE, phase: "retrying", failures: 1 });
  held.value = true;
  await said();
  await vi.advanceTimersByTimeAsync(2_000);
  expect(await said()).toBe("Reconnecting…");
  open.silent.value = true;
  expect(await said()).toBe("Proxy holds the stream back");
  held.value = false;
  expect(await said()).toBe("Reconnecting…");
  held.value = true;
  crowded.value = true;
  expect(await said()).toContain("Open in too many windows");
});

// rules: W20
test("what plain HTTP costs is told until somebody has read it", async () => {
  plain.value = true;
  expect(await said()).toContain("no push, install, offline");
  await press("OK");
  expect(await said()).toBe("");
  acceptLimits();
});

test("who does not want to install is not asked again", async () => {
  visits.value = 1;
  offer.value = new Event("beforeinstallprompt") as never;
  expect(await said()).toBe("");
  visits.value = 2;
  expect(await said()).toContain("Install towline");
  await press("Not now");
  expect(await said()).toBe("");
  expect(localStorage.getItem("towline.offers")).toBe("off");
});
