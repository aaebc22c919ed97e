import { beforeEach, describe, expect, test } from "vitest";
import { learn } from "../src/platform/api.ts";
import { route } from "../src/state/router.ts";
import { Dock } from "../src/ui/chat/ChatPage.tsx";
import { ChipsSheet } from "../src/ui/dock/Chips.tsx";
import { chipsOpen } from "../src/ui/dock/chips_open.ts";
import { SESSION, TIME, useChatScreen } from "./chat_screen.tsx";
import { json, problem } from "./fake_server.ts";

const on = useChatScreen();
const TRUST = `/api/sessions/${SESSION}/trust`;
const SESSION_PATH = `/api/sessions/${SESSION}`;
const INFO = {
  id: SESSION,
  agent: "a",
  model: "local/b",
  mode: "plan",
  live: true,
  last_seq: 1,
  created: TIME,
  updated: TIME,
};

const CAPABILITIES = {
  server_version: "0",
  contract: "1",
  areas: [],
  agents: [],
  modes: ["ask", "plan"],
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

beforeEach(async () => {
  chipsOpen.value = false;
  await Promise.all([Dock.preload(), ChipsSheet.preload(), learn()]);
});

describe("the plan", () => {
  test("is one line with what is in work, and opens to all of it", async () => {
    await on.screen.show({
      todos: [
        { id: "1", content: "Look", status: "completed" },
        { id: "2", content: "Run tests", status: "in_progress" },
        { id: "3", content: "Tell", status: "pending" },
      ],
    });
    expect(on.screen.text(".plan-now")).toBe("1/3 · Run tests");
    const rows = [...on.screen.place.querySelectorAll(".todo")].map((row) => row.textContent);
    expect(rows).toEqual(["Lookdone", "Run testsnow", "Tellto do"]);
  });

  test("says when all is done, and is not there without a plan", async () => {
    await on.screen.show({ todos: [{ id: "1", content: "Look", status: "completed" }] });
    expect(on.screen.text(".plan-now")).toBe("1/1 · all done");
    on.screen.leave();
    await on.screen.show({});
    expect(on.screen.place.querySelector(".plan")).toBeNull();
  });
});

describe("model and mode", () => {
  const offer = { default: "local/a", models: [{ model: "local/a" }, { model: "local/b" }] };

  beforeEach(() => {
    on.screen.server.on("GET /api/models", () => json({ ...offer, faults: {} }));
    on.screen.server.on("GET /api/capabilities", () => json(CAPABILITIES));
  });

  async function open(): Promise<HTMLElement> {
    await on.screen.show({
      model: "local/a",
      mode: "ask",
      context: { used: 500, window: 1000 },
      cost: 0.25,
      usage: { input: 1000, cache_read: 200, output: 30 },
    });
    expect(on.screen.text(".chip-button")).toBe("Model and mode: a·Ask· context 50 %");
    await on.screen.press("Model and mode: a·Ask");
    await on.screen.settle();
    return on.screen.place.querySelector("dialog") as HTMLElement;
  }

  test("are changed with a tap, and what was used is told", async () => {
    on.screen.server.on(`PATCH ${SESSION_PATH}`, () => json(INFO));
    const sheet = await open();
    expect(sheet.textContent).toContain("$0.25");
    expect(sheet.textContent).toContain("1,200 tokens in, 30 out");
    const other = [...sheet.querySelectorAll("input")].find((one) =>
      one.parentElement?.textContent?.includes("local/b"),
    );
    other?.click();
    await on.screen.settle();
    expect(on.screen.server.to(SESSION_PATH).at(-1)?.body).toEqual({ model: "local/b" });
  });

  test("a change that is refused is told at its place", async () => {
    on.screen.server.on(`PATCH ${SESSION_PATH}`, () =>
      problem(422, "rejected", { detail: "No such mode." }),
    );
    const sheet = await open();
    const plan = [...sheet.querySelectorAll("input")].find((one) =>
      one.parentElement?.textContent?.includes("Plan only"),
    );
    plan?.click();
    await on.screen.settle();
    expect(sheet.querySelector("[role=alert]")?.textContent).toContain("No such mode.");
  });
});

describe("a folder with settings of its own", () => {
  const found = {
    folder: "/home/ada/shop",
    trusted: false,
    digest: "d1",
    files: [".towline/commands/review.md"],
    rules: ["allow run_program make *"],
    contents: [
      { path: ".towline/commands/review.md", text: "Read <b>all</b>\u202e of it.", shown: "cut" },
    ],
  };

  // rules: A5.51
  test("is trusted as its files were seen, after all of them were shown", async () => {
    on.screen.server.on(`GET ${TRUST}`, () => json(found));
    on.screen.server.on(`POST ${TRUST}`, () => json({ ...found, trusted: true }));
    await on.screen.show({});
    await on.screen.settle();
    await on.screen.press("Review", on.screen.place.querySelector(".trust") as HTMLElement);
    const sheet = on.screen.place.querySelector("dialog") as HTMLElement;
    expect(sheet.textContent).toContain(".towline/commands/review.md");
    expect(sheet.textContent).toContain("allow run_program make *");
    expect(sheet.querySelector("pre")?.textContent).toBe("Read <b>all</b>⟨U+202E⟩ of it.");
    expect(sheet.textContent).toContain("read the rest in the folder");
    await on.screen.press("Trust these files", sheet);
    await on.screen.settle();
    expect(on.screen.server.to(TRUST).at(-1)?.body).toEqual({ digest: "d1" });
    expect(on.screen.place.querySelector(".trust")).toBeNull();
  });

  test("is no question any more once it was answered on another device", async () => {
    let trusted = false;
    on.screen.server.on(`GET ${TRUST}`, () => json({ ...found, digest: "d4", trusted }));
    await on.screen.show({});
    await on.screen.settle();
    expect(on.screen.place.querySelector(".trust")).not.toBeNull();
    trusted = true;
    dispatchEvent(new Event("focus"));
    await on.screen.settle();
    expect(on.screen.place.querySelector(".trust")).toBeNull();
  });

  test("may wait: then nothing is trusted and nobody is asked again", async () => {
    on.screen.server.on(`GET ${TRUST}`, () => json({ ...found, digest: "d2" }));
    await on.screen.show({});
    await on.screen.settle();
    await on.screen.press("Not now");
    expect(on.screen.place.querySelector(".trust")).toBeNull();
    expect(on.screen.server.to(TRUST).map(({ method }) => method)).toEqual(["GET"]);
  });

  test.each([
    ["has nothing to trust", { ...found, files: [] }],
    ["is trusted", { ...found, trusted: true, digest: "d3" }],
  ])("that %s is no question", async (_case, info) => {
    on.screen.server.on(`GET ${TRUST}`, () => json(info));
    await on.screen.show({});
    await on.screen.settle();
    expect(on.screen.place.querySelector(".trust")).toBeNull();
  });
});

test("a sub-agent's session leads back to the one that it works for", async () => {
  await on.screen.show({ parent: { session: "ses_top", call: "call_1" } });
  await on.screen.press("Part of another session");
  expect(route.value).toEqual({ page: "chat", session: "ses_top" });
});
