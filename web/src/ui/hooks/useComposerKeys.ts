import { useRef } from "preact/hooks";
import { sends } from "./composer_keys.ts";

/** Whether the main pointer is a finger. */
export function isCoarse(): boolean {
  return matchMedia("(pointer: coarse)").matches;
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
      if (taken(event) || !sends(event, isCoarse(), performance.now() - endedAt.current)) return;
      event.preventDefault();
      send();
    },
  };
}
