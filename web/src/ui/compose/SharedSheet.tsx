import "../../core/words.code.ts";
import { t } from "../../core/i18n.ts";
import { visible, visibleName } from "../../core/visible.ts";
import type { Shared } from "../../state/shared.ts";
import { Button } from "../base/Button.tsx";
import { Sheet } from "../base/Sheet.tsx";

interface SharedSheetProps {
  shared: Shared;
  onUse: () => void;
  onDrop: () => void;
}

/** Shows what another app handed over, whole, and asks whether it is wanted. */
export function SharedSheet({ shared: { text, files }, onUse, onDrop }: SharedSheetProps) {
  return (
    <Sheet title={t("shared.title")} onClose={onDrop}>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must take the keys */}
      <div class="sheet-scroll" tabIndex={0}>
        <p>{t("shared.lead")}</p>
        {text && <pre class="whole">{visible(text)}</pre>}
        <ul class="listed">
          {files.map(({ name }, at) => (
            <li key={at} class="path">
              {visibleName(name) || t("chat.picture")}
            </li>
          ))}
        </ul>
      </div>
      <div class="turn-ways">
        <Button onClick={onDrop}>{t("shared.drop")}</Button>
        <Button kind="main" onClick={onUse}>
          {t("shared.use")}
        </Button>
      </div>
    </Sheet>
  );
}
