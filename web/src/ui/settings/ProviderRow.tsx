import "../../core/words.settings.ts";
import { useState } from "preact/hooks";
import { t, tMaybe } from "../../core/i18n.ts";
import { visible } from "../../core/visible.ts";
import type { ChangeProvider, ProviderInfo } from "../../protocol/types.gen.ts";
import { changeProvider, removeProvider } from "../../state/providers.ts";
import { Button } from "../base/Button.tsx";
import { Icon } from "../base/Icon.tsx";
import { KeyTests } from "./KeyTests.tsx";
import { SignIn } from "./SignIn.tsx";

/** One provider: its keys, and what can be done with them. */
export function ProviderRow({ row }: { row: ProviderInfo }) {
  const [open, setOpen] = useState(false);
  const state = tMaybe(`set.state.${row.state}`) ?? visible(row.state);
  const extra = row.backup_keys?.length ?? 0;
  return (
    <li>
      <details class="provider" onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>
          <span class="provider-name">
            {visible(row.title)}
            {row.key && (
              <span class="quiet">
                {visible(row.key)}
                {extra > 0 && ` ${t("set.keys.extra", { count: extra })}`}
              </span>
            )}
          </span>
          <span class={`dot state-${row.state}`}>{state}</span>
          <Icon name="chevron" />
        </summary>
        {open && <ProviderBody row={row} />}
      </details>
    </li>
  );
}

function ProviderBody({ row }: { row: ProviderInfo }) {
  const [busy, setBusy] = useState(false);
  const [complaint, setComplaint] = useState<string | null>(null);
  const act = async (action: Promise<string | null>): Promise<boolean> => {
    setBusy(true);
    setComplaint(null);
    const problem = await action;
    setComplaint(problem);
    setBusy(false);
    return problem === null;
  };
  const change = (body: ChangeProvider): Promise<boolean> =>
    act(changeProvider(row.provider, body));
  return (
    <div class="provider-body" aria-busy={busy}>
      {row.problem && <p class="complaint">{visible(row.problem)}</p>}
      <KeyList row={row} busy={busy} onChange={change} />
      <AddKey row={row} busy={busy} onChange={change} />
      {row.can_sign_in && !row.signed_in && <SignIn row={row} />}
      {row.can_move && <Address row={row} busy={busy} onChange={change} />}
      {complaint && (
        <p class="complaint" role="alert">
          {complaint}
        </p>
      )}
      <KeyTests provider={row.provider} />
      {(row.key || row.signed_in || row.own_url) && row.found !== "environment" && (
        <Removal title={row.title} busy={busy} onRemove={() => act(removeProvider(row.provider))} />
      )}
    </div>
  );
}

interface PartProps {
  row: ProviderInfo;
  busy: boolean;
  onChange: (body: ChangeProvider) => Promise<boolean>;
}

function KeyList({ row, busy, onChange }: PartProps) {
  const backups = row.backup_keys ?? [];
  if (!row.key && !row.signed_in) return null;
  const place = tMaybe(`set.found.${row.found}`, { setting: row.setting ?? "" });
  return (
    <ul class="keys">
      {row.key && (
        <li>
          <code>{visible(row.key)}</code>
          <span class="quiet">{place ?? t("set.keys.first")}</span>
        </li>
      )}
      {backups.map((key, at) => (
        <li key={at}>
          <code>{visible(key)}</code>
          <span class="quiet">{t("set.keys.backup")}</span>
          <button
            type="button"
            class="link-button"
            disabled={busy}
            aria-label={t("set.keys.remove.one", { key: visible(key) })}
            onClick={() =>
              void onChange({ backup_keys: backups.filter((_, other) => other !== at) })
            }
          >
            {t("set.remove")}
          </button>
        </li>
      ))}
      {row.signed_in && (
        <li>
          <span>{t("set.found.sign_in")}</span>
        </li>
      )}
    </ul>
  );
}

/** A field for a key; nothing of it is kept in this browser. */
function AddKey({ row, busy, onChange }: PartProps) {
  const [key, setKey] = useState("");
  const hasKey = Boolean(row.key);
  const put = async (body: ChangeProvider): Promise<void> => {
    if (await onChange(body)) setKey("");
  };
  const field = `key-${row.provider}`;
  const typed = key.trim();
  return (
    <form
      class="field"
      onSubmit={(event) => {
        event.preventDefault();
        if (typed) void put({ key: typed });
      }}
    >
      <label class="label" for={field}>
        {t(hasKey ? "set.keys.another" : "set.keys.add")}
      </label>
      <input
        id={field}
        type="password"
        autocomplete="off"
        spellcheck={false}
        value={key}
        onInput={(event) => setKey(event.currentTarget.value)}
      />
      <div class="actions">
        <Button type="submit" kind="main" disabled={busy || !typed}>
          {t(hasKey ? "set.keys.replace" : "set.save")}
        </Button>
        {hasKey && row.found !== "environment" && (
          <Button
            disabled={busy || !typed}
            onClick={() => void put({ backup_keys: [...(row.backup_keys ?? []), typed] })}
          >
            {t("set.keys.add.backup")}
          </Button>
        )}
      </div>
    </form>
  );
}

function Address({ row, busy, onChange }: PartProps) {
  const [url, setUrl] = useState(row.base_url ?? "");
  const field = `url-${row.provider}`;
  return (
    <form
      class="field"
      onSubmit={(event) => {
        event.preventDefault();
        void onChange({ base_url: url.trim() });
      }}
    >
      <label class="label" for={field}>
        {t("set.address")}
      </label>
      <input
        id={field}
        type="url"
        inputMode="url"
        autocomplete="off"
        spellcheck={false}
        value={url}
        onInput={(event) => setUrl(event.currentTarget.value)}
      />
      {url.trim() !== (row.base_url ?? "") && (
        <div class="actions">
          <Button type="submit" disabled={busy}>
            {t("set.save")}
          </Button>
        </div>
      )}
    </form>
  );
}

interface RemovalProps {
  title: string;
  busy: boolean;
  onRemove: () => void;
}

/** Asks once more: a key cannot be read back. */
function Removal({ title, busy, onRemove }: RemovalProps) {
  const [sure, setSure] = useState(false);
  if (!sure) {
    return (
      <div class="actions">
        <Button disabled={busy} onClick={() => setSure(true)}>
          {t("set.keys.forget")}
        </Button>
      </div>
    );
  }
  return (
    <div class="actions">
      <p class="quiet">{t("set.keys.forget.sure", { provider: visible(title) })}</p>
      <Button kind="danger" disabled={busy} onClick={onRemove}>
        {t("set.keys.forget")}
      </Button>
      <Button autoFocus onClick={() => setSure(false)}>
        {t("set.cancel")}
      </Button>
    </div>
  );
}
