/** What a page that is hidden and seen again does with its connection: policy only. */

/** A page is hidden for a moment when the camera or a file picker opens. */
export const HIDDEN_GRACE_MS = 5_000;

/** How a page came back. */
export interface Return {
  /** Milliseconds out of sight. */
  awayMs: number;
  /** Whether the page was frozen or came out of the back-forward cache. */
  thawed: boolean;
}

/**
 * Whether a page that is seen again was away: then its stream, which may be dead without knowing
 * it, is begun anew, and the link decides what of the session must be fetched.
 */
export function wasAway({ awayMs, thawed }: Return): boolean {
  return thawed || awayMs >= HIDDEN_GRACE_MS;
}
