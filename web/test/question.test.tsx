import { describe, expect, test } from "vitest";
import type { QuestionAsked } from "../src/protocol/types.gen.ts";
import { SESSION, useChatScreen } from "./chat_screen.tsx";
import { json, problem } from "./fake_server.ts";

const PATH = `/api/sessions/${SESSION}/questions/qst_1`;
const QUESTION: QuestionAsked = {
  type: "question_asked",
  question: "qst_1",
  items: [
    {
      id: "item_1",
      prompt: "Which colour?",
      options: [
        { id: "option_1", label: "Red" },
        { id: "option_2", label: "Blue" },
      ],
      free_text: true,
    },
    {
      id: "item_2",
      prompt: "Which sizes?",
      options: [
        { id: "option_1", label: "Small" },
        { id: "option_2", label: "Large" },
      ],
      multiple: true,
    },
  ],
};

const on = useChatScreen();

describe("a question", () => {
  async function ask(question: QuestionAsked = QUESTION): Promise<void> {
    await on.screen.show();
    await on.screen.startTurn();
    await on.screen.happen(question);
    await on.screen.settle();
  }

  async function write(words: string): Promise<void> {
    const input = on.screen.place.querySelector(".question input") as HTMLInputElement;
    input.value = words;
    input.dispatchEvent(new Event("input", { bubbles: true }));
    await on.screen.settle();
  }

  async function send(): Promise<void> {
    const form = on.screen.place.querySelector("form.request") as HTMLFormElement;
    form.dispatchEvent(new Event("submit", { bubbles: true, cancelable: true }));
    await on.screen.settle();
  }

  const pressed = (): string[] =>
    [...on.screen.place.querySelectorAll('.question [aria-pressed="true"]')].map(
      (one) => one.textContent ?? "",
    );

  test("is answered by options, once each item has one, and goes when it is resolved", async () => {
    on.screen.server.on(`POST ${PATH}`, () => json({ answers: {} }));
    await ask();
    await on.screen.press("Red");
    await on.screen.press("Blue");
    expect(pressed()).toEqual(["Blue"]);
    expect(on.screen.button("Answer").disabled).toBe(true);
    await send();
    expect(on.screen.server.to(PATH)).toHaveLength(0);
    await on.screen.press("Large");
    await on.screen.press("Small");
    expect(on.screen.button("Answer").disabled).toBe(false);
    await send();
    await send();
    const sent = on.screen.server.to(PATH);
    expect(sent.map(({ body }) => body)).toEqual([
      { answers: { item_1: ["option_2"], item_2: ["option_1", "option_2"] } },
    ]);
    expect(sent[0]?.headers.get("idempotency-key")).toHaveLength(32);
    const answers = { item_1: ["option_2"], item_2: ["option_1", "option_2"] };
    await on.screen.happen({ type: "question_resolved", question: "qst_1", answers, by: "ada" });
    await on.screen.settle();
    expect(on.screen.place.querySelector(".request")).toBeNull();
  });

  test("takes own words in place of an option, and an option in place of them", async () => {
    on.screen.server.on(`POST ${PATH}`, () => json({ answers: {} }));
    await ask();
    await on.screen.press("Red");
    await write(" green ");
    expect(pressed()).toEqual([]);
    await on.screen.press("Red");
    expect(on.screen.place.querySelector<HTMLInputElement>(".question input")?.value).toBe("");
    await write(" green ");
    await on.screen.press("Small");
    await send();
    expect(on.screen.server.to(PATH).map(({ body }) => body)).toEqual([
      { answers: { item_1: ["green"], item_2: ["option_1"] } },
    ]);
  });

  test("says why answers were not taken, and takes others", async () => {
    on.screen.server.on(`POST ${PATH}`, () => problem(422, "rejected", { detail: "Not so." }));
    await ask();
    await on.screen.press("Red");
    await on.screen.press("Small");
    await send();
    expect(on.screen.text(".request .complaint")).toContain("Not so.");
    expect(on.screen.button("Answer").disabled).toBe(false);
  });

  // rules: C5.8
  test("keeps what was chosen when its deadline moves", async () => {
    await ask();
    expect(on.screen.place.querySelector(".request-left")).toBeNull();
    await on.screen.press("Red");
    await on.screen.happen({ ...QUESTION, expires_at: "2999-01-01T00:00:00.000Z" });
    await on.screen.settle();
    expect(pressed()).toEqual(["Red"]);
    expect(on.screen.text(".request-left")).toContain("left");
  });

  // rules: W25
  test("shows what hides in its words", async () => {
    const hidden = "rm \u202egpj.x\u001b[2K";
    const shown = "rm ⟨U+202E⟩gpj.x⟨U+001B⟩[2K";
    const options = [{ id: "option_1", label: hidden }];
    await ask({ ...QUESTION, items: [{ id: "item_1", prompt: hidden, options }] });
    expect(on.screen.text(".question legend")).toBe(shown);
    expect(on.screen.button(shown)).toBeDefined();
  });
});
