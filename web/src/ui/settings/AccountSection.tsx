import "../../core/words.settings.ts";
import { useState } from "preact/hooks";
import { t } from "../../core/i18n.ts";
import { visibleName } from "../../core/visible.ts";
import { call } from "../../platform/api.ts";
import { identity } from "../../state/account.ts";
import { loadOf } from "../../state/providers.ts";
import { Button } from "../base/Button.tsx";

/** As the server counts it. */
const LEAST_CHARS = 8;

/** One's own password. */
export function AccountSection() {
  const [old, setOld] = useState("");
  const [fresh, setFresh] = useState("");
  const [everywhere, setEverywhere] = useState(false);
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<string | null>(null);
  const [done, setDone] = useState(false);
  const user = identity.value?.user ?? "";

  const submit = async (): Promise<void> => {
    setDone(false);
    if (fresh.length < LEAST_CHARS)
      return setProblem(t("set.password.short", { count: LEAST_CHARS }));
    setBusy(true);
    setProblem(null);
    const body = { password: fresh, old: old || null, everywhere };
    const sent = await loadOf(call("change_password", { path: { user }, body }));
    setBusy(false);
    if (sent.state === "failed") return setProblem(problemOf(sent.code, sent.message));
    setOld("");
    setFresh("");
    setDone(true);
  };
  return (
    <form
      class="setting-card"
      onSubmit={(event) => {
        event.preventDefault();
        void submit();
      }}
    >
      <p class="quiet">{t("set.password.about", { user: visibleName(user) })}</p>
      <input
        class="off-screen"
        type="text"
        autocomplete="username"
        value={user}
        readOnly
        tabIndex={-1}
        aria-hidden="true"
      />
      <label class="field">
        <span class="label">{t("set.password.old")}</span>
        <input
          type="password"
          autocomplete="current-password"
          value={old}
          onInput={(event) => setOld(event.currentTarget.value)}
        />
      </label>
      <label class="field">
        <span class="label">{t("set.password.new", { count: LEAST_CHARS })}</span>
        <input
          type="password"
          autocomplete="new-password"
          value={fresh}
          aria-invalid={problem !== null}
          onInput={(event) => setFresh(event.currentTarget.value)}
        />
      </label>
      <label class="check">
        <input
          type="checkbox"
          checked={everywhere}
          onChange={(event) => setEverywhere(event.currentTarget.checked)}
        />
        {t("set.password.everywhere")}
      </label>
      {problem && (
        <p class="complaint" role="alert">
          {problem}
        </p>
      )}
      {done && <p role="status">{t("set.password.done")}</p>}
      <div>
        <Button kind="main" type="submit" disabled={busy}>
          {t("set.password.change")}
        </Button>
      </div>
    </form>
  );
}

function problemOf(code: string, message: string): string {
  if (code === "capability_unavailable") return t("set.password.elsewhere");
  return code === "rejected" ? t("set.password.refused", { message }) : message;
}
