/** What a reader chose for this browser: look and language. */

import { effect, signal } from "@preact/signals";
import { chooseWords, type Language, pickLanguage } from "../core/i18n.ts";

/** Light, dark, or what the system says. */
export type Look = "system" | "light" | "dark";

/** The page's own colour round the browser's bars. */
const BAR_COLOURS = { light: "#FFFFFF", dark: "#1A2326" };

/** The names of what is kept in this browser; what is not here has its usual value. */
export type SettingName =
  | "look"
  | "language"
  | "text_size"
  | "enter"
  | "follow"
  | "server_name"
  | "user"
  | "left"
  | "awake"
  | "copies"
  | "offers"
  | "plain_http"
  | "visits";

/** What was chosen in this browser; nothing for what is usual. */
export function readSetting(name: SettingName): string | null {
  try {
    return localStorage.getItem(`towline.${name}`);
  } catch {
    return null;
  }
}

/** Keeps a choice; `null` for what is usual. */
export function writeSetting(name: SettingName, value: string | null): void {
  try {
    if (value === null) localStorage.removeItem(`towline.${name}`);
    else localStorage.setItem(`towline.${name}`, value);
  } catch {
    // A browser that keeps nothing: the choice holds until the page is left.
  }
}

function readLook(): Look {
  const look = readSetting("look");
  return look === "light" || look === "dark" ? look : "system";
}

/** The chosen look. */
export const look = signal<Look>(readLook());
/** The language of what is shown. */
export const language = signal<Language>("en");

/** Chooses a look and remembers it. */
export function chooseLook(choice: Look): void {
  writeSetting("look", choice === "system" ? null : choice);
  look.value = choice;
}

/** Chooses a language and remembers it. */
export async function chooseLanguage(choice: Language): Promise<void> {
  writeSetting("language", choice);
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
  await show(pickLanguage([readSetting("language") ?? "", ...navigator.languages]));
}
