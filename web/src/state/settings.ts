/** What a reader chose for this browser: look and language. */

import { effect, signal } from "@preact/signals";
import { chooseWords, type Language, pickLanguage } from "../core/i18n.ts";

/** Light, dark, or what the system says. */
export type Look = "system" | "light" | "dark";

const LOOK_KEY = "towline.look";
const LANGUAGE_KEY = "towline.language";
/** The page's own colour round the browser's bars. */
const BAR_COLOURS = { light: "#FFFFFF", dark: "#1A2326" };

function read(key: string): string | null {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

function write(key: string, value: string | null): void {
  try {
    if (value === null) localStorage.removeItem(key);
    else localStorage.setItem(key, value);
  } catch {
    // A browser that keeps nothing: the choice holds until the page is left.
  }
}

function readLook(): Look {
  const look = read(LOOK_KEY);
  return look === "light" || look === "dark" ? look : "system";
}

/** The chosen look. */
export const look = signal<Look>(readLook());
/** The language of what is shown. */
export const language = signal<Language>("en");

/** Chooses a look and remembers it. */
export function chooseLook(choice: Look): void {
  write(LOOK_KEY, choice === "system" ? null : choice);
  look.value = choice;
}

/** Chooses a language and remembers it. */
export async function chooseLanguage(choice: Language): Promise<void> {
  write(LANGUAGE_KEY, choice);
  await show(choice);
}

/** What cannot be fetched is not shown: the language stays the one there is. */
async function show(choice: Language): Promise<void> {
  try {
    await chooseWords(choice);
  } catch {
    return;
  }
  document.documentElement.lang = choice;
  language.value = choice;
}

/** Applies both to the document, now and at each change. */
export async function startSettings(): Promise<void> {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const systemDark = signal(dark.matches);
  dark.addEventListener("change", () => {
    systemDark.value = dark.matches;
  });
  effect(() => {
    const shown = look.value === "system" ? (systemDark.value ? "dark" : "light") : look.value;
    document.documentElement.dataset.theme = shown;
    const bar = document.querySelector('meta[name="theme-color"]');
    bar?.setAttribute("content", BAR_COLOURS[shown]);
  });
  await show(pickLanguage([read(LANGUAGE_KEY) ?? "", ...navigator.languages]));
}
