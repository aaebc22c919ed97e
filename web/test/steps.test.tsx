import { readFileSync } from "node:fs";
import { beforeEach, describe, expect, test } from "vitest";
import type { Block, Event, SessionView } from "../src/protocol/types.gen.ts";
import { REQUEST, TIME, useChatScreen } from "./chat_screen.tsx";
import { asks, call, message, thought, words } from "./steps.ts";

const on = useChatScreen();

const ASKED = message(1, "user", [words("Go")]);

/** What the conversation shows, from top to bottom. */
function shown(): string[] {
  const all = on.screen.place.querySelectorAll(
    ".log :is(.bubble, .md, .doings-head, .tool-title, .thinking-text, .thinking-first)",
  );
  return [...all].map((one) => one.textContent ?? "");
}

const head = (at = 0): HTMLButtonElement =>
  on.screen.place.querySelectorAll(".doings-head")[at] as HTMLButtonElement;

async function tap(at = 0): Promise<void> {
  head(at).click();
  await on.screen.settle();
}

describe("a turn that is over", () => {
  test("tells no more of a thought without an end than its head, and nothing hidden in it", async () => {
    const endless = `  a\u202eb ${"x".repeat(100_000)}`;
    await on.screen.show({
      messages: [ASKED, message(2, "assistant", [thought(endless), words("So.")])],
    });
    const first = on.screen.text(".thinking-first") ?? "";
    expect(first.length).toBeLessThan(220);
    expect(first).not.toContain("\u202e");
  });

  const SIX: Partial<SessionView> = {
    messages: [
      ASKED,
      message(2, "assistant", [thought("Hm.\nWell."), words("I'll look."), asks("c1"), asks("c2")]),
      message(3, "assistant", [words("\n\n"), asks("c3"), asks("c4")]),
      message(4, "assistant", [thought("So."), asks("c5"), asks("c6")]),
      message(5, "assistant", [words("Done.")]),
    ],
    calls: [
      call("c1"),
      call("c2"),
      call("c3", { effect: "write" }),
      call("c4", { effect: "exec" }),
      call("c5", { effect: "dance" }),
      call("c6"),
    ],
  };

  test("is its words, and between them one line for what it did over several messages", async () => {
    await on.screen.show(SIX);
    expect(shown()).toEqual([
      "Go",
      "ThoughtHm.",
      "Hm.",
      "I'll look.",
      "Read 3 · Changed 1 · Ran 1 · Other 1· 5.5 s",
      "Done.",
    ]);
    expect(on.screen.place.querySelectorAll("article.agent")).toHaveLength(2);
  });

  test("opens to its rows in their order, and folds again", async () => {
    await on.screen.show(SIX);
    expect(head(1).getAttribute("aria-expanded")).toBe("false");
    await tap(1);
    expect(head(1).getAttribute("aria-expanded")).toBe("true");
    const rows = ["Look c1", "Look c2", "Look c3", "Look c4", "So.", "So.", "Look c5", "Look c6"];
    expect(shown().slice(5, -1)).toEqual(rows);
    await tap(1);
    expect(on.screen.place.querySelector(".tool")).toBeNull();
  });

  test("a thought by itself is one line that opens to all of it", async () => {
    await on.screen.show(SIX);
    await tap(0);
    expect(shown().slice(1, 3)).toEqual(["Thought", "Hm.\nWell."]);
  });

  test("what failed stays in sight, and is told apart from what is folded", async () => {
    const calls = SIX.calls?.with(3, call("c4", { status: "failed", is_error: true })) ?? [];
    await on.screen.show({ ...SIX, calls });
    expect(shown().slice(4)).toEqual([
      "Read 3 · Changed 1 · Other 1 · Failed 1· 5.5 s",
      "Look c4",
      "Done.",
    ]);
  });

  test("one call beside those that were denied is named, and they are counted", async () => {
    const denied = { status: "denied" };
    await on.screen.show({
      messages: [ASKED, message(2, "assistant", [asks("c1"), asks("c2"), asks("c3")])],
      calls: [call("c1"), call("c2", denied), call("c3", denied)],
    });
    expect(shown()[1]).toBe("Look c1 · Denied 2· 2.5 s");
  });

  test("one call is its card, with no line to fold it", async () => {
    await on.screen.show({
      messages: [
        ASKED,
        message(2, "assistant", [asks("c1")]),
        message(3, "assistant", [words("x")]),
      ],
      calls: [call("c1")],
    });
    expect(shown()).toEqual(["Go", "Look c1", "x"]);
    expect(head()).toBeUndefined();
  });

  test("a thought and a call are one line by the call's title", async () => {
    await on.screen.show({
      messages: [ASKED, message(2, "assistant", [thought("Hm."), asks("c1")])],
      calls: [call("c1")],
    });
    expect(shown()).toEqual(["Go", "Look c1· 0.5 s"]);
  });

  test("why a call came to nothing is told on up to three lines, all else on one", async () => {
    const style = document.createElement("style");
    style.textContent = readFileSync(`${import.meta.dirname}/../src/styles/tools.css`, "utf8");
    document.head.append(style);
    const decision = { by: "ada", option: "deny", note: "Do not. ".repeat(9), time: TIME };
    const denied = call("c1", { status: "denied", decision });
    const allowed = call("c2", { decision: { ...decision, option: "allow_once" } });
    await on.screen.show({
      messages: [ASKED, message(2, "assistant", [asks("c1"), asks("c2")])],
      calls: [denied, allowed],
    });
    await tap();
    const hints = [...on.screen.place.querySelectorAll(".tool-hint")].map(
      (hint) => getComputedStyle(hint).whiteSpace,
    );
    style.remove();
    expect(hints).toEqual(["normal", "nowrap"]);
    // The test's document knows no clamp.
    expect(style.textContent).toMatch(/\.bad > [^{}]*\.tool-hint \{[^}]*-webkit-line-clamp: 3;/);
  });

  test("nothing is folded where all of it failed", async () => {
    const bad = { status: "denied" };
    await on.screen.show({
      messages: [ASKED, message(2, "assistant", [asks("c1"), asks("c2")])],
      calls: [call("c1", bad), call("c2", bad)],
    });
    expect(shown()).toEqual(["Go", "Look c1", "Look c2"]);
  });

  test("the next turn's steps, and those of another time line, are their own", async () => {
    const next = { ...message(4, "assistant", [asks("c3")]), turn: "trn_2" };
    await on.screen.show({
      messages: [
        ASKED,
        { ...message(2, "assistant", [asks("c1")]), undone: true },
        message(3, "assistant", [asks("c2")]),
        next,
      ],
      calls: [call("c1"), call("c2"), call("c3")],
    });
    expect(shown()).toEqual(["Go", "Look c1", "Look c2", "Look c3"]);
  });
});

