import "../../core/words.code.ts";
import { t } from "../../core/i18n.ts";
import { visibleName } from "../../core/visible.ts";
import { identity } from "../../state/account.ts";
import type { Chat } from "../../state/chat.ts";
import { sessions } from "../../state/sessions.ts";
import { leave } from "../../state/sign_in.ts";
import { Link } from "../base/Link.tsx";
import { isCoarse } from "../hooks/useComposerKeys.ts";
import { keysShown, sessionAsked } from "./drawer.ts";

/** What concerns the session and the page: its name and place, look, keys, and the way out. */
export function MoreMenu({ chat }: { chat: Chat | null }) {
  const row = sessions.value.find(({ id }) => id === chat?.session);
  return (
    <>
      {row && (
        <button
          type="button"
          class="menu-item"
          onClick={() => {
            sessionAsked.value = row;
          }}
        >
          {t("sessions.manage")}
        </button>
      )}
      <Link className="menu-item" to={{ page: "settings", part: "look" }}>
        {t("menu.appearance")}
      </Link>
      {!isCoarse() && (
        <button
          type="button"
          class="menu-item"
          onClick={() => {
            keysShown.value = true;
          }}
        >
          {t("keys.title")}
        </button>
      )}
      <button type="button" class="menu-item" onClick={() => void leave()}>
        {t("menu.logout")}
        <span class="quiet">{visibleName(identity.value?.user ?? "")}</span>
      </button>
    </>
  );
}
