import "../../core/words.later.ts";
import { LANGUAGES, type Language, t, type Word } from "../../core/i18n.ts";
import { visibleName } from "../../core/visible.ts";
import { identity } from "../../state/account.ts";
import { chooseLanguage, chooseLook, type Look, language, look } from "../../state/settings.ts";
import { leave } from "../../state/sign_in.ts";

const LOOKS: Record<Look, Word> = {
  system: "menu.look.system",
  light: "menu.look.light",
  dark: "menu.look.dark",
};

/** Look, language and sign-out. */
export function MoreMenu() {
  return (
    <>
      <Choice
        label="menu.look"
        name="look"
        options={Object.entries(LOOKS).map(([id, word]): [string, string] => [id, t(word)])}
        chosen={look.value}
        onChoose={(choice) => chooseLook(choice as Look)}
      />
      <Choice
        label="menu.language"
        name="language"
        options={Object.entries(LANGUAGES)}
        chosen={language.value}
        onChoose={(choice) => void chooseLanguage(choice as Language)}
      />
      <button type="button" class="menu-item" onClick={() => void leave()}>
        {t("menu.logout")}
        <span class="quiet">{visibleName(identity.value?.user ?? "")}</span>
      </button>
    </>
  );
}

interface ChoiceProps {
  label: Word;
  name: string;
  options: [id: string, text: string][];
  chosen: string;
  onChoose: (id: string) => void;
}

function Choice({ label, name, options, chosen, onChoose }: ChoiceProps) {
  return (
    <fieldset class="choice">
      <legend class="label">{t(label)}</legend>
      <div class="segments">
        {options.map(([id, text]) => (
          <label key={id} class="segment">
            <input type="radio" name={name} checked={id === chosen} onChange={() => onChoose(id)} />
            <span>{text}</span>
          </label>
        ))}
      </div>
    </fieldset>
  );
}
