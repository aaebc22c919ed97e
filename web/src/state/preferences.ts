/** Choices of this browser that the first screen reads but never changes. */

import { signal } from "@preact/signals";
import { readSetting, type SettingName, writeSetting } from "./settings.ts";

/** The smallest, the usual and the largest text, in percent of the browser's own. */
export const TEXT_SIZES = { least: 90, usual: 100, most: 130, step: 5 } as const;

/** `send`, `line`, or empty for what the pointer suggests: a finger makes a line. */
export const enterKey = signal(readSetting("enter") ?? "");
/** `off` when the view stays where it is while an answer grows. */
export const follow = signal(readSetting("follow") ?? "");
/** In percent, as `theme-boot.js` reads it. */
export const textSize = signal(Number(readSetting("text_size")) || TEXT_SIZES.usual);

/** Chooses one of them, and keeps it; empty for what is usual. */
export function choose(name: Extract<SettingName, "enter" | "follow">, value: string): void {
  writeSetting(name, value || null);
  ({ enter: enterKey, follow })[name].value = value;
}

/** Chooses a size of the text, and shows it at once. */
export function chooseTextSize(percent: number): void {
  const size = Math.min(TEXT_SIZES.most, Math.max(TEXT_SIZES.least, percent));
  const isUsual = size === TEXT_SIZES.usual;
  writeSetting("text_size", isUsual ? null : String(size));
  document.documentElement.style.fontSize = isUsual ? "" : `${size}%`;
  textSize.value = size;
}
