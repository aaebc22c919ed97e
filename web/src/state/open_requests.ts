/** What waits for somebody, wherever it is. */

import { computed } from "@preact/signals";
import { access } from "./account.ts";
import { chat } from "./chat.ts";
import { sessions } from "./sessions.ts";

/** How many things wait for somebody, in all sessions. */
export const openRequests = computed(() => {
  if (access.value !== "in") return 0;
  const open = chat.value;
  const mine = open ? open.permissions.value.length + open.questions.value.length : 0;
  return sessions.value.reduce(
    (sum, { id, pending = 0 }) => sum + (id === open?.session ? 0 : pending),
    mine,
  );
});
