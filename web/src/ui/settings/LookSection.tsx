import "../../core/words.settings.ts";
import { LANGUAGES, type Language, t, type Word } from "../../core/i18n.ts";
import { chooseLanguage, chooseLook, type Look, language, look } from "../../state/settings.ts";
import { Choice } from "../base/Choice.tsx";

const LOOKS: [Look, Word][] = [
  ["system", "menu.look.system"],
  ["light", "menu.look.light"],
  ["dark", "menu.look.dark"],
];

/** How the page looks on this device. */
export function LookSection() {
  return (
    <div class="setting-card">
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
    </div>
  );
}
