import "../../core/words.settings.ts";
import { useEffect, useRef, useState } from "preact/hooks";
import { t } from "../../core/i18n.ts";
import { visible } from "../../core/visible.ts";
import type { ModelList, ProviderInfo } from "../../protocol/types.gen.ts";
import { chooseDefault, loadProviders, models, providers } from "../../state/providers.ts";
import { Loading } from "./Loading.tsx";
import { ProviderRow } from "./ProviderRow.tsx";

/** The model of new chats, and the keys that models are asked with. */
export function ModelsSection() {
  useEffect(() => void loadProviders(), []);
  const retry = (): void => void loadProviders();
  const [list, rows] = [models.value, providers.value];
  // One wait and one cause are told once.
  const isOneCause =
    (list.state === "loading" && rows.state === "loading") ||
    (list.state === "failed" && rows.state === "failed" && list.code === rows.code);
  return (
    <>
      <Loading load={list} known={{ capability_unavailable: "set.models.fixed" }} onRetry={retry}>
        {(found) => <DefaultModel list={found} fixed={rows.state === "failed"} />}
      </Loading>
      {!isOneCause && (
        <Loading
          load={rows}
          known={{ capability_unavailable: "set.models.fixed", forbidden: "set.models.admin" }}
          onRetry={retry}
        >
          {(found) => <ProviderGroups rows={found} />}
        </Loading>
      )}
    </>
  );
}

function DefaultModel({ list, fixed }: { list: ModelList; fixed: boolean }) {
  const chosen = list.default;
  const [complaint, setComplaint] = useState<string | null>(null);
  const choose = async (model: string | null): Promise<void> => {
    setComplaint(null);
    setComplaint(await chooseDefault(model));
  };
  const names = list.models.map((one) => one.model);
  const owners = [...new Set(names.map(ownerOf))];
  return (
    <div class="setting-card">
      <label class="field">
        <span class="label">{t("set.models.default")}</span>
        <select
          disabled={fixed}
          value={chosen}
          onChange={(event) => void choose(event.currentTarget.value || null)}
        >
          <option value="">{t("set.models.default.server")}</option>
          {!names.includes(chosen) && (
            <option value={chosen}>{t("set.models.missing", { model: visible(chosen) })}</option>
          )}
          {owners.map((provider) => (
            <optgroup key={provider} label={visible(provider)}>
              {names
                .filter((name) => ownerOf(name) === provider)
                .map((name) => (
                  <option key={name} value={name}>
                    {visible(name)}
                  </option>
                ))}
            </optgroup>
          ))}
        </select>
      </label>
      <p class="quiet">{t("set.models.default.about")}</p>
      {complaint && (
        <p class="complaint" role="alert">
          {visible(complaint)}
        </p>
      )}
      {Object.entries(list.faults).map(([provider, fault]) => (
        <p key={provider} class="complaint">
          {t("set.models.fault", { provider, message: visible(fault.message) })}
        </p>
      ))}
    </div>
  );
}

function ownerOf(name: string): string {
  return name.split("/")[0] ?? "";
}

function isUsed({ state, key }: ProviderInfo): boolean {
  return state === "ready" || state === "unreadable" || Boolean(key);
}

function ProviderGroups({ rows }: { rows: readonly ProviderInfo[] }) {
  // A row stays where it was found: one that jumps while it is worked on is lost.
  const found = useRef(new Set(rows.filter(isUsed).map(({ provider }) => provider)));
  const used = rows.filter(({ provider }) => found.current.has(provider));
  const free = rows.filter(({ provider }) => !found.current.has(provider));
  return (
    <>
      <h3>{t("set.keys")}</h3>
      {used.length === 0 ? (
        <p class="quiet">{t("set.keys.none")}</p>
      ) : (
        <ul class="setting-rows">
          {used.map((row) => (
            <ProviderRow key={row.provider} row={row} />
          ))}
        </ul>
      )}
      {free.length > 0 && (
        <>
          <h3>{t("set.keys.more")}</h3>
          <ul class="setting-rows">
            {free.map((row) => (
              <ProviderRow key={row.provider} row={row} />
            ))}
          </ul>
        </>
      )}
    </>
  );
}
