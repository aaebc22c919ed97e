/** Names that this page makes. All other ids come from the server. */

const KEY_BYTES = 16;

/**
 * A name for one command: its `Idempotency-Key`, and how its message is found again.
 *
 * Not `randomUUID`, which pages on plain HTTP do not have.
 */
export function makeKey(fill: (bytes: Uint8Array<ArrayBuffer>) => void): string {
  const bytes = new Uint8Array(KEY_BYTES);
  fill(bytes);
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
