import { expect, test, vi } from "vitest";
import { IDLE, LINK_POLICY } from "../src/core/link.ts";
import { everyDay, formatCost, formatTokens, tokensOf } from "../src/core/usage.ts";
import { identity } from "../src/state/account.ts";
import { serverBuild } from "../src/state/chat.ts";
import { connectionLog, noteLink } from "../src/state/connection_log.ts";
import { chooseTextSize } from "../src/state/preferences.ts";
import { AboutSection } from "../src/ui/settings/AboutSection.tsx";
import { AccountSection } from "../src/ui/settings/AccountSection.tsx";
import { LookSection } from "../src/ui/settings/LookSection.tsx";
import { SECTIONS } from "../src/ui/settings/sections.ts";
import { UsageSection } from "../src/ui/settings/UsageSection.tsx";
import { json, problem } from "./fake_server.ts";
import { useSettingsScreen } from "./settings_screen.tsx";

const on = useSettingsScreen();

const row = (name: string, cost: number | null, input: number) => ({
  name,
  requests: 2,
  usage: { input, output: 10 },
  cost,
});
const report = (by: string, rows: object[]) => ({
  by,
  first: "2026-11-24",
  last: "2026-11-30",
  rows,
  total: { ...row("", 3.5, 1_500), unpriced: 4 },
  today_cost: 0.5,
  daily_cost: 20,
});

test("every section has an address of its own and a file that can be fetched", async () => {
  expect(new Set(SECTIONS.map(({ id }) => id)).size).toBe(SECTIONS.length);
  await Promise.all(SECTIONS.map(({ View }) => View.preload()));
});

test("usage has a bar for every day, also for those with nothing, and the same in numbers", async () => {
  const days = [row("2026-11-30", 3, 1_000), row("2026-11-26", 0.5, 500)];
  on.screen.server.on("GET /api/usage", (seen) =>
    json(
      seen.path.includes("by=day")
        ? report("day", days)
        : report("model", [row("acme/one", 3.5, 900), row("local/own", null, 600)]),
    ),
  );
  await on.screen.show(UsageSection);
  const bars = [...on.screen.place.querySelectorAll(".day-bars rect")];
  expect(bars.map((bar) => bar.getAttribute("class"))).toEqual([
    "unused",
    "unused",
    "used",
    "unused",
    "unused",
    "unused",
    "used",
  ]);
  expect(bars[6]?.getAttribute("height")).toBe("100");
  expect(on.screen.find("figcaption").textContent).toContain("$3.00");
  expect(on.screen.find(".model-bars").textContent).toContain("local/ownunknown");
  const cells = [...on.screen.place.querySelectorAll("tbody tr")].map((one) => one.textContent);
  expect(cells.length).toBe(4);
  expect(cells[0]).toContain("$3.00");
  expect(on.screen.text).toContain("The price of 4 requests is not known.");
  expect(on.screen.text).toContain("of $20.00");
});

test("usage is asked for the span that is chosen, by tokens too", async () => {
  const days = [row("2026-11-30", 0, 1_000)];
  on.screen.server.on("GET /api/usage", () => json(report("day", days)));
  vi.setSystemTime(Date.parse("2026-11-30T12:00:00Z"));
  await on.screen.show(UsageSection);
  await on.screen.choose('[name="span"]');
  await on.screen.choose('[name="measure"]:not(:checked)');
  expect(on.screen.server.seen.at(-1)?.path).toContain("from=2026-11-24&to=2026-11-30");
  expect(on.screen.find("figcaption").textContent).toContain("Most: 1");
});

test("where nothing has a price, the bars show tokens until something else is chosen", async () => {
  const free = { ...report("day", [row("2026-11-30", 0, 1_000)]), total: row("", 0, 1_000) };
  on.screen.server.on("GET /api/usage", () => json(free));
  await on.screen.show(UsageSection);
  expect(on.screen.find("figcaption").textContent).toContain("Most: 1K");
  await on.screen.choose('[name="measure"]:not(:checked)');
  expect(on.screen.find("figcaption").textContent).toContain("Nothing that costs");
});

test("no usage at all is said, and a failure can be tried again", async () => {
  const none = { ...report("day", []), total: { name: "", requests: 0, usage: {} } };
  on.screen.server.on("GET /api/usage", () => problem(503, "store_full"));
  await on.screen.show(UsageSection);
  expect(on.screen.text).toContain("disk is full");
  on.screen.server.on("GET /api/usage", () => json(none));
  await on.screen.press("Retry");
  expect(on.screen.text).toContain("Nothing was used in these days.");
});

test("days, tokens and amounts are written for the reader", () => {
  const made = report("day", [row("2026-11-26", 1, 5)]) as Parameters<typeof everyDay>[0];
  expect(everyDay(made).map(({ requests }) => requests)).toEqual([0, 0, 2, 0, 0, 0, 0]);
  expect(tokensOf(made.total)).toBe(1_510);
  expect(formatCost(0.0042, "en-US")).toBe("$0.0042");
  expect(formatCost(12, "zh-CN")).toBe("US$12.00");
  expect(formatTokens(12_340, "en-US")).toBe("12.3K");
});

