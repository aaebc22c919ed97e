/** What a page over plain HTTP lacks, and whether that was read. */

import { computed, signal } from "@preact/signals";
import { isSecure } from "../platform/secure.ts";
import { makeSwitch } from "./switch.ts";

const untold = makeSwitch("plain_http", true);

/** Whether browsers hold things back from this page. */
export const plain = signal(!isSecure);

/** Whether to say that browsers hold things back here. */
export const isLimited = computed(() => plain.value && untold.value);

/** It was read. */
export function acceptLimits(): void {
  untold.value = false;
}
