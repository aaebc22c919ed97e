import { describe, expect, test } from "vitest";
import { drafts, outbox } from "../src/state/outbox.ts";
import { SESSION, useChatScreen } from "./chat_screen.tsx";
import { json, problem } from "./fake_server.ts";

const PROMPTS = `/api/sessions/${SESSION}/prompts`;

const on = useChatScreen();

/** The log tells the first prompt that was sent. */
async function admit(text: string): Promise<void> {
  const key = on.screen.server.to(PROMPTS)[0]?.headers.get("idempotency-key") ?? "";
  const content = [{ type: "text", text } as const];
  await on.screen.happen({ type: "prompt_admitted", prompt: "pmt_1", content, when: "auto", key });
  await on.screen.settle();
}

describe("the composer", () => {
  const accepted = (): Response => json({ prompt: "pmt_1", session: SESSION }, 202);

  // rules: W12 W13
  test("sends under a key, and forgets the draft when the server has taken it", async () => {
    on.screen.server.on(`POST ${PROMPTS}`, accepted);
    await on.screen.show();
    await on.screen.type("  Hello there ");
    on.screen.button("Send").click();
    expect(drafts.read(SESSION)).toBe("Hello there");
    await on.screen.settle();
    const [sent] = on.screen.server.to(PROMPTS);
    expect(sent?.body).toEqual({ content: [{ type: "text", text: "Hello there" }], when: "auto" });
    expect(drafts.read(SESSION)).toBe("");
    expect(on.screen.field.value).toBe("");
    await admit("Hello there");
    expect(outbox.value).toEqual([]);
    expect(on.screen.place.querySelectorAll("article.user")).toHaveLength(1);
  });

  // rules: W12 W13
  test("forgets the draft when the log tells what was sent, before any answer does", async () => {
    on.screen.server.on(`POST ${PROMPTS}`, () => new Promise<Response>(() => {}));
    await on.screen.show();
    await on.screen.type("Hello");
    on.screen.button("Send").click();
    await on.screen.settle();
    expect(drafts.read(SESSION)).toBe("Hello");
    await admit("Hello");
    expect(drafts.read(SESSION)).toBe("");
  });

  // rules: W12
  test("keeps a refused message with Retry and Edit", async () => {
    on.screen.server.on(`POST ${PROMPTS}`, () => problem(422, "rejected", { detail: "Say less." }));
    await on.screen.show();
    await on.screen.type("Too much");
    await on.screen.press("Send");
    expect(on.screen.place.querySelector(".delivery")?.textContent).toContain(
      "Not sent: Say less.",
    );
    await on.screen.press("Edit");
    expect(on.screen.field.value).toBe("Too much");
    expect(on.screen.place.querySelectorAll("article.user")).toHaveLength(0);
  });

  // rules: W13
  test("sends again by itself when no answer came, under the same key", async () => {
    await on.screen.show();
    await on.screen.type("Hello");
    await on.screen.press("Send");
    on.screen.server.on(`POST ${PROMPTS}`, accepted);
    await on.screen.settle(1_000);
    const keys = on.screen.server.to(PROMPTS).map(({ headers }) => headers.get("idempotency-key"));
    expect(keys).toHaveLength(2);
    expect(new Set(keys).size).toBe(1);
    expect(on.screen.place.querySelector(".delivery")?.textContent).toBe("Sent");
  });

  // rules: W12
  test("keeps what was typed over a reload", async () => {
    await on.screen.show();
    await on.screen.type("Half a thought");
    on.screen.leave();
    await on.screen.show();
    expect(on.screen.field.value).toBe("Half a thought");
    await on.screen.type("");
    on.screen.leave();
    await on.screen.show();
    expect(on.screen.field.value).toBe("");
  });

  // rules: W12
  test.each([
    ["pagehide", window],
    ["visibilitychange", document],
  ])("keeps the last letter of a page that goes at once (%s)", async (event, target) => {
    await on.screen.show();
    await on.screen.type("Half a though");
    on.screen.field.value = "Half a thought";
    on.screen.field.dispatchEvent(new InputEvent("input", { bubbles: true }));
    target.dispatchEvent(new Event(event));
    expect(localStorage.getItem(`towline.draft.${SESSION}`)).toBe("Half a thought");
  });

  // rules: W15
  test("stops by asking, and says so until the turn has ended", async () => {
    on.screen.server.on(`POST /api/sessions/${SESSION}/interrupt`, () =>
      json({ turn: "trn_1" }, 202),
    );
    await on.screen.show();
    await on.screen.startTurn();
    await on.screen.settle();
    await on.screen.press("Stop");
    expect(on.screen.place.querySelector(".activity")?.textContent).toContain("Stopping…");
    expect(on.screen.button("Stopping…").disabled).toBe(true);
    await on.screen.happen({
      type: "turn_cancelled",
      by: "ada",
      reason: "stopped by the user",
      usage: {},
    });
    await on.screen.settle();
    expect(on.screen.place.querySelector(".activity")).toBeNull();
    expect([...on.screen.place.querySelectorAll(".mark")].at(-1)?.textContent).toBe("Stopped");
  });

  test("offers to queue while a turn runs, and shows what waits", async () => {
    on.screen.server.on(`POST ${PROMPTS}`, accepted);
    await on.screen.show();
    await on.screen.startTurn();
    await on.screen.settle();
    await on.screen.type("Next thing");
    await on.screen.press("Queue");
    const key = on.screen.server.to(PROMPTS)[0]?.headers.get("idempotency-key") ?? "";
    const content = [{ type: "text", text: "Next thing" } as const];
    await on.screen.happen({
      type: "prompt_admitted",
      prompt: "pmt_2",
      content,
      when: "auto",
      key,
      position: 0,
    });
    await on.screen.settle();
    expect(on.screen.text(".queue li")).toBe("Waits its turnNext thing");
  });

  test("makes way for a word when the session is closed", async () => {
    await on.screen.show({ closed: "done" });
    expect(on.screen.field).toBeNull();
    expect(on.screen.place.textContent).toContain("This session is closed.");
  });
});
