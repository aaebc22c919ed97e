import "../../core/words.later.ts";
import { useEffect, useRef, useState } from "preact/hooks";
import { t } from "../../core/i18n.ts";
import { ApiFault } from "../../platform/api.ts";
import { access, askWho, ended } from "../../state/account.ts";
import { CODE_LENGTH, claim, cleanCode } from "../../state/sign_in.ts";
import { Button } from "../base/Button.tsx";

/** Asked again this often while no server answers, in milliseconds. */
const ASK_AGAIN_MS = 3_000;

interface GateProps {
  /** The code that the address brought. */
  code: string | undefined;
}

/** Where one signs in. */
export function Gate({ code }: GateProps) {
  const [typed, setTyped] = useState(code ?? "");
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<string | null>(null);
  const tried = useRef(false);

  const submit = async (): Promise<void> => {
    if (cleanCode(typed).length !== CODE_LENGTH) {
      setProblem(t("gate.short"));
      return;
    }
    setBusy(true);
    setProblem(null);
    try {
      await claim(typed);
    } catch (error) {
      // A code in the address may have been used by this browser before: then it is signed in.
      if (typed === code) await askWho();
      if (access.peek() === "in") return;
      setProblem(problemOf(error));
      setBusy(false);
    }
  };
  useEffect(() => {
    if (code === undefined || tried.current) return;
    tried.current = true;
    void submit();
  }, []);

  return (
    <main class="gate">
      <form
        class="gate-card"
        onSubmit={(event) => {
          event.preventDefault();
          void submit();
        }}
      >
        <Brand />
        <h1>{t("gate.title")}</h1>
        <p class="quiet">{t("gate.lead", { host: location.host })}</p>
        {ended.value && <p class="note">{t("gate.ended")}</p>}
        <label for="code">{t("gate.code")}</label>
        <input
          id="code"
          value={typed}
          placeholder="XXXX-XXXX"
          autocomplete="one-time-code"
          autocapitalize="characters"
          spellcheck={false}
          maxLength={16}
          aria-describedby="code-hint"
          aria-invalid={problem !== null}
          onInput={(event) => setTyped(event.currentTarget.value)}
        />
        {problem && (
          <p class="complaint" role="alert">
            {problem}
          </p>
        )}
        <Button kind="main" type="submit" disabled={busy}>
          {t(busy ? "gate.busy" : "gate.submit")}
        </Button>
        <p id="code-hint" class="quiet">
          {t("gate.hint", { command: "towline pair" })}
        </p>
      </form>
    </main>
  );
}

function problemOf(error: unknown): string {
  if (!(error instanceof ApiFault)) throw error;
  if (error.code === "unauthorized") return t("gate.wrong");
  if (error.code === "network" || error.code === "timeout") return t("gate.offline");
  if (error.afterMs > 0) return t("gate.wait", { seconds: Math.ceil(error.afterMs / 1000) });
  return error.message;
}

/** The page's sign: a rope between two points. */
function Brand() {
  return (
    <svg class="brand" viewBox="0 0 48 24" aria-hidden="true" focusable="false">
      <path d="M6 12c8 14 28-10 36 2" />
      <circle cx="6" cy="12" r="3.5" />
      <circle cx="42" cy="14" r="3.5" />
    </svg>
  );
}

/** Shown while no server answers; asks again by itself. */
export function Unreachable() {
  useEffect(() => {
    const timer = setInterval(() => void askWho(), ASK_AGAIN_MS);
    return () => clearInterval(timer);
  }, []);
  return (
    <main class="gate">
      <div class="gate-card">
        <Brand />
        <h1>{t("app.name")}</h1>
        <p role="status">{t("gate.offline")}</p>
        <Button onClick={() => void askWho()}>{t("retry")}</Button>
      </div>
    </main>
  );
}
