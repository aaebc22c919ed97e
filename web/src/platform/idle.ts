/** Runs when the page has nothing better to do. */
export type WhenIdle = (run: () => void) => void;

/** The idle callback of the page; a short wait where there is none (WebKit). */
export const pageIdle: WhenIdle = (run) => {
  if ("requestIdleCallback" in globalThis) requestIdleCallback(run, { timeout: 2_000 });
  else setTimeout(run, 200);
};
