import "../../core/words.code.ts";
import { useEffect } from "preact/hooks";
import { t } from "../../core/i18n.ts";
import { visible } from "../../core/visible.ts";
import { localModel, watchLocalModel } from "../../state/local_model.ts";

const MB = 1e6;

/** What the server's own model does now, in a few words; empty when there is nothing to say. */
export function localText(): string {
  const now = localModel.value;
  if (!now) return "";
  const { state, done_bytes = 0, total_bytes = 0, percent, tokens_s } = now;
  if (state === "fetching" && total_bytes > 0) {
    const [done, all] = [done_bytes, total_bytes].map((bytes) => Math.round(bytes / MB));
    const part = Math.floor((100 * done_bytes) / total_bytes);
    return t("local.fetching", { percent: part, done: done ?? 0, all: all ?? 0 });
  }
  if (state === "fetching" || state === "loading") return t("local.loading");
  if (state === "reading" && percent != null) return t("local.reading", { percent });
  return state === "writing" && tokens_s != null ? t("local.writing", { rate: tokens_s }) : "";
}

/** Before a first prompt: how far the model is on its way, or why it does not come. */
export function LocalLine({ model }: { model: string }) {
  useEffect(() => watchLocalModel(model), [model]);
  const now = localModel.value;
  if (now?.state === "failed") {
    return (
      <p class="complaint" role="alert">
        {visible(now.message ?? "")} {t("local.again")}
      </p>
    );
  }
  if (now?.state !== "fetching" && now?.state !== "loading") return null;
  return (
    <div class="local-line">
      <p class="activity">
        <span class="ring" aria-hidden="true" />
        <span>{localText()}</span>
      </p>
      {now.message && <p class="quiet">{visible(now.message)}</p>}
    </div>
  );
}
