import { render } from "preact";
import { beforeEach, describe, expect, test } from "vitest";
import { reduceAll } from "../src/core/reducer.ts";
import type { SessionInfo } from "../src/protocol/types.gen.ts";
import { sessions } from "../src/state/sessions.ts";
import { SessionList } from "../src/ui/shell/AppShell.tsx";
import { REQUEST, TIME, useChatScreen } from "./chat_screen.tsx";
import { json } from "./fake_server.ts";

const on = useChatScreen();

// rules: W17
test("an answer that streams and ends keeps its elements", async () => {
  await on.screen.show();
  await on.screen.startTurn();
  await on.screen.happen({ type: "message_started", message: "msg_1", role: "assistant" });
  const text = "# Title\n\nFirst paragraph.\n\nSecond\nline";
  await on.screen.happen({ type: "text_delta", message: "msg_1", block: 0, at: 0, text }, false);
  await on.screen.settle(100);
  const article = on.screen.place.querySelector("article.agent");
  const first = article?.querySelector(".md > p");
  expect(first?.textContent).toBe("First paragraph.");
  await on.screen.happen({
    type: "message_ended",
    message: "msg_1",
    content: [{ type: "text", text: `${text} two.` }],
  });
  await on.screen.happen({ type: "turn_completed", stop_reason: "end_turn", usage: {} });
  await on.screen.settle(100);
  expect(on.screen.place.querySelector("article.agent")).toBe(article);
  expect(on.screen.place.querySelector("article.agent .md > p")).toBe(first);
  expect(article?.querySelector(".md")?.textContent).toBe("TitleFirst paragraph.Second\nline two.");
  expect(on.screen.place.querySelector(".activity")).toBeNull();
});

// rules: C1.6
test("a partial replaces what the deltas had built", async () => {
  await on.screen.show();
  await on.screen.startTurn();
  await on.screen.happen({ type: "message_started", message: "msg_1", role: "assistant" });
  await on.screen.happen(
    { type: "text_delta", message: "msg_1", block: 0, at: 0, text: "Old words" },
    false,
  );
  await on.screen.settle(100);
  const content = [{ type: "text", text: "New words" } as const];
  on.screen.chat.frames([{ kind: "partial", value: { message: "msg_1", content } }], reduceAll);
  await on.screen.happen(
    { type: "text_delta", message: "msg_1", block: 0, at: 9, text: " go on" },
    false,
  );
  await on.screen.settle(100);
  expect(on.screen.place.querySelector(".md")?.textContent).toBe("New words go on");
});

describe("a tool card", () => {
  const call = {
    type: "tool_call",
    id: "call_1",
    name: "look",
    arguments: '{"at":"here"}',
  } as const;

  beforeEach(async () => {
    await on.screen.show();
    await on.screen.startTurn();
    await on.screen.happen({ type: "message_ended", message: "msg_1", content: [call] });
    await on.screen.happen({
      type: "tool_proposed",
      call: "call_1",
      tool: "look",
      arguments: call.arguments,
      title: "Look here",
      effect: "read",
    });
    await on.screen.happen({ type: "tool_started", call: "call_1" });
    await on.screen.happen(
      { type: "tool_output_delta", call: "call_1", at: 0, text: "one\ntwo" },
      false,
    );
    await on.screen.press("Working");
  });

  const card = (): HTMLDetailsElement =>
    on.screen.place.querySelector("details.tool") as HTMLDetailsElement;

  async function open(): Promise<void> {
    card().open = true;
    card().dispatchEvent(new Event("toggle"));
    await on.screen.settle();
  }

  test("says in one line what runs and what it printed last", () => {
    expect(card().querySelector("summary")?.textContent).toBe("Look hereRunningtwo");
  });

  test("shows arguments and growing output when it is opened", async () => {
    await open();
    await on.screen.happen(
      { type: "tool_output_delta", call: "call_1", at: 7, text: "\nthree" },
      false,
    );
    await on.screen.settle();
    const wells = [...card().querySelectorAll("pre")].map((well) => well.textContent);
    expect(wells).toEqual(['{\n  "at": "here"\n}', "one\ntwo\nthree"]);
  });

  test("shows a failure in the line, not only inside", async () => {
    await on.screen.happen({
      type: "tool_ended",
      call: "call_1",
      status: "failed",
      is_error: true,
      content: [{ type: "text", text: "No such on.screen.place.\nLook elsewhere." }],
      duration_ms: 1_500,
    });
    await on.screen.settle();
    expect(card().className).toContain("bad");
    expect(card().querySelector("summary")?.textContent).toBe(
      "Look hereFailed1.5 sNo such on.screen.place.",
    );
  });

  test("an artifact or block of an unknown kind is shown, not lost", async () => {
    await on.screen.happen({
      type: "tool_ended",
      call: "call_1",
      status: "dreamt",
      content: [{ type: "unknown", name: "smell", raw: { note: "roses" } }],
    });
    await open();
    expect(card().querySelector(".tool-status")?.textContent).toBe("dreamt");
    expect(card().textContent).toContain("roses");
  });
});

