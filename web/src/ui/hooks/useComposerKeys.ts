import { useRef } from "preact/hooks";
import { readSetting } from "../../state/settings.ts";
import { sends } from "./composer_keys.ts";

/** Whether the main pointer is a finger. */
export function isCoarse(): boolean {
  return matchMedia("(pointer: coarse)").matches;
}

/** Whether Enter makes a line: what was chosen, else what fits the pointer. */
function makesLine(): boolean {
  const chosen = readSetting("enter");
  return chosen ? chosen === "line" : isCoarse();
}

/**
 * The handlers of a composer's text field.
 *
 * @param taken whether somebody else has taken a key
 */
export function useComposerKeys(
  send: () => void,
  taken: (event: KeyboardEvent) => boolean | undefined,
) {
  const endedAt = useRef(Number.NEGATIVE_INFINITY);
  return {
    onCompositionEnd: () => {
      endedAt.current = performance.now();
    },
    onKeyDown: (event: KeyboardEvent) => {
      if (taken(event) || !sends(event, makesLine(), performance.now() - endedAt.current)) return;
      event.preventDefault();
      send();
    },
  };
}
