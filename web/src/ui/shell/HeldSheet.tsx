import "../../core/words.later.ts";
import { t } from "../../core/i18n.ts";
import { Sheet } from "../base/Sheet.tsx";

/** What a proxy that collects the stream must be told. */
export function HeldSheet({ onClose }: { onClose: () => void }) {
  return (
    <Sheet title={t("held.line")} onClose={onClose}>
      <p>{t("held.why")}</p>
      <ul class="steps">
        <li>
          {"nginx: "}
          <code>proxy_buffering off;</code>
        </li>
        <li>
          {"Caddy: "}
          <code>flush_interval -1</code>
        </li>
        <li>
          {t("held.other")}
          <code>X-Accel-Buffering: no</code>
        </li>
      </ul>
      <p class="quiet">{t("held.docs")}</p>
    </Sheet>
  );
}
