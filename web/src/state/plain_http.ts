/** What a page over plain HTTP lacks, and whether that was read. */

import { computed } from "@preact/signals";
import { isSecure } from "../platform/secure.ts";
import { makeSwitch } from "./switch.ts";

const untold = makeSwitch("towline.plain_http", true);

/** Whether to say that browsers hold things back here. */
export const isLimited = computed(() => !isSecure && untold.value);

/** It was read. */
export function acceptLimits(): void {
  untold.value = false;
}
