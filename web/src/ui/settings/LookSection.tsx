import "../../core/words.settings.ts";
import { LANGUAGES, type Language, t, type Word } from "../../core/i18n.ts";
import {
  choose,
  chooseTextSize,
  enterKey,
  follow,
  TEXT_SIZES,
  textSize,
} from "../../state/preferences.ts";
import { chooseLanguage, chooseLook, type Look, language, look } from "../../state/settings.ts";
import { Choice } from "../base/Choice.tsx";

const LOOKS: [Look, Word][] = [
  ["system", "menu.look.system"],
  ["light", "menu.look.light"],
  ["dark", "menu.look.dark"],
];
const ENTER: [string, Word][] = [
  ["", "set.enter.auto"],
  ["send", "set.enter.send"],
  ["line", "set.enter.line"],
];
const FOLLOW: [string, Word][] = [
  ["", "set.on"],
  ["off", "set.off"],
];

const say = <Id extends string>(rows: [Id, Word][]) =>
  rows.map(([id, word]): readonly [Id, string] => [id, t(word)]);

/** How the page looks and behaves on this device. */
export function LookSection() {
  return (
    <>
      <div class="setting-card">
        <Choice
          label={t("menu.look")}
          name="look"
          options={say(LOOKS)}
          chosen={look.value}
          onChoose={chooseLook}
        />
        <TextSize />
        <Choice
          label={t("menu.language")}
          name="language"
          options={Object.entries(LANGUAGES) as [Language, string][]}
          chosen={language.value}
          onChoose={(choice) => void chooseLanguage(choice)}
        />
      </div>
      <div class="setting-card">
        <Choice
          label={t("set.enter")}
          name="enter"
          options={say(ENTER)}
          chosen={enterKey.value}
          onChoose={(choice) => choose("enter", choice)}
        />
        <p class="quiet">{t("set.enter.about")}</p>
        <Choice
          label={t("set.follow")}
          name="follow"
          options={say(FOLLOW)}
          chosen={follow.value}
          onChoose={(choice) => choose("follow", choice)}
        />
        <p class="quiet">{t("set.follow.about")}</p>
      </div>
    </>
  );
}

function TextSize() {
  const { least, most, step } = TEXT_SIZES;
  return (
    <div class="field">
      <p class="label spread">
        <label for="text-size">{t("set.text_size")}</label>
        <output for="text-size">{textSize.value} %</output>
      </p>
      <input
        id="text-size"
        type="range"
        min={least}
        max={most}
        step={step}
        value={textSize.value}
        onInput={(event) => chooseTextSize(event.currentTarget.valueAsNumber)}
      />
    </div>
  );
}