// rules: W16
test("a long conversation shows its last 60 entries, and more when asked", async () => {
  const messages = Array.from({ length: 200 }, (_, at) => ({
    seq: at + 1,
    role: "user",
    id: `pmt_${at}`,
    turn: `trn_${at}`,
    time: TIME,
    content: [{ type: "text", text: `Message ${at}` } as const],
    cut: null,
    key: null,
    mark: null,
    undone: false,
  }));
  await on.screen.show({ messages, seq: 200, older: true });
  expect(on.screen.place.querySelectorAll("article")).toHaveLength(20); // a screen of them at once
  await on.screen.settle(1_000);
  expect(on.screen.place.querySelectorAll("article")).toHaveLength(60);
  on.screen.button("Earlier messages").click();
  await on.screen.settle();
  expect(on.screen.place.querySelectorAll("article")).toHaveLength(120);
  expect(on.screen.place.querySelector("article")?.textContent).toContain("Message 80");
});

test("a turn that waits counts down in the server's time", async () => {
  await on.screen.show();
  await on.screen.startTurn();
  const line = () => on.screen.place.querySelector(".activity")?.textContent;
  const until = (ms: number) => new Date(Date.now() + ms).toISOString();
  await on.screen.happen({ type: "waiting", until: until(60_000), reason: "rate_limit" });
  expect(line()).toContain("1:00 left");
  on.screen.chat.clockAheadMs.value = 30_000;
  await on.screen.settle();
  expect(line()).toContain("0:30 left");
  await on.screen.settle(31_000);
  expect(line()).not.toContain("left");
});

test("a title that is cut says so", async () => {
  await on.screen.show({ title: "Please change it wit", title_truncated: true });
  expect(on.screen.text("h1")).toBe("Please change it wit…");
});

test("a wait whose end nobody knows says what for, and no time", async () => {
  await on.screen.show();
  await on.screen.startTurn();
  const until = new Date(Date.now() + 900_000).toISOString();
  const said = {
    slot: "Another chat uses the model",
    reading: "The model reads",
    model_loading: "The model is fetched and loaded",
    retry: "Trying again",
  };
  for (const [reason, words] of Object.entries(said)) {
    await on.screen.happen({ type: "waiting", until, reason });
    const line = on.screen.place.querySelector(".activity")?.textContent;
    expect(line).toContain(words);
    expect(line?.includes("left")).toBe(reason === "retry");
  }
});

test("what the conversation went back behind is shown as undone", async () => {
  await on.screen.show();
  await on.screen.startTurn();
  const content = [{ type: "text", text: "Done." }] as const;
  await on.screen.happen({ type: "message_ended", message: "msg_1", content });
  await on.screen.happen({ type: "turn_completed", stop_reason: "end_turn", usage: {} });
  const undone = () => on.screen.place.querySelector("article.entry.agent.undone");
  expect(undone()).toBeNull();
  await on.screen.happen({ type: "reverted", to_turn: "trn_1" });
  expect(undone()?.textContent).toContain("Done.");
});

test("a turn that failed says at its place what was wrong and whether to try again", async () => {
  await on.screen.show();
  await on.screen.startTurn();
  const fault = {
    code: "provider_rate_limit",
    message: "Too many requests.",
    retry: "same_request",
    retry_after_s: 41.2,
  };
  await on.screen.happen({ type: "turn_failed", fault, usage: {} });
  await on.screen.settle();
  const told = on.screen.place.querySelector(".log .failure")?.textContent;
  expect(told).toContain("This turn failedToo many requests.Try again in 42 s.");
});

// rules: W24
test("the status region tells the news of a turn, the log is silent", async () => {
  await on.screen.show();
  const region = on.screen.place.querySelector('[role="status"][aria-live="polite"]');
  const news: (string | null | undefined)[] = [];
  await on.screen.startTurn();
  await on.screen.settle();
  news.push(region?.textContent);
  await on.screen.happen(REQUEST);
  await on.screen.settle();
  news.push(region?.textContent);
  await on.screen.happen({ type: "turn_completed", stop_reason: "end_turn", usage: {} });
  await on.screen.settle();
  news.push(region?.textContent);
  expect(news).toEqual(["Working", "Approval needed", "Answer complete"]);
  expect(on.screen.place.querySelector('[role="log"]')?.getAttribute("aria-live")).toBe("off");
});

