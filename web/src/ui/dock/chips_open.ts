import { signal } from "@preact/signals";

/** Whether the sheet with model, mode and cost is open. */
export const chipsOpen = signal(false);