describe("a turn that goes on", () => {
  beforeEach(async () => {
    await on.screen.show({ messages: [ASKED], seq: 9 });
    await on.screen.startTurn();
  });

  const start = (id: string): Promise<void> =>
    on.screen.happen({ type: "message_started", message: id } as Event);
  const piece = (id: string, block: number, type: string, text: string, at = 0): Promise<void> =>
    on.screen.happen({ type, message: id, block, at, text } as never, false);
  const end = (id: string, content: Block[]): Promise<void> =>
    on.screen.happen({ type: "message_ended", message: id, content });
  async function propose(id: string): Promise<void> {
    await on.screen.happen({
      type: "tool_proposed",
      call: id,
      tool: "look",
      arguments: "{}",
      title: `Look ${id}`,
      effect: "read",
    });
  }
  async function run(id: string, status: string | null = "completed"): Promise<void> {
    await propose(id);
    await on.screen.happen({ type: "tool_started", call: id });
    if (status) await on.screen.happen({ type: "tool_ended", call: id, status, content: [] });
  }
  const lines = (): (string | null)[] =>
    [...on.screen.place.querySelectorAll(".activity")].map((one) =>
      (one.textContent ?? "").replace(/\d+:\d+/, "0:00"),
    );

  test("is one line, from its first thought on to its last call", async () => {
    expect(lines()).toEqual(["Working· 0:00"]);
    await start("m1");
    await piece("m1", 0, "thinking_delta", "Hm.");
    expect(lines()).toEqual(["Thinking· 0:00"]);
    await end("m1", [thought("Hm."), asks("c1"), asks("c2")]);
    await run("c1", null);
    expect(lines()).toEqual(["Working· 0:00· Look c1"]);
    expect(on.screen.place.querySelector(".tool")).toBeNull();
    await on.screen.happen({ type: "tool_ended", call: "c1", status: "completed", content: [] });
    await run("c2");
    await start("m2");
    expect(lines()).toEqual(["Working· 0:00"]);
    await piece("m2", 0, "thinking_delta", "So.");
    expect(lines()).toEqual(["Thinking· 0:00"]);
    await piece("m2", 1, "text_delta", "Done.");
    expect(lines()).toEqual(["Read 2", "Writing· 0:00"]);
    await end("m2", [thought("So."), words("Done.")]);
    await on.screen.happen({ type: "turn_completed", stop_reason: "end_turn", usage: {} });
    expect(lines()).toEqual(["Read 2"]);
    expect(shown()).toEqual(["Go", "Read 2", "Done."]);
  });

  test("stays open while it goes on, over its end, and its button is the same", async () => {
    await start("m1");
    await piece("m1", 0, "thinking_delta", "Hm.");
    const button = head();
    button.focus();
    await tap();
    expect(shown().slice(-1)).toEqual(["Hm."]);
    await end("m1", [thought("Hm."), asks("c1")]);
    await run("c1", null);
    expect(shown().slice(2)).toEqual(["Hm.", "Look c1"]); // who read the thought still does
    await on.screen.happen({ type: "tool_ended", call: "c1", status: "completed", content: [] });
    await start("m2");
    await piece("m2", 0, "thinking_delta", "And so");
    expect(shown().slice(-1)).toEqual(["And so"]);
    expect(shown()).toContain("Look c1");
    await piece("m2", 1, "text_delta", "Done.");
    expect(shown().slice(-1)).toEqual(["Done."]);
    await end("m2", [thought("And so"), words("Done.")]);
    await on.screen.happen({ type: "turn_completed", stop_reason: "end_turn", usage: {} });
    expect(head()).toBe(button);
    expect(document.activeElement).toBe(button);
    expect(button.getAttribute("aria-expanded")).toBe("true");
    expect(shown()).toContain("Look c1");
  });

  test("the words that were streamed behind its steps stay the same element", async () => {
    await end("m1", [asks("c1")]);
    await run("c1");
    await start("m2");
    await piece("m2", 0, "thinking_delta", "So.");
    await piece("m2", 1, "text_delta", "Done.");
    const host = on.screen.place.querySelector(".md");
    await end("m2", [thought("So."), words("Done.")]);
    expect(host?.isConnected).toBe(true);
    expect(shown()).toEqual(["Go", "Look c1", "Done."]);
  });

  test("a call that is being written behind words is the line of its own message", async () => {
    await start("m1");
    await piece("m1", 0, "text_delta", "I'll look.");
    await on.screen.happen(
      {
        type: "tool_call_delta",
        message: "m1",
        block: 1,
        at: 0,
        text: '{"a',
        id: "c1",
        name: "look",
      } as never,
      false,
    );
    expect(lines()).toEqual(["Working· 0:00"]);
    await tap();
    expect(on.screen.text(".doings .tool-title")).toBe("Preparing");
    await end("m1", [words("I'll look."), asks("c1")]);
    await propose("c1");
    expect(on.screen.text(".doings .tool-title")).toBe("Look c1");
  });

  test("a call that waits for somebody stays in sight until it is decided", async () => {
    await end("m1", [asks("c1"), asks("c2")]);
    await run("c1");
    await propose("c2");
    await on.screen.happen({ ...REQUEST, call: "c2" });
    expect(lines()).toEqual(["Waiting for you· 0:00"]);
    expect(shown().slice(-1)).toEqual(["Look c2"]);
    expect(head().getAttribute("aria-expanded")).toBe("false");
    await on.screen.happen({
      type: "permission_resolved",
      permission: REQUEST.permission,
      option: "allow_once",
      by: "ada",
    } as Event);
    await on.screen.happen({ type: "tool_started", call: "c2" });
    expect(lines()).toEqual(["Working· 0:00· Look c2"]);
    expect(on.screen.place.querySelector(".tool")).toBeNull();
    await on.screen.happen({ type: "tool_ended", call: "c2", status: "failed", content: [] });
    expect(shown().slice(-1)).toEqual(["Look c2"]);
  });

  test("a line with nothing folded behind it offers nothing to open", async () => {
    await end("m1", [asks("c1")]);
    await propose("c1");
    expect(head().getAttribute("aria-expanded")).toBe("false");
    await on.screen.happen({ ...REQUEST, call: "c1" });
    expect(head().getAttribute("aria-expanded")).toBeNull();
    expect(head().querySelector("svg")).toBeNull();
  });

  test("who stood on the line of a single call stands on its card when the line goes", async () => {
    await end("m1", [asks("c1")]);
    await run("c1");
    head().focus();
    await start("m2");
    await piece("m2", 0, "text_delta", "Done.");
    expect(head()).toBeUndefined();
    expect(document.activeElement).toBe(on.screen.place.querySelector(".tool summary"));
  });

  test("words that grow make none of the steps anew", async () => {
    await end("m1", [asks("c1"), asks("c2")]);
    await run("c1");
    await run("c2");
    await start("m2");
    await piece("m2", 0, "text_delta", "Do");
    const changes: MutationRecord[] = [];
    const watch = new MutationObserver((records) => changes.push(...records));
    watch.observe(on.screen.place.querySelector(".doings") as Element, {
      subtree: true,
      childList: true,
      attributes: true,
      characterData: true,
    });
    await piece("m2", 0, "text_delta", "ne.", 2);
    await on.screen.settle(500);
    expect(shown().slice(-1)).toEqual(["Done."]);
    watch.disconnect();
    expect(changes).toEqual([]);
  });
});
