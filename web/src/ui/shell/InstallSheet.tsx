import "../../core/words.device.ts";
import { t } from "../../core/i18n.ts";
import { Sheet } from "../base/Sheet.tsx";

/** How it is done by hand on an iPhone or iPad, where no page can ask for it. */
export function InstallSheet({ onClose }: { onClose: () => void }) {
  return (
    <Sheet title={t("install.title")} onClose={onClose}>
      <InstallSteps />
    </Sheet>
  );
}

/** The steps, each with the sign to look for. */
export function InstallSteps() {
  return (
    <>
      <ol class="steps">
        <li>
          <Sign path="M12 15V3.5M8 7l4-4 4 4M7 10.5H5.5v10h13v-10H17" />
          {t("install.ios.share")}
        </li>
        <li>
          <Sign path="M5 5h14v14H5ZM12 9v6M9 12h6" />
          {t("install.ios.add")}
        </li>
        <li>
          <Sign path="m5 12.5 4.5 4.5L19 7.5" />
          {t("install.ios.open")}
        </li>
      </ol>
      <p class="quiet">{t("install.ios.untested")}</p>
    </>
  );
}

function Sign({ path }: { path: string }) {
  return (
    <svg class="icon sign" viewBox="0 0 24 24" aria-hidden="true" focusable="false">
      <path d={path} />
    </svg>
  );
}
