import "../../core/words.settings.ts";
import type { ComponentChildren } from "preact";
import { t, type Word } from "../../core/i18n.ts";
import type { Load } from "../../state/providers.ts";
import { Button } from "../base/Button.tsx";

interface LoadingProps<T> {
  load: Load<T>;
  /** Code of a fault to what is said of it, in place of the server's own words. */
  known?: Readonly<Record<string, Word>>;
  onRetry: () => void;
  children: (value: T) => ComponentChildren;
}

/** What the server was asked for: on its way, not to be had, or shown. */
export function Loading<T>({ load, known = {}, onRetry, children }: LoadingProps<T>) {
  if (load.state === "ready") return <>{children(load.value)}</>;
  if (load.state === "loading") {
    return (
      <p class="setting-wait" role="status">
        <span class="ring" aria-hidden="true" />
        {t("chat.loading")}
      </p>
    );
  }
  const word = known[load.code];
  if (word) return <p class="quiet">{t(word)}</p>;
  return (
    <div class="setting-card" role="alert">
      <p class="complaint">{load.message}</p>
      <div>
        <Button onClick={onRetry}>{t("retry")}</Button>
      </div>
    </div>
  );
}
