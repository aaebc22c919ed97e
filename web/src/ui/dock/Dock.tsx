import "../../core/words.code.ts";
import { t } from "../../core/i18n.ts";
import type { Chat } from "../../state/chat.ts";
import { go } from "../../state/router.ts";
import { Chips } from "./Chips.tsx";
import { PlanLine } from "./PlanLine.tsx";
import { TrustCard } from "./TrustCard.tsx";

/** What stands above the composer: whose part the session is, trust, plan, model and mode. */
export function Dock({ chat }: { chat: Chat }) {
  const { parent, todos, closed } = chat.parts;
  if (!chat.loaded.value) return null;
  return (
    <>
      {parent && (
        <p class="dock-parent">
          <button
            type="button"
            class="link-button"
            onClick={() => go({ page: "chat", session: parent.session })}
          >
            {t("child.of")}
          </button>
        </p>
      )}
      {closed === null && <TrustCard session={chat.session} />}
      <PlanLine todos={todos} />
      {closed === null && <Chips chat={chat} />}
    </>
  );
}
