import { signal } from "@preact/signals";

/** A text that the composer of a session should take over. */
export const editing = signal<{ session: string | null; text: string } | null>(null);
