/** A choice of yes or no that this browser remembers. */

import { effect, type Signal, signal } from "@preact/signals";

function read(key: string): string | null {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

/** The choice as a signal: what is put into it is remembered where the browser keeps anything. */
export function makeSwitch(key: string, usual: boolean): Signal<boolean> {
  const kept = read(key);
  const choice = signal(kept === null ? usual : kept === "on");
  effect(() => {
    const said = choice.value ? "on" : "off";
    try {
      if (choice.value === usual) localStorage.removeItem(key);
      else localStorage.setItem(key, said);
    } catch {
      // A browser that keeps nothing: the choice holds until the page is left.
    }
  });
  return choice;
}
