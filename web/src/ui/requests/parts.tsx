import "../../core/words.later.ts";
import { t } from "../../core/i18n.ts";
import { formatSpan } from "../../core/time.ts";
import { visible } from "../../core/visible.ts";

/** Why an answer was not taken; nothing while none was refused. */
export function Refused({ why }: { why: string | null }) {
  return why ? (
    <p class="complaint" role="alert">
      {t("ask.failed", { message: visible(why) })}
    </p>
  ) : null;
}

/** How long a request still waits, in words. */
export function tellLeft(leftMs: number): string {
  return leftMs > 0 ? t("ask.left", { time: formatSpan(leftMs) }) : t("ask.expired");
}
