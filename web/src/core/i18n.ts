/** The words of the page, in the language that was chosen. */

import type { EN_CODE } from "./words.code.ts";
import type { EN_DEVICE } from "./words.device.ts";
import { EN } from "./words.en.ts";
import type { EN_LATER } from "./words.later.ts";
import type { EN_PUSH } from "./words.push.ts";
import type { EN_SETTINGS } from "./words.settings.ts";
import type { LISTS } from "./words.zh.lists.ts";

/** The name of a text. */
export type Word =
  | keyof typeof EN
  | keyof typeof EN_LATER
  | keyof typeof EN_PUSH
  | keyof typeof EN_DEVICE
  | keyof typeof EN_SETTINGS
  | keyof typeof EN_CODE;

type Book = Partial<Record<Word, string>>;

/** The languages there are. */
export const LANGUAGES = { en: "English", zh: "中文" } as const;

/** The code of a language. */
export type Language = keyof typeof LANGUAGES;

const books: Partial<Record<keyof typeof LISTS, Book>> = { first: EN };
const english: Book = { ...EN };
const chinese: Book = {};
let lists: typeof LISTS | undefined;
let current: Language = "en";
let book: Book = english;

/** Adds English texts that came with a later part of the page, and the Chinese ones to them. */
export function addWords(name: keyof typeof LISTS, words: Book): void {
  books[name] = words;
  Object.assign(english, words);
  translate(name);
}

/** A list has the texts in the order of their book. */
function translate(name: keyof typeof LISTS): void {
  const list = lists?.[name];
  if (!list) return;
  (Object.keys(books[name] ?? {}) as Word[]).forEach((word, at) => {
    chinese[word] = list[at] ?? word;
  });
}

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
  if (language === "zh") {
    const { LISTS, SAID } = await import("./words.zh.lists.ts");
    lists = LISTS;
    Object.assign(chinese, SAID);
    for (const name of Object.keys(books)) translate(name as keyof typeof LISTS);
  }
  book = language === "zh" ? chinese : english;
  current = language;
}

/** The locale for times: the reader's own one if it speaks the language in use. */
export function localeNow(): string {
  return navigator.languages.find((tag) => tag.split("-")[0] === current) ?? current;
}

/** A text with its gaps filled. */
export function t(word: Word, gaps?: Record<string, string | number>): string {
  const text = book[word] ?? english[word] ?? word;
  return gaps ? text.replace(/\{(\w+)\}/g, (whole, name) => String(gaps[name] ?? whole)) : text;
}

/** A text whose name is put together at run time; nothing when there is no such text. */
export function tMaybe(word: string, gaps?: Record<string, string | number>): string | undefined {
  return Object.hasOwn(book, word) ? t(word as Word, gaps) : undefined;
}

/** What is said of a fault in place of the server's own words; nothing when these must do. */
export function said(fault?: { reason?: string | null; code: string } | null): string | undefined {
  return fault ? (tMaybe(`said.${fault.reason}`) ?? tMaybe(`said.${fault.code}`)) : undefined;
}
