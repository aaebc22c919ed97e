/** What lies over the page, beside what the pages themselves lay over it. */

import { signal } from "@preact/signals";
import type { SessionInfo } from "../../protocol/types.gen.ts";

/** Whether the list of sessions stands over the page, where there is no room beside it. */
export const drawer = signal(false);

/** The session that somebody wants to name, put away or delete. */
export const sessionAsked = signal<SessionInfo | null>(null);

/** Whether the help on keys is shown. */
export const keysShown = signal(false);
