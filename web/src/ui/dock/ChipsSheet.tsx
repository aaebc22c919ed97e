import "../../core/words.code.ts";
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { localeNow, t, tMaybe } from "../../core/i18n.ts";
import { visible } from "../../core/visible.ts";
import { call } from "../../platform/api.ts";
import type { SessionView } from "../../protocol/types.gen.ts";
import { loadModels, loadOf, models } from "../../state/providers.ts";
import { Sheet } from "../base/Sheet.tsx";

/** Models that are listed at once; a search finds the others. */
const MOST = 60;

interface ChipsSheetProps {
  model: string;
  mode: string;
  /** The session; nothing for one that is yet to begin. */
  view?: SessionView;
  children?: ComponentChildren;
  /** Tells why a change was not taken. */
  onChange: (change: { model?: string; mode?: string }) => Promise<string | null>;
  onClose: () => void;
}

/** A session's model and mode, and what it has used. */
export function ChipsSheet(props: ChipsSheetProps) {
  const { model, mode, view, children, onChange, onClose } = props;
  const [complaint, setComplaint] = useState("");
  const change = async (body: { model?: string; mode?: string }): Promise<void> => {
    setComplaint("");
    const message = await onChange(body);
    if (message !== null) setComplaint(t("chips.refused", { message: visible(message) }));
  };
  return (
    <Sheet title={t(view ? "chips.label" : "chips.start")} onClose={onClose}>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must take the keys */}
      <div class="sheet-scroll" tabIndex={0}>
        {children}
        <Modes mode={mode} onChoose={(next) => void change({ mode: next })} />
        <Models model={model} onChoose={(next) => void change({ model: next })} />
        {view && <Used view={view} />}
      </div>
      {complaint && (
        <p class="complaint" role="alert">
          {complaint}
        </p>
      )}
      {view && <p class="quiet">{t("chips.next")}</p>}
    </Sheet>
  );
}

interface ModesProps {
  mode: string;
  onChoose: (mode: string) => void;
}

function Modes({ mode, onChoose }: ModesProps) {
  const [modes, setModes] = useState<readonly string[]>([mode]);
  useEffect(() => {
    void loadOf(call("capabilities")).then((offer) => {
      if (offer.state === "ready") setModes(offer.value.modes);
    });
  }, []);
  return (
    <fieldset class="picks">
      <legend class="label">{t("chips.mode")}</legend>
      {modes.map((one) => (
        <label key={one} class="check">
          <input type="radio" name="mode" checked={one === mode} onChange={() => onChoose(one)} />
          {tMaybe(`mode.${one}`) ?? visible(one)}
        </label>
      ))}
    </fieldset>
  );
}

interface ModelsProps {
  model: string;
  onChoose: (model: string) => void;
}

function Models({ model, onChoose }: ModelsProps) {
  const [sought, setSought] = useState("");
  const offer = models.value;
  useEffect(() => void loadModels(), []);
  const listed = offer.state === "ready" ? offer.value.models : [];
  const names = [...new Set([model, ...listed.map((one) => one.model)])];
  const found = names.filter((name) => name.toLowerCase().includes(sought.trim().toLowerCase()));
  return (
    <fieldset class="picks">
      <legend class="label">{t("chips.model")}</legend>
      {names.length > MOST / 4 && (
        <input
          class="field"
          type="search"
          value={sought}
          placeholder={t("chips.search")}
          aria-label={t("chips.search")}
          onInput={(event) => setSought(event.currentTarget.value)}
        />
      )}
      {found.slice(0, MOST).map((name) => (
        <label key={name} class="check">
          <input
            type="radio"
            name="model"
            checked={name === model}
            onChange={() => onChoose(name)}
          />
          <span class="change-path">{visible(name)}</span>
        </label>
      ))}
      {offer.state === "loading" && <p class="quiet">{t("chips.loading")}</p>}
      {found.length === 0 && <p class="quiet">{t("palette.none")}</p>}
      {offer.state === "failed" && (
        <p class="complaint" role="alert">
          {t("chips.failed", { message: visible(offer.message) })}{" "}
          <button type="button" class="link-button" onClick={() => void loadModels()}>
            {t("retry")}
          </button>
        </p>
      )}
    </fieldset>
  );
}

function Used({ view: { usage, cost, context } }: { view: SessionView }) {
  const number = new Intl.NumberFormat(localeNow());
  const { input = 0, output = 0, cache_read = 0, cache_write = 0 } = usage;
  const money = new Intl.NumberFormat(localeNow(), {
    style: "currency",
    currency: "USD",
    maximumFractionDigits: 4,
  });
  return (
    <section>
      <h3 class="label">{t("chips.cost")}</h3>
      <p>{cost === null ? t("chips.cost.unknown") : money.format(cost)}</p>
      <p class="quiet">
        {t("chips.tokens", {
          input: number.format(input + cache_read + cache_write),
          output: number.format(output),
        })}
      </p>
      {context?.window && (
        <p class="quiet">
          {t("chips.context", { percent: Math.round((100 * context.used) / context.window) })}
        </p>
      )}
    </section>
  );
}
