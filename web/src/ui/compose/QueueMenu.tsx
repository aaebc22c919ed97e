import "../../core/words.code.ts";
import { t } from "../../core/i18n.ts";
import type { Chat } from "../../state/chat.ts";
import { IconButton } from "../base/Button.tsx";

const MENU = "queue-menu";

/** What else can be done than to queue what is written: say it now, or stop what runs. */
export function QueueMenu({ chat, onSteer }: { chat: Chat; onSteer: () => void }) {
  return (
    <>
      <IconButton icon="more" label={t("menu.open")} popoverTarget={MENU} />
      <div id={MENU} class="menu queue-menu" popover="auto">
        <button type="button" class="menu-item" popovertarget={MENU} onClick={onSteer}>
          {t("compose.steer")}
        </button>
        <button
          type="button"
          class="menu-item"
          popovertarget={MENU}
          onClick={() => void chat.interrupt()}
        >
          {t("compose.stop")}
        </button>
      </div>
    </>
  );
}
