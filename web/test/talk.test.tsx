import { beforeEach, describe, expect, test, vi } from "vitest";
import { learn } from "../src/platform/api.ts";
import type { CallView, MessageView } from "../src/protocol/types.gen.ts";
import { begun } from "../src/state/outbox.ts";
import { ComposerTools } from "../src/ui/chat/Composer.tsx";
import { MessageFooter, OwnFooter } from "../src/ui/chat/Message.tsx";
import { Keys } from "../src/ui/shell/AppShell.tsx";
import { TurnSheet } from "../src/ui/turn/MessageFooter.tsx";
import { REQUEST, SESSION, setWidth, TIME, useChatScreen } from "./chat_screen.tsx";
import { json, problem } from "./fake_server.ts";

const on = useChatScreen();
const AT = `/api/sessions/${SESSION}`;

beforeEach(async () => {
  const parts = [MessageFooter, OwnFooter, TurnSheet, ComposerTools, Keys];
  await Promise.all([...parts.map(({ preload }) => preload()), learn()]);
});

function message(seq: number, role: string, text: string, turn = "trn_1"): MessageView {
  const fixed = { turn, time: TIME, cut: null, key: null, mark: null, undone: false };
  return { seq, id: `m_${seq}`, role, content: [{ type: "text", text }], ...fixed };
}

const TALK = {
  seq: 4,
  messages: [message(2, "user", "Say **one**"), message(4, "assistant", "It is **one**.")],
  last_turn: { id: "trn_1", outcome: "completed" } as never,
};

const accepted = () => json({ prompt: "pmt_2", session: SESSION, turn: "trn_2" }, 202);

describe("a message of one's own", () => {
  test("is said otherwise in its place, and what was being written comes back on giving up", async () => {
    on.screen.server.on(`POST ${AT}/turns/trn_1/resend`, accepted);
    await on.screen.show(TALK);
    await on.screen.type("half a thought");
    await on.screen.press("Edit");
    expect(on.screen.field.value).toBe("Say **one**");
    expect(on.screen.text(".composer-note")).toContain("You edit an earlier message.");
    await on.screen.press("Cancel");
    expect(on.screen.field.value).toBe("half a thought");
    expect(on.screen.text(".composer-note")).toBeUndefined();
    await on.screen.press("Edit");
    await on.screen.type("Say two");
    await on.screen.press("Send");
    const [sent] = on.screen.server.to(`${AT}/turns/trn_1/resend`);
    expect(sent?.body).toEqual({ content: [{ type: "text", text: "Say two" }] });
    expect(sent?.headers.get("idempotency-key")).toHaveLength(32);
    expect(on.screen.server.to(`${AT}/prompts`)).toEqual([]);
  });

  test("comes back by an arrow up in an empty field, and not in one with words", async () => {
    await on.screen.show(TALK);
    const up = () =>
      on.screen.field.dispatchEvent(
        new KeyboardEvent("keydown", { key: "ArrowUp", bubbles: true, cancelable: true }),
      );
    await on.screen.type("words");
    up();
    await on.screen.settle();
    expect(on.screen.field.value).toBe("words");
    await on.screen.type("");
    up();
    await on.screen.settle();
    expect(on.screen.field.value).toBe("Say **one**");
  });

  test("stays where it is while a turn runs, and says why it is not changed then", async () => {
    await on.screen.show(TALK);
    await on.screen.startTurn();
    await on.screen.press("Edit");
    expect(on.screen.field.value).toBe("");
    expect(on.screen.text(".composer .complaint")).toContain("Stop the turn first");
  });

  test("becomes a new message when another device has undone what it was to replace", async () => {
    on.screen.server
      .on(`POST ${AT}/turns/trn_1/resend`, () => problem(422, "rejected", { reason: "turn_gone" }))
      .on(`POST ${AT}/prompts`, accepted);
    await on.screen.show(TALK);
    await on.screen.press("Edit");
    await on.screen.type("Say two");
    await on.screen.press("Send");
    expect(on.screen.text(".delivery")).toContain("send a new message");
    (on.screen.place.querySelector(".delivery-actions button:last-child") as HTMLElement).click();
    await on.screen.settle();
    expect(on.screen.field.value).toBe("Say two");
    await on.screen.press("Send");
    expect(on.screen.server.to(`${AT}/prompts`)).toHaveLength(1);
    expect(on.screen.server.to(`${AT}/turns/trn_1/resend`)).toHaveLength(1);
  });

  test("of a turn that was steered offers only the prompt that began it", async () => {
    const messages = [message(2, "user", "Begin"), message(3, "user", "Steer"), TALK.messages[1]];
    await on.screen.show({ ...TALK, messages: messages as MessageView[] });
    const edits = on.screen.place.querySelectorAll('article.user [aria-label="Edit"]');
    expect(edits).toHaveLength(1);
  });
});

