/** The page's comings and goings, told to whoever keeps a connection. */

import { HIDDEN_GRACE_MS, type Wake, wake } from "../core/lifecycle.ts";

/** Who keeps a connection. */
export interface Resident {
  /** Whether a turn runs now. */
  working(): boolean;
  /** The page has been out of sight for longer than a moment. */
  hidden(): void;
  /** The page is seen again. */
  woken(how: Exclude<Wake, "stay">): void;
  /** The device has a network again. */
  online(): void;
}

/** Listens until the answer is called. */
export function watchPageLife(resident: Resident): () => void {
  let hiddenAt: number | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const stop = new AbortController();
  const options = { signal: stop.signal };

  const leave = (): void => {
    hiddenAt ??= Date.now();
    clearTimeout(timer);
    timer = setTimeout(() => resident.hidden(), HIDDEN_GRACE_MS);
  };
  const comeBack = (thawed: boolean): void => {
    clearTimeout(timer);
    const awayMs = hiddenAt === undefined ? 0 : Date.now() - hiddenAt;
    hiddenAt = undefined;
    const how = wake({ awayMs, thawed, working: resident.working() });
    if (how !== "stay") resident.woken(how);
  };

  document.addEventListener(
    "visibilitychange",
    () => (document.visibilityState === "hidden" ? leave() : comeBack(false)),
    options,
  );
  addEventListener("pageshow", (event) => event.persisted && comeBack(true), options);
  document.addEventListener("resume", () => comeBack(true), options);
  addEventListener("online", () => resident.online(), options);
  return () => {
    clearTimeout(timer);
    stop.abort();
  };
}
