/** How the model that runs on the server's own machine stands, for who waits for it. */

import { signal } from "@preact/signals";
import { call } from "../platform/api.ts";
import type { LocalModelState } from "../protocol/types.gen.ts";
import { loadOf } from "./providers.ts";

/** Its models are called so. */
const OWN = "local/";
/** How often a page that shows it asks, in milliseconds. */
const ASK_MS = 1_500;

/** What the server said last. */
export const localModel = signal<LocalModelState | null>(null);

/** Asks as long as the page is seen; what it gives ends that. */
export function watchLocalModel(model: string): (() => void) | undefined {
  if (!model.startsWith(OWN)) return undefined;
  let left = false;
  const ask = async (): Promise<void> => {
    if (document.visibilityState === "hidden") return;
    const said = await loadOf(call("get_local_model"));
    // Who cannot be asked has nothing to say; the page says elsewhere what it knows.
    if (!left && said.state === "ready") localModel.value = said.value;
  };
  void ask();
  const timer = setInterval(() => void ask(), ASK_MS);
  return () => {
    left = true;
    localModel.value = null;
    clearInterval(timer);
  };
}