test("under the last answer stands a way to ask for it again, and when it was said", async () => {
  on.screen.server.on(`POST ${AT}/retry`, () => problem(409, "conflict"));
  await on.screen.show(TALK);
  expect(on.screen.text("article.agent time")).toMatch(/\d\d:\d\d/);
  await on.screen.press("Retry");
  expect(on.screen.server.to(`${AT}/retry`)).toHaveLength(1);
  expect(on.screen.text(".composer .complaint")).toContain("Somebody was quicker");
  await on.screen.type("x");
  expect(on.screen.text(".composer .complaint")).toBeUndefined();
});

test("an answer is copied as it reads, and from its menu as Markdown", async () => {
  const copied: string[] = [];
  vi.stubGlobal("navigator", {
    ...navigator,
    languages: ["en"],
    clipboard: { writeText: async (text: string) => void copied.push(text) },
  });
  on.screen.server.on(`GET ${AT}/turns/trn_1/diff`, () => json({ turn: "trn_1", changes: [] }));
  await on.screen.show(TALK);
  await on.screen.press("Copy");
  await on.screen.press("More on this answer");
  await on.screen.press("Copy as Markdown");
  expect(copied).toEqual(["It is one.", "It is **one**."]);
  expect(on.screen.place.querySelector("dialog")).toBeNull();
});

describe("while a turn runs", () => {
  const QUEUED = {
    prompt: "pmt_9",
    content: [{ type: "text", text: "Then this" } as const],
    when: "auto",
    key: null,
    time: TIME,
  };

  test("what is written can be said now instead of later", async () => {
    on.screen.server.on(`POST ${AT}/prompts`, accepted);
    await on.screen.show(TALK);
    await on.screen.startTurn();
    await on.screen.type("Look here first");
    await on.screen.press("Steer now");
    expect(on.screen.server.to(`${AT}/prompts`)[0]?.body).toEqual({
      content: [{ type: "text", text: "Look here first" }],
      when: "steer",
    });
  });

  test("a prompt that waits stands above the composer and can be taken back", async () => {
    on.screen.server.on(`POST ${AT}/prompts/pmt_9/withdraw`, () => json({ prompt: "pmt_9" }));
    await on.screen.show({ ...TALK, queue: [QUEUED] });
    await on.screen.startTurn();
    expect(on.screen.text(".queue li")).toBe("Waits its turnThen this");
    expect(on.screen.text(".log")).not.toContain("Then this");
    await on.screen.press("Remove Then this");
    expect(on.screen.server.to(`${AT}/prompts/pmt_9/withdraw`)).toHaveLength(1);
    await on.screen.happen({ type: "prompt_withdrawn", prompt: "pmt_9" } as never);
    expect(on.screen.text(".queue")).toBeUndefined();
  });

  // rules: W15
  test("a stop holds back what waits, says so, and lets it go on when asked", async () => {
    on.screen.server.on(`POST ${AT}/queue/resume`, () => json({ queued: 1 }));
    await on.screen.show({ ...TALK, queue: [QUEUED] });
    await on.screen.startTurn();
    expect(on.screen.text(".queue")).not.toContain("Held back");
    await on.screen.happen({ type: "turn_cancelled", by: "ada", reason: "r", usage: {} } as never);
    expect(on.screen.text(".queue")).toContain("Held back after the stop.");
    await on.screen.press("Resume queue");
    expect(on.screen.server.to(`${AT}/queue/resume`)).toHaveLength(1);
  });

  test("the line under the talk names what runs, and for how long", async () => {
    const running = { call: "c", status: "in_progress", title: "Run tests" } as CallView;
    const turn = { id: "trn_1", started: new Date(Date.now() - 12_000).toISOString(), attempt: 0 };
    await on.screen.show({ ...TALK, turn: turn as never, open_calls: [running] });
    expect(on.screen.text(".activity")).toBe("Working· 0:12· Run tests");
  });

  test("Escape stops with its second press, and says so after the first", async () => {
    on.screen.server.on(`POST ${AT}/interrupt`, () => json({ turn: "trn_1" }, 202));
    const { chat } = await import("../src/state/chat.ts");
    chat.value = on.screen.chat;
    await on.screen.show(TALK);
    await on.screen.startTurn();
    const press = async () => {
      document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape", bubbles: true }));
      await on.screen.settle();
    };
    await press();
    expect(on.screen.text(".activity")).toContain("Esc again stops");
    await on.screen.settle(2_500);
    expect(on.screen.text(".activity")).not.toContain("Esc again stops");
    await press();
    expect(on.screen.server.to(`${AT}/interrupt`)).toEqual([]);
    await press();
    expect(on.screen.server.to(`${AT}/interrupt`)).toHaveLength(1);
    chat.value = null;
  });
});

