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
    const input = on.screen.place.querySelector(".question [type=text]") as HTMLInputElement;
    input.value = words;
    input.dispatchEvent(new Event("input", { bubbles: true }));
    await on.screen.settle();
  }

  async function send(): Promise<void> {
    const form = on.screen.place.querySelector("form.request") as HTMLFormElement;
    form.dispatchEvent(new Event("submit", { bubbles: true, cancelable: true }));
    await on.screen.settle();
  }

  const choices = (): HTMLInputElement[] => [
    ...on.screen.place.querySelectorAll<HTMLInputElement>(".question .check input"),
  ];

  const nameOf = (one: HTMLInputElement): string => one.closest("label")?.textContent ?? "";

  const chosen = (): string[] =>
    choices()
      .filter(({ checked }) => checked)
      .map(nameOf);

  async function choose(name: string): Promise<void> {
    choices()
      .find((one) => nameOf(one) === name)
      ?.click();
    await on.screen.settle();
  }

  test("has one radio for each answer of which one is taken, and check boxes where several are", async () => {
    await ask();
    expect(choices().map(({ type, name }) => [type, name])).toEqual([
      ["radio", "item_1"],
      ["radio", "item_1"],
      ["checkbox", "item_2"],
      ["checkbox", "item_2"],
    ]);
    const legends = choices().map((one) => one.closest("fieldset")?.querySelector("legend"));
    expect(legends.map((one) => one?.textContent)).toEqual([
      "Which colour?",
      "Which colour?",
      "Which sizes?",
      "Which sizes?",
    ]);
  });

  test("lets a box be cleared again, and what is chosen outlives the page", async () => {
    await ask();
    await choose("Small");
    await choose("Large");
    await choose("Small");
    expect(chosen()).toEqual(["Large"]);
    on.screen.leave();
    await on.screen.show({ questions: [QUESTION] });
    expect(chosen()).toEqual(["Large"]);
  });

  test("is answered by options, once each item has one, and goes when it is resolved", async () => {
    on.screen.server.on(`POST ${PATH}`, () => json({ answers: {} }));
    await ask();
    await choose("Red");
    await choose("Blue");
    expect(chosen()).toEqual(["Blue"]);
    expect(on.screen.button("Answer").disabled).toBe(true);
    await send();
    expect(on.screen.server.to(PATH)).toHaveLength(0);
    await choose("Large");
    await choose("Small");
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
    await choose("Red");
    await write(" green ");
    expect(chosen()).toEqual([]);
    await choose("Red");
    expect(on.screen.place.querySelector<HTMLInputElement>(".question [type=text]")?.value).toBe(
      "",
    );
    await write(" green ");
    await choose("Small");
    await send();
    expect(on.screen.server.to(PATH).map(({ body }) => body)).toEqual([
      { answers: { item_1: ["green"], item_2: ["option_1"] } },
    ]);
  });

  test("says why answers were not taken, and takes others", async () => {
    on.screen.server.on(`POST ${PATH}`, () => problem(422, "rejected", { detail: "Not so." }));
    await ask();
    await choose("Red");
    await choose("Small");
    await send();
    expect(on.screen.text(".request .complaint")).toContain("Not so.");
    expect(on.screen.button("Answer").disabled).toBe(false);
  });

  // rules: C5.8
  test("keeps what was chosen when its deadline moves", async () => {
    await ask();
    expect(on.screen.place.querySelector(".request-left")).toBeNull();
    await choose("Red");
    await on.screen.happen({ ...QUESTION, expires_at: "2999-01-01T00:00:00.000Z" });
    await on.screen.settle();
    expect(chosen()).toEqual(["Red"]);
    expect(on.screen.text(".request-left")).toContain("left");
  });

  // rules: W25
  test("shows what hides in its words", async () => {
    const hidden = "rm \u202egpj.x\u001b[2K";
    const shown = "rm ⟨U+202E⟩gpj.x⟨U+001B⟩[2K";
    const options = [{ id: "option_1", label: hidden }];
    await ask({ ...QUESTION, items: [{ id: "item_1", prompt: hidden, options }] });
    expect(on.screen.text(".question legend")).toBe(shown);
    expect(choices().map(nameOf)).toEqual([shown]);
  });
});
