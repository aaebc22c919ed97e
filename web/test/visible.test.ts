import { expect, test } from "vitest";
import { visible, visibleName } from "../src/core/visible.ts";

/** First and last of each run of characters that hide or move text. */
const HIDDEN: [first: number, last: number][] = [
  [0x00, 0x08],
  [0x0b, 0x1f],
  [0x7f, 0x9f],
  [0xad, 0xad],
  [0x34f, 0x34f],
  [0x61c, 0x61c],
  [0x115f, 0x1160],
  [0x17b4, 0x17b5],
  [0x180b, 0x180f],
  [0x200b, 0x200f],
  [0x2028, 0x202e],
  [0x2060, 0x206f],
  [0x3164, 0x3164],
  [0xfe00, 0xfe0f],
  [0xfeff, 0xfeff],
  [0xffa0, 0xffa0],
  [0xfff0, 0xfffb],
  [0x1bca0, 0x1bca3],
  [0x1d173, 0x1d17a],
  [0xe0000, 0xe0fff],
];

// rules: W07
test.each(HIDDEN)("everything from %i to %i is spelled out", (first, last) => {
  for (let code = first; code <= last; code++) {
    const mark = `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
    const text = `a${String.fromCodePoint(code)}b`;
    expect(visible(text)).toBe(`a${mark}b`);
    expect(visibleName(text)).toBe(`a${mark}b`);
  }
});

test("nothing else is", () => {
  const hidden = (code: number): boolean =>
    HIDDEN.some(([first, last]) => first <= code && code <= last);
  const found: number[] = [];
  for (let code = 0; code <= 0x10ffff; code++) {
    const text = String.fromCodePoint(code);
    if (!hidden(code) && (visible(text) !== text || visibleName(text) !== text)) found.push(code);
  }
  expect(found).toEqual([]);
});

const PAIRS: [text: string, strict: string, name: string][] = [
  ["tab\tand\nline", "tab\tand\nline", "tab\tand\nline"],
  ["שלום مرحبا 漢字 é ☃ 🚢", "שלום مرحبا 漢字 é ☃ 🚢", "שלום مرحبا 漢字 é ☃ 🚢"],
  ["❤\ufe0f", "❤⟨U+FE0F⟩", "❤\ufe0f"],
  ["1\ufe0f\u20e3", "1⟨U+FE0F⟩\u20e3", "1\ufe0f\u20e3"],
  ["👩\u200d💻!", "👩⟨U+200D⟩💻!", "👩\u200d💻!"],
  ["👩🏽\u200d🚀", "👩🏽⟨U+200D⟩🚀", "👩🏽\u200d🚀"],
  ["🏳\ufe0f\u200d🌈", "🏳⟨U+FE0F⟩⟨U+200D⟩🌈", "🏳\ufe0f\u200d🌈"],
  ["👩\u200d rm", "👩⟨U+200D⟩ rm", "👩⟨U+200D⟩ rm"],
  ["👩\u200d\u200d💻", "👩⟨U+200D⟩⟨U+200D⟩💻", "👩⟨U+200D⟩⟨U+200D⟩💻"],
  ["a\u200db 1\ufe0f", "a⟨U+200D⟩b 1⟨U+FE0F⟩", "a⟨U+200D⟩b 1⟨U+FE0F⟩"],
  ["❤\ufe0f\ufe0f", "❤⟨U+FE0F⟩⟨U+FE0F⟩", "❤\ufe0f⟨U+FE0F⟩"],
  ["🚢\u202e", "🚢⟨U+202E⟩", "🚢⟨U+202E⟩"],
];

test.each(PAIRS)("%j is shown as %j, and as a name as %j", (text, strict, name) => {
  expect(visible(text)).toBe(strict);
  expect(visibleName(text)).toBe(name);
});