test("a daily limit offers the other model by its name, in one tap", async () => {
  on.screen.server
    .on(`PATCH ${AT}`, () => json({ ...INFO, model: "local/small" }))
    .on(`POST ${AT}/retry`, accepted);
  await on.screen.show({ ...TALK, model: "local/big" });
  await on.screen.startTurn();
  const details = { suggested_model: "small" };
  const fault = { code: "provider_plan_limit", message: "No more today.", details };
  await on.screen.happen({ type: "turn_failed", fault, usage: {} } as never);
  await on.screen.settle();
  await on.screen.press("Switch to local/small");
  const changed = on.screen.server.to(AT).find(({ method }) => method === "PATCH");
  expect(changed?.body).toEqual({ model: "local/small" });
  expect(on.screen.server.to(`${AT}/retry`)).toHaveLength(1);
});

const INFO = {
  id: SESSION,
  agent: "a",
  model: "m",
  mode: "ask",
  live: true,
  last_seq: 4,
  created: TIME,
  updated: TIME,
};

describe("what is new", () => {
  test("since the last look is marked by a line, and told to be read", async () => {
    on.screen.server
      .on(`GET ${AT}`, () => json({ ...INFO, unread: true, read_seq: 2 }))
      .on(`POST ${AT}/read`, () => json({ seq: 4 }));
    await on.screen.show(TALK);
    await on.screen.settle(1_500);
    expect(on.screen.text(".new-line")).toMatch(/^New since /);
    expect(on.screen.place.querySelector(".new-line + article")?.textContent).toContain("It is");
    expect(on.screen.server.to(`${AT}/read`).map(({ body }) => body)).toEqual([{ seq: 4 }]);
  });

  test("is not marked where all was read", async () => {
    on.screen.server
      .on(`GET ${AT}`, () => json({ ...INFO, read_seq: 4 }))
      .on(`POST ${AT}/read`, () => json({ seq: 4 }));
    await on.screen.show(TALK);
    await on.screen.settle(1_500);
    expect(on.screen.text(".new-line")).toBeUndefined();
  });

  test("is not marked in a chat that was just begun here", async () => {
    on.screen.server
      .on(`GET ${AT}`, () => json({ ...INFO, unread: true, read_seq: 2 }))
      .on(`POST ${AT}/read`, () => json({ seq: 4 }));
    begun.add(SESSION);
    await on.screen.show(TALK);
    await on.screen.settle(1_500);
    expect(on.screen.text(".new-line")).toBeUndefined();
  });

  test("a notice stands as one quiet line where it came", async () => {
    await on.screen.show(TALK);
    await on.screen.happen({ type: "notice", code: "n", message: "Attached: a.py (3 lines)." });
    expect(on.screen.text("article.agent + .mark")).toBe("Attached: a.py (3 lines).");
  });

  test("a notice stays while one reads, though the view holds only the last twenty", async () => {
    const lines = () =>
      [...on.screen.place.querySelectorAll(".column > .mark")]
        .map(({ textContent }) => textContent)
        .filter((text) => text?.startsWith("n"));
    await on.screen.show(TALK);
    for (let at = 1; at <= 45; at += 1)
      await on.screen.happen({ type: "notice", code: "n", message: `n${at}` });
    expect(on.screen.chat.current.value.notices).toHaveLength(20);
    expect(lines()).toEqual(Array.from({ length: 45 }, (_, at) => `n${at + 1}`));
    // A view that is read again holds the same, and says none of them twice.
    await on.screen.show({ ...on.screen.chat.current.value });
    expect(lines()).toHaveLength(45);
  });

  test("the notices of a view stand at their places, and before all but where more is known", async () => {
    const notices = [1, 3, 5].map((seq) => ({ seq, code: "n", message: `n${seq}`, scope: "turn" }));
    const lines = () =>
      [...on.screen.place.querySelectorAll(".column > :is(article, .mark)")]
        .map(({ textContent }) => textContent?.match(/n\d|one/)?.[0])
        .filter((word) => word !== undefined);
    await on.screen.show({ ...TALK, notices });
    expect(lines()).toEqual(["n1", "one", "n3", "one", "n5"]);
    await on.screen.show({ ...TALK, notices, messages: [] });
    expect(lines()).toEqual(["n1", "n3", "n5"]);
    await on.screen.show({ ...TALK, notices, older: true });
    expect(lines()).toEqual(["one", "n3", "one", "n5"]);
  });
});

