/** What a page that is hidden and seen again does with its connection: policy only. */

/** A page is hidden for a moment when the camera or a file picker opens. */
export const HIDDEN_GRACE_MS = 5_000;
/** Away longer than this with a turn running, the view is cheaper and surer than the replay. */
export const WARM_MS = 60_000;

/** What to do with the connection. */
export type Wake =
  /** Go on from the cursor. */
  | "resume"
  /** Throw the stream away, then go on from the cursor: it may be dead without knowing it. */
  | "reopen"
  /** Fetch the view first. */
  | "rebuild"
  /** Nothing was missed. */
  | "stay";

/** How a page came back. */
export interface Return {
  /** Milliseconds out of sight. */
  awayMs: number;
  /** Whether the page was frozen or came out of the back-forward cache. */
  thawed: boolean;
  /** Whether a turn ran when it was last seen. */
  working: boolean;
}

/** What a page that is seen again does. */
export function wake({ awayMs, thawed, working }: Return): Wake {
  if (awayMs >= WARM_MS && working) return "rebuild";
  if (thawed) return "reopen";
  return awayMs < HIDDEN_GRACE_MS ? "stay" : "resume";
}