// rules: W25
test("what hides in names, faults and the arguments of a tool is spelled out", async () => {
  const hidden = "a\u202eb\u200b\u001b";
  const shown = "a⟨U+202E⟩b⟨U+200B⟩⟨U+001B⟩";
  await on.screen.show({ title: `${hidden} 👩\u200d💻❤\ufe0f`, cwd: hidden });
  expect(on.screen.text("h1")).toBe(`${shown} 👩\u200d💻❤\ufe0f`);
  expect(on.screen.text(".bar .quiet")).toBe(shown);
  expect(document.title).toContain(shown);
  await on.screen.startTurn();
  const call = {
    type: "tool_call",
    id: "call_1",
    name: hidden,
    arguments: `{"at":"${hidden.slice(0, -1)}"}`,
  } as const;
  await on.screen.happen({ type: "message_ended", message: "msg_1", content: [call] });
  await on.screen.press("Working");
  expect(on.screen.text(".tool-title")).toBe(shown);
  await on.screen.happen({
    type: "tool_proposed",
    call: "call_1",
    tool: "look",
    arguments: call.arguments,
    title: `${hidden}👩\u200d💻`,
    effect: "read",
  });
  await on.screen.happen({ type: "tool_started", call: "call_1" });
  await on.screen.happen({ type: "tool_progress", call: "call_1", text: hidden });
  const change = { path: hidden, kind: "modified", diff: `+${hidden}` } as const;
  await on.screen.happen({ type: "files_changed", call: "call_1", changes: [change] });
  expect(on.screen.text(".tool-title")).toBe(`${shown}👩⟨U+200D⟩💻`);
  expect(on.screen.text(".tool-hint")).toBe(shown);
  const card = on.screen.place.querySelector("details.tool") as HTMLDetailsElement;
  card.open = true;
  card.dispatchEvent(new Event("toggle"));
  await on.screen.settle();
  expect(card.querySelector("pre.well")?.textContent).toContain('"a⟨U+202E⟩b⟨U+200B⟩"');
  expect(card.querySelector(".change-path")?.textContent).toContain(shown);
  expect(card.querySelector(".diff")?.textContent).toBe(`+${shown}`);
  const fault = { code: "provider", message: hidden } as const;
  await on.screen.happen({ type: "turn_failed", fault, usage: {} } as never);
  await on.screen.settle();
  expect(on.screen.text(".failure p:nth-of-type(2)")).toBe(shown);
});

// rules: W25
test("a session's name in the list spells out what hides, and keeps its emoji", async () => {
  sessions.value = [
    { id: "ses_b", title: "a\u202eb 👩\u200d💻", created: TIME, updated: TIME } as SessionInfo,
  ];
  render(<SessionList onPick={() => undefined} />, on.screen.place);
  await on.screen.settle();
  expect(on.screen.text(".session-title")).toBe("a⟨U+202E⟩b 👩\u200d💻");
  sessions.value = [];
});

test("a row of the list tells what was said last, on one line that hides nothing", async () => {
  const row = { id: "ses_b", title: "Plans", updated: TIME, last_line: "Done \u202e👩\u200d💻" };
  const silent = { id: "ses_c", title: "Empty", updated: TIME, last_line: "" };
  sessions.value = [row, silent] as SessionInfo[];
  render(<SessionList onPick={() => undefined} />, on.screen.place);
  await on.screen.settle();
  const lines = [...on.screen.place.querySelectorAll(".session-last")];
  expect(lines.map(({ textContent }) => textContent)).toEqual(["Done ⟨U+202E⟩👩\u200d💻"]);
  sessions.value = [];
});

const LOOK = { call: "c1", tool: "look", arguments: "{}", title: "Look c1", effect: "read" };

test("while the built-in model is fetched, reads and writes, the working line says how far", async () => {
  let state: object = { state: "fetching", done_bytes: 64e6, total_bytes: 640e6 };
  on.screen.server.on("GET /api/local-model", () => json(state));
  await on.screen.show({ model: "local/qwen" });
  await on.screen.startTurn();
  const line = () => on.screen.place.querySelector(".activity")?.textContent ?? "";
  await on.screen.happen({
    type: "waiting",
    until: "2999-01-01T00:00:00.000Z",
    reason: "model_loading",
  });
  await on.screen.settle(2000);
  expect(line()).toContain("Fetching the model: 10 % (64 of 640 MB)");
  state = { state: "reading", percent: 40 };
  await on.screen.happen({ type: "step_started", model: "local/qwen" });
  await on.screen.settle(2000);
  expect(line()).toMatch(/^Model reading: 40 %· [\d:]+$/);
  await on.screen.happen({ ...LOOK, type: "tool_proposed" });
  await on.screen.happen({ type: "tool_started", call: "c1" });
  expect(line()).toMatch(/^Working· [\d:]+· Look c1$/);
  await on.screen.happen({ type: "tool_ended", call: "c1", status: "completed", content: [] });
  expect(line()).toMatch(/^Model reading: 40 %· [\d:]+· Look c1$/);
  state = { state: "writing", tokens_s: 9.3 };
  await on.screen.settle(2000);
  expect(line()).toMatch(/9\.3 tokens\/s$/);
  await on.screen.happen(REQUEST);
  expect(line()).toMatch(/^Waiting for you· [\d:]+$/);
  const answer = { permission: "prm_1", option: "deny", by: "ada" };
  await on.screen.happen({ type: "permission_resolved", ...answer });
  expect(line()).toContain("9.3 tokens/s");
  const until = "2999-01-01T00:00:00.000Z";
  await on.screen.happen({ type: "waiting", until, reason: "rate_limit" });
  expect(line()).not.toContain("tokens/s");
  await on.screen.happen({ type: "turn_completed", stop_reason: "end_turn", usage: {} });
  await on.screen.settle();
  const asked = on.screen.server.to("/api/local-model").length;
  await on.screen.settle(5000);
  expect(on.screen.server.to("/api/local-model").length).toBe(asked);
});
