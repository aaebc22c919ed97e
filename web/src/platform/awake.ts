/** Keeps the screen on. */

/** Whether this browser can. */
export const canStayAwake = "wakeLock" in navigator;

/** Keeps the screen on until the answer is called, and again each time that the page is seen. */
export function stayAwake(): () => void {
  let lock: WakeLockSentinel | undefined;
  const leaving = new AbortController();
  const hold = async (): Promise<void> => {
    if (document.visibilityState !== "visible") return;
    try {
      const got = await navigator.wakeLock.request("screen");
      if (leaving.signal.aborted) await got.release();
      else lock = got;
    } catch {
      // The battery is low, or the page was left in between: the screen goes off as usual.
    }
  };
  document.addEventListener("visibilitychange", () => void hold(), { signal: leaving.signal });
  void hold();
  return () => {
    leaving.abort();
    void lock?.release();
  };
}
