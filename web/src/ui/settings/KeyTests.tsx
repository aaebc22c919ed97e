import "../../core/words.settings.ts";
import { useState } from "preact/hooks";
import { t } from "../../core/i18n.ts";
import { visible } from "../../core/visible.ts";
import type { ProviderTest } from "../../protocol/types.gen.ts";
import { type Load, testProvider } from "../../state/providers.ts";
import { Button } from "../base/Button.tsx";
import { Icon } from "../base/Icon.tsx";

/** How many models are named before the rest is a number. */
const NAMED = 8;

/** Asks a provider with each of its keys, and shows what came of it. */
export function KeyTests({ provider }: { provider: string }) {
  const [tested, setTested] = useState<Load<ProviderTest> | null>(null);
  const isBusy = tested?.state === "loading";
  const run = async (): Promise<void> => {
    setTested({ state: "loading" });
    setTested(await testProvider(provider));
  };
  return (
    <div class="key-tests">
      <div class="actions">
        <Button disabled={isBusy} onClick={() => void run()}>
          {t(isBusy ? "set.test.busy" : "set.test")}
        </Button>
      </div>
      <div role="status">
        {tested?.state === "ready" && <Outcome test={tested.value} />}
        {tested?.state === "failed" && <Verdict works={false} text={tested.message} />}
      </div>
    </div>
  );
}

function Outcome({ test }: { test: ProviderTest }) {
  const models = test.models ?? [];
  const keys = test.keys ?? [];
  return (
    <ul class="verdicts">
      {keys.map((one, at) => (
        <li key={at}>
          <Verdict works={one.works} name={one.key} text={one.message} />
        </li>
      ))}
      {test.fault && (keys.length === 0 || keys.every(({ works }) => works)) && (
        <li>
          <Verdict works={false} text={test.fault.message} />
        </li>
      )}
      {!test.fault && (
        <li>
          <Verdict works text={t("set.test.models", { count: models.length })} />
          {models.length > 0 && (
            <p class="quiet">
              {models.slice(0, NAMED).map(visible).join(", ")}
              {models.length > NAMED && ` ${t("set.test.rest", { count: models.length - NAMED })}`}
            </p>
          )}
        </li>
      )}
    </ul>
  );
}

function Verdict({ works, name, text }: { works: boolean; name?: string; text: string }) {
  return (
    <p class={works ? "verdict good" : "verdict bad"}>
      <Icon name={works ? "check" : "alert"} />
      <span>
        <strong>
          {name && `${visible(name)} · `}
          {t(works ? "set.test.works" : "set.test.fails")}
        </strong>{" "}
        {visible(text)}
      </span>
    </p>
  );
}
