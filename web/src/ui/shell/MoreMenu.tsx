import "../../core/words.later.ts";
import { LANGUAGES, type Language, t, type Word } from "../../core/i18n.ts";
import { visibleName } from "../../core/visible.ts";
import { identity } from "../../state/account.ts";
import { chooseLanguage, chooseLook, type Look, language, look } from "../../state/settings.ts";
import { leave } from "../../state/sign_in.ts";
import { Choice } from "../base/Choice.tsx";

const LOOKS: [Look, Word][] = [
  ["system", "menu.look.system"],
  ["light", "menu.look.light"],
  ["dark", "menu.look.dark"],
];

/** Look, language and sign-out. */
export function MoreMenu() {
  return (
    <>
      <Choice
        label={t("menu.look")}
        name="look"
        options={LOOKS.map(([id, word]) => [id, t(word)] as const)}
        chosen={look.value}
        onChoose={chooseLook}
      />
      <Choice
        label={t("menu.language")}
        name="language"
        options={Object.entries(LANGUAGES) as [Language, string][]}
        chosen={language.value}
        onChoose={(choice) => void chooseLanguage(choice)}
      />
      <button type="button" class="menu-item" onClick={() => void leave()}>
        {t("menu.logout")}
        <span class="quiet">{visibleName(identity.value?.user ?? "")}</span>
      </button>
    </>
  );
}
