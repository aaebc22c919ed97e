/** The page's own clock. */

const BEGUN = Date.now() - performance.now();
let sleptMs = 0;

/**
 * Milliseconds of a clock that never goes back.
 *
 * The engine's clock stands still in some browsers while the device sleeps; the wall's clock does
 * not, and tells how much was slept.
 */
export function nowMs(): number {
  const own = performance.now();
  sleptMs = Math.max(sleptMs, Date.now() - BEGUN - own);
  return Math.round(own + sleptMs);
}
