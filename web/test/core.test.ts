import { describe, expect, test } from "vitest";
import { Drafts } from "../src/core/drafts.ts";
import { chooseWords, pickLanguage, t, tMaybe, type Word } from "../src/core/i18n.ts";
import { makeKey } from "../src/core/ids.ts";
import { HIDDEN_GRACE_MS, wasAway } from "../src/core/lifecycle.ts";
import { countPoints, dropPoints, takePoints } from "../src/core/points.ts";
import { dayOf, formatDuration, formatSpan } from "../src/core/time.ts";
import { EN_CODE } from "../src/core/words.code.ts";
import { EN_DEVICE } from "../src/core/words.device.ts";
import { EN } from "../src/core/words.en.ts";
import { EN_LATER } from "../src/core/words.later.ts";
import { EN_PUSH } from "../src/core/words.push.ts";
import { EN_SETTINGS } from "../src/core/words.settings.ts";
import { ZH } from "../src/core/words.zh.ts";
import { seeded } from "./seeded.ts";

// rules: C1.12
test("code points are counted and cut as an iterator would", () => {
  const random = seeded(3);
  const alphabet = ["a", "é", "漢", "😀", "\u{1d518}", "\ud83d", "\ude00"];
  for (let round = 0; round < 300; round++) {
    const text = Array.from({ length: random(12) }, () => alphabet[random(7)]).join("");
    const points = [...text];
    expect(countPoints(text)).toBe(points.length);
    for (let cut = 0; cut <= points.length + 1; cut++) {
      expect(dropPoints(text, cut)).toBe(points.slice(cut).join(""));
      expect(takePoints(text, cut)).toBe(points.slice(0, cut).join(""));
    }
  }
});

// rules: W03 S37
test.each([
  [{ awayMs: HIDDEN_GRACE_MS - 1, thawed: false }, false],
  [{ awayMs: HIDDEN_GRACE_MS, thawed: false }, true],
  [{ awayMs: 0, thawed: true }, true],
])("a page that comes back with %j was away: %s", (how, wanted) => {
  expect(wasAway(how)).toBe(wanted);
});

// rules: W12
describe("drafts", () => {
  const shelf = (): Map<string, string> => new Map();
  const on = (map: Map<string, string>, user = "ada"): Drafts =>
    new Drafts(
      {
        getItem: (key) => map.get(key) ?? null,
        setItem: (key, value) => map.set(key, value),
        removeItem: (key) => map.delete(key),
      },
      () => user,
    );

  test("of a new session are shown to nobody but who wrote them", () => {
    const map = shelf();
    on(map).write(null, "hers");
    expect(on(map, "bob").read(null)).toBe("");
    expect(on(map).read(null)).toBe("hers");
  });

  test("are kept for each session and over a reload", () => {
    const map = shelf();
    on(map).write("ses_a", "for a");
    on(map).write(null, "for a new one");
    expect([on(map).read("ses_a"), on(map).read(null), on(map).read("ses_b")]).toEqual([
      "for a",
      "for a new one",
      "",
    ]);
  });

  test("are forgotten when the server has taken them, and only then", () => {
    const drafts = on(shelf());
    drafts.write("ses_a", "sent");
    drafts.accepted("ses_a", "something else");
    expect(drafts.read("ses_a")).toBe("sent");
    drafts.accepted("ses_a", "sent");
    expect(drafts.read("ses_a")).toBe("");
  });

  test("live in memory where the browser keeps nothing", () => {
    const refuse = (): never => {
      throw new DOMException("full", "QuotaExceededError");
    };
    const shut = { getItem: refuse, setItem: refuse, removeItem: refuse };
    const drafts = new Drafts(shut, () => "ada");
    expect(drafts.read("ses_a")).toBe("");
    drafts.write("ses_a", "kept");
    expect(drafts.read("ses_a")).toBe("kept");
  });
});

test("a key is 128 random bits in hex", () => {
  const key = makeKey((bytes) => bytes.fill(0x0f));
  expect(key).toBe("0f".repeat(16));
});

test.each([
  [0, "0:00"],
  [59_999, "0:59"],
  [60_000, "1:00"],
  [754_000, "12:34"],
  [-5, "0:00"],
])("%i ms is the span %s", (ms, text) => {
  expect(formatSpan(ms)).toBe(text);
});

test.each([
  [120, "0.1 s"],
  [9_949, "9.9 s"],
  [12_400, "12 s"],
  [61_000, "1:01"],
])("%i ms is the duration %s", (ms, text) => {
  expect(formatDuration(ms)).toBe(text);
});

test("a day begins at midnight of this device", () => {
  const noon = new Date(2026, 2, 29, 12).getTime();
  expect(dayOf(new Date(2026, 2, 29, 0, 0, 1).getTime())).toBe(dayOf(noon));
  expect(dayOf(new Date(2026, 2, 28, 23, 59).getTime())).toBe(dayOf(noon) - 1);
});

describe("words", () => {
  test("every text has the same gaps in both languages", () => {
    const gaps = (text: string): string[] => [...text.matchAll(/\{\w+\}/g)].map(String).sort();
    const english = { ...EN, ...EN_LATER, ...EN_SETTINGS, ...EN_DEVICE, ...EN_CODE, ...EN_PUSH };
    for (const [word, text] of Object.entries(english)) {
      expect(gaps(ZH[word as Word]), word).toEqual(gaps(text));
    }
    expect(Object.keys(ZH).sort()).toEqual(Object.keys(english).sort());
  });

  test("gaps are filled, in the language that was chosen", async () => {
    expect(t("ask.count", { at: 1, all: 3 })).toBe("1 of 3");
    await chooseWords("zh");
    expect(t("ask.count", { at: 1, all: 3 })).toBe("第 1 项，共 3 项");
    await chooseWords("en");
    expect(tMaybe("call.completed")).toBe("Done");
    expect(tMaybe("tool.levitating")).toBeUndefined();
  });

  test("the browser's first known language is chosen", () => {
    expect(pickLanguage(["", "fr-FR", "zh-TW", "en"])).toBe("zh");
    expect(pickLanguage(["fr"])).toBe("en");
  });
});