test("older messages come from the server, in front of those that are here", async () => {
  on.screen.server.on(`GET ${AT}/history`, (seen) => {
    const before = Number(new URL(seen.path, "http://h").searchParams.get("before"));
    return before === 2
      ? json({ messages: [message(1, "user", "The very first", "trn_0")], calls: [], next: 1 })
      : problem(503, "draining");
  });
  await on.screen.show({ ...TALK, older: true });
  await on.screen.press("Earlier messages");
  await vi.dynamicImportSettled();
  await on.screen.settle();
  expect(on.screen.text("article")).toContain("The very first");
  expect(on.screen.place.querySelectorAll("article")).toHaveLength(3);
  await on.screen.press("Earlier messages");
  await vi.dynamicImportSettled();
  await on.screen.settle();
  expect(on.screen.place.querySelectorAll("article")).toHaveLength(3);
  on.screen.button("Earlier messages");
});

// rules: W07
describe("on a desk", () => {
  test("all of a request stands in its card, and digits answer while it has the focus", async () => {
    setWidth(1_280);
    const path = `${AT}/permissions/prm_1`;
    on.screen.server.on(`POST ${path}`, () => json({ option: "deny" }));
    await on.screen.show({ permissions: [REQUEST] });
    const press = async (key: string, target: Element | null) => {
      target?.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
      await on.screen.settle();
    };
    const card = on.screen.place.querySelector(".request .permission");
    expect(card?.querySelector("pre")?.textContent).toBe(REQUEST.preview.text);
    await press("1", card);
    expect(on.screen.server.to(path)).toEqual([]);
    await on.screen.settle(400);
    await press("1", document.body);
    await press("1", card?.querySelector("input") ?? null);
    expect(on.screen.server.to(path)).toEqual([]);
    const note = card?.querySelector("input") as HTMLInputElement;
    note.value = "Use a branch.";
    note.dispatchEvent(new InputEvent("input", { bubbles: true }));
    await on.screen.settle();
    await on.screen.press("Deny");
    expect(on.screen.server.to(path)[0]?.body).toEqual({
      option: "deny",
      digest: REQUEST.digest,
      note: "Use a branch.",
    });
  });

  test("a digit takes the option at its place", async () => {
    setWidth(1_280);
    const path = `${AT}/permissions/prm_1`;
    on.screen.server.on(`POST ${path}`, () => json({ option: "allow_once" }));
    await on.screen.show({ permissions: [REQUEST] });
    await on.screen.settle(400);
    const card = on.screen.place.querySelector(".request .permission");
    card?.dispatchEvent(new KeyboardEvent("keydown", { key: "2", bubbles: true }));
    await on.screen.settle();
    expect(on.screen.server.to(path)[0]?.body).toMatchObject({ option: "allow_once" });
  });
});

test("who reads further up is led to the latest, whether or not it is new", async () => {
  await on.screen.show(TALK);
  const log = on.screen.place.querySelector(".log") as HTMLElement;
  Object.defineProperty(log, "scrollHeight", { value: 500 });
  expect(on.screen.text(".jump")).toBeUndefined();
  log.dispatchEvent(new WheelEvent("wheel", { deltaY: -10 }));
  await on.screen.settle();
  expect(on.screen.text(".jump")).toBe("Latest");
});
