/** The words of the page, in the language that was chosen. */

import { EN, type Word } from "./words.en.ts";

export type { Word } from "./words.en.ts";

/** The languages there are. */
export const LANGUAGES = { en: "English", zh: "中文" } as const;

/** The code of a language. */
export type Language = keyof typeof LANGUAGES;

let current: Language = "en";
let book: Record<Word, string> = EN;

/** The language that fits best what the browser prefers, best first. */
export function pickLanguage(preferred: readonly string[]): Language {
  for (const tag of preferred) {
    const code = tag.toLowerCase().split("-")[0];
    if (code === "en" || code === "zh") return code;
  }
  return "en";
}

/** Chooses the language of all texts made from now on; English is always there. */
export async function chooseWords(language: Language): Promise<void> {
  book = language === "zh" ? (await import("./words.zh.ts")).ZH : EN;
  current = language;
}

/** The language in use. */
export function languageNow(): Language {
  return current;
}

/** A text with its gaps filled. */
export function t(word: Word, gaps?: Record<string, string | number>): string {
  const text = book[word];
  return gaps ? text.replace(/\{(\w+)\}/g, (whole, name) => String(gaps[name] ?? whole)) : text;
}

/** A text whose name is put together at run time; nothing when there is no such text. */
export function tMaybe(word: string, gaps?: Record<string, string | number>): string | undefined {
  return Object.hasOwn(EN, word) ? t(word as Word, gaps) : undefined;
}