test("the text grows and shrinks within its bounds, and the usual size leaves no trace", async () => {
  await on.screen.show(LookSection);
  chooseTextSize(125);
  expect(document.documentElement.style.fontSize).toBe("125%");
  expect(localStorage.getItem("towline.text_size")).toBe("125");
  chooseTextSize(400);
  expect(document.documentElement.style.fontSize).toBe("130%");
  chooseTextSize(100);
  expect(document.documentElement.style.fontSize).toBe("");
  expect(localStorage.getItem("towline.text_size")).toBeNull();
});

// rules: W10
test("the Enter key and following are chosen on this device", async () => {
  await on.screen.show(LookSection);
  const [, send] = on.screen.place.querySelectorAll<HTMLInputElement>('[name="enter"]');
  send?.click();
  await on.screen.choose('[name="follow"]:not(:checked)');
  expect(localStorage.getItem("towline.enter")).toBe("send");
  expect(localStorage.getItem("towline.follow")).toBe("off");
  const [usual] = on.screen.place.querySelectorAll<HTMLInputElement>('[name="enter"]');
  usual?.click();
  await on.screen.choose('[name="follow"]:not(:checked)');
  expect(localStorage.length).toBe(0);
});

test("a password is set with the old one, and a short one is never sent", async () => {
  identity.value = { user: "ada", server_name: "Desk" };
  const refused = { detail: "The old password is wrong.", reason: "wrong_password" };
  on.screen.server.on("PUT /api/users/ada/password", () => problem(400, "rejected", refused));
  await on.screen.show(AccountSection);
  await on.screen.type('[autocomplete="new-password"]', "short");
  await on.screen.submit("form");
  expect(on.screen.find('[role="alert"]').textContent).toContain("8 characters");
  expect(on.screen.server.seen).toEqual([]);
  await on.screen.type('[autocomplete="new-password"]', "long enough");
  await on.screen.type('[autocomplete="current-password"]', "old one");
  await on.screen.choose('[type="checkbox"]');
  await on.screen.submit("form");
  const sent = { password: "long enough", old: "old one", everywhere: true };
  expect(on.screen.server.seen[0]?.body).toEqual(sent);
  expect(on.screen.find('[role="alert"]').textContent).toContain("The old password is wrong.");
  on.screen.server.on(
    "PUT /api/users/ada/password",
    () => new Response(null, { status: 204, headers: { "towline-contract": "1" } }),
  );
  await on.screen.submit("form");
  expect(on.screen.text).toContain("The password is set.");
  expect(on.screen.find<HTMLInputElement>('[autocomplete="new-password"]').value).toBe("");
});

const CAPABILITIES = {
  server_version: "0.7.0",
  contract: "1",
  areas: [],
  agents: [],
  modes: [],
  limits: {
    body_bytes: 1,
    large_body_bytes: 1,
    prompt_blocks: 1,
    prompt_bytes: 1,
    inbox_prompts: 1,
    live_sessions: 1,
    session_readers: 1,
    timeout_s: 1,
  },
};

test("versions stand beside each other, and the last changes of the connection can be copied", async () => {
  connectionLog.value = [];
  on.screen.server.on("GET /api/capabilities", () => json(CAPABILITIES));
  await on.screen.show(AboutSection);
  expect(on.screen.text).toContain("0.7.0");
  expect(on.screen.text).toContain("No chat was open");
  serverBuild.value = null;
  noteLink("ses_a", { ...IDLE, phase: "connecting", attempt: 1, policy: LINK_POLICY }, 1_000);
  noteLink("ses_a", { ...IDLE, phase: "retrying", attempt: 1, failures: 3 }, 2_000);
  await on.screen.settle();
  const copied = vi.spyOn(navigator.clipboard, "writeText").mockResolvedValue();
  await on.screen.press("Copy the log");
  expect(copied.mock.calls[0]?.[0]).toBe(
    "1970-01-01T00:00:01.000Z ses_a connecting attempt=1\n" +
      "1970-01-01T00:00:02.000Z ses_a retrying attempt=1 failures=3",
  );
  expect(on.screen.text).toContain("failures: 3");
  expect(on.screen.text).toContain("Copied");
});

test("the log holds the last 200 changes, and no state twice in a row", () => {
  connectionLog.value = [];
  for (let at = 0; at < 300; at++) {
    noteLink("ses_a", { ...IDLE, phase: at % 2 ? "live" : "connecting", attempt: at }, at);
    noteLink("ses_a", { ...IDLE, phase: at % 2 ? "live" : "connecting", attempt: at }, at);
  }
  expect(connectionLog.value.length).toBe(200);
  expect(connectionLog.value[0]?.attempt).toBe(100);
});
