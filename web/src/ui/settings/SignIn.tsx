import "../../core/words.settings.ts";
import type { TargetedInputEvent } from "preact";
import { useState } from "preact/hooks";
import { t, type Word } from "../../core/i18n.ts";
import { visible } from "../../core/visible.ts";
import type { ProviderInfo, SignInStarted } from "../../protocol/types.gen.ts";
import { finishSignIn, startSignIn } from "../../state/providers.ts";
import { Button } from "../base/Button.tsx";

/** What a registration consists of: the names of the server's fields, and what they are called. */
const FIELDS: readonly (readonly [name: "client_id" | "client_secret" | "project", word: Word])[] =
  [
    ["client_id", "set.sign.client"],
    ["client_secret", "set.sign.secret"],
    ["project", "set.sign.project"],
  ];

/** A sign-in at a provider in another tab; where that ended is pasted here. */
export function SignIn({ row: { provider, title } }: { row: ProviderInfo }) {
  const [given, setGiven] = useState<Record<string, string>>({});
  const [started, setStarted] = useState<SignInStarted | null>(null);
  const [busy, setBusy] = useState(false);
  const [complaint, setComplaint] = useState<string | null>(null);
  const put = (name: string, text: string): void => setGiven({ ...given, [name]: text });
  const go = async (): Promise<void> => {
    setBusy(true);
    setComplaint(null);
    if (started) {
      const address = given.address?.trim() || null;
      const problem = await finishSignIn(provider, { address });
      setComplaint(problem);
      if (problem === null) setStarted(null);
    } else {
      const pick = (name: string): string | null => given[name]?.trim() || null;
      const body = Object.fromEntries(FIELDS.map(([name]) => [name, pick(name)]));
      const done = await startSignIn(provider, body);
      if (done.state === "ready") setStarted(done.value);
      else if (done.state === "failed") setComplaint(done.message);
    }
    setBusy(false);
  };
  const shown: readonly (readonly [string, Word])[] = started
    ? [["address", "set.sign.address"]]
    : FIELDS;
  return (
    <details class="numbers">
      <summary>{t("set.sign", { provider: visible(title) })}</summary>
      <form
        class="field"
        onSubmit={(event) => {
          event.preventDefault();
          void go();
        }}
      >
        <p class="quiet">{t(started ? "set.sign.then" : "set.sign.about")}</p>
        {started && (
          <a class="button main" href={started.url} target="_blank" rel="noreferrer">
            {t("set.sign.open")}
          </a>
        )}
        {shown.map(([name, word]) => {
          const field = {
            id: `sign-${provider}-${name}`,
            autocomplete: "off",
            spellcheck: false,
            value: given[name] ?? "",
            onInput: (event: TargetedInputEvent<HTMLInputElement>) =>
              put(name, event.currentTarget.value),
          } as const;
          return (
            <div key={name} class="field">
              <label class="label" for={field.id}>
                {t(word)}
              </label>
              {name === "client_secret" ? (
                <input type="password" {...field} />
              ) : (
                <input {...field} />
              )}
            </div>
          );
        })}
        {complaint && (
          <p class="complaint" role="alert">
            {visible(complaint)}
          </p>
        )}
        <div class="actions">
          <Button type="submit" disabled={busy}>
            {t(started ? "set.sign.finish" : "set.sign.start")}
          </Button>
        </div>
      </form>
    </details>
  );
}
