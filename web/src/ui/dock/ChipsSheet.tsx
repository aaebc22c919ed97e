import "../../core/words.code.ts";
import { useEffect, useState } from "preact/hooks";
import { localeNow, t, tMaybe } from "../../core/i18n.ts";
import { visible } from "../../core/visible.ts";
import { ApiFault, call } from "../../platform/api.ts";
import type { Capabilities, ModelList, SessionView } from "../../protocol/types.gen.ts";
import type { Chat } from "../../state/chat.ts";
import { complaintOf, deliver, newKey } from "../../state/outbox.ts";
import { Sheet } from "../base/Sheet.tsx";

/** Models that are listed at once; a search finds the others. */
const MOST = 60;

/** The session's model and mode, and what it has used. */
export function ChipsSheet({ chat, onClose }: { chat: Chat; onClose: () => void }) {
  const [complaint, setComplaint] = useState("");
  const view = chat.current.value;
  const change = async (body: { model?: string; mode?: string }): Promise<void> => {
    setComplaint("");
    const said = deliver("update_session", {
      path: { session: chat.session },
      key: newKey(),
      body,
    });
    const problem = await complaintOf(said);
    if (problem !== null) setComplaint(t("chips.refused", { message: visible(problem) }));
  };
  return (
    <Sheet title={t("chips.label")} onClose={onClose}>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must take the keys */}
      <div class="sheet-scroll" tabIndex={0}>
        <Modes mode={view.mode} onChoose={(mode) => void change({ mode })} />
        <Models model={view.model} onChoose={(model) => void change({ model })} />
        <Used view={view} />
      </div>
      {complaint && (
        <p class="complaint" role="alert">
          {complaint}
        </p>
      )}
      <p class="quiet">{t("chips.next")}</p>
    </Sheet>
  );
}

interface ModesProps {
  mode: string;
  onChoose: (mode: string) => void;
}

function Modes({ mode, onChoose }: ModesProps) {
  const [offer] = useAnswer(() => call("capabilities"));
  const modes = offer?.modes ?? [mode];
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
  const [offer, fault, again] = useAnswer(() => call("list_models"));
  const names = [...new Set([model, ...(offer?.models.map((one) => one.model) ?? [])])];
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
      {!offer && !fault && <p class="quiet">{t("chips.loading")}</p>}
      {found.length === 0 && <p class="quiet">{t("palette.none")}</p>}
      {fault && (
        <p class="complaint" role="alert">
          {t("chips.failed", { message: visible(fault) })}{" "}
          <button type="button" class="link-button" onClick={again}>
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

/** An answer of the server, why there is none, and a way to ask again. */
function useAnswer<Answer extends Capabilities | ModelList>(
  ask: () => Promise<Answer>,
): [Answer | null, string, () => void] {
  const [answer, setAnswer] = useState<Answer | null>(null);
  const [fault, setFault] = useState("");
  const [tries, setTries] = useState(0);
  useEffect(() => {
    let left = false;
    setFault("");
    ask().then(
      (found) => left || setAnswer(() => found),
      (error: unknown) => {
        if (!(error instanceof ApiFault)) throw error;
        if (!left) setFault(error.message);
      },
    );
    return () => {
      left = true;
    };
  }, [tries]);
  return [answer, fault, () => setTries(tries + 1)];
}
