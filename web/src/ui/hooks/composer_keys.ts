/** What the Enter key of the composer does. */

/** What `useComposerKeys` needs of a key event. */
export interface KeyLike {
  key: string;
  keyCode: number;
  isComposing: boolean;
  shiftKey: boolean;
  ctrlKey: boolean;
  metaKey: boolean;
  altKey: boolean;
}

/** Safari ends a composition just before the Enter that confirmed it, in milliseconds. */
const AFTER_COMPOSITION_MS = 30;
/** The key code of a key that an input method has taken. */
const TAKEN_BY_IME = 229;

/**
 * Whether a key sends the message.
 *
 * @param makesLine Enter makes a line and the button sends, as where the pointer is a finger
 * @param sinceCompositionMs milliseconds since an input method last ended a composition
 */
export function sends(event: KeyLike, makesLine: boolean, sinceCompositionMs: number): boolean {
  if (event.key !== "Enter") return false;
  const composing = event.isComposing || event.keyCode === TAKEN_BY_IME;
  if (composing || sinceCompositionMs < AFTER_COMPOSITION_MS) return false;
  if (event.ctrlKey || event.metaKey) return true;
  return !makesLine && !event.shiftKey && !event.altKey;
}
