/** A choice of yes or no that this browser remembers. */

import { effect, type Signal, signal } from "@preact/signals";
import { readSetting, type SettingName, writeSetting } from "./settings.ts";

/** The choice as a signal: what is put into it is remembered where the browser keeps anything. */
export function makeSwitch(name: SettingName, usual: boolean): Signal<boolean> {
  const kept = readSetting(name);
  const choice = signal(kept === null ? usual : kept === "on");
  effect(() => {
    const said = choice.value ? "on" : "off";
    writeSetting(name, choice.value === usual ? null : said);
  });
  return choice;
}
