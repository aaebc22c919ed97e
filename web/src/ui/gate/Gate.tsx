import "../../core/words.later.ts";
import { useEffect, useRef, useState } from "preact/hooks";
import { t, type Word } from "../../core/i18n.ts";
import { visibleName } from "../../core/visible.ts";
import { ApiFault } from "../../platform/api.ts";
import { access, askWho, ended } from "../../state/account.ts";
import { readSetting } from "../../state/settings.ts";
import {
  CODE_LENGTH,
  claim,
  cleanCode,
  logIn,
  OWNER,
  type WhyOut,
  whyOut,
} from "../../state/sign_in.ts";
import { Button } from "../base/Button.tsx";
import { Choice } from "../base/Choice.tsx";
import { lazy } from "../base/lazy.tsx";
import { useNow } from "../hooks/useNow.ts";

const ScanSheet = lazy(async () => (await import("./ScanSheet.tsx")).ScanSheet);

/** Asked again this often while no server answers, in milliseconds. */
const ASK_AGAIN_MS = 3_000;

interface GateProps {
  /** The code that the address brought. */
  code: string | undefined;
}

/** What one signs in with. */
type Way = "code" | "password";

/** Where one signs in; the place that was wanted is kept and shown then. */
export function Gate({ code }: GateProps) {
  const [way, setWay] = useState<Way>(readSetting("user") && !code ? "password" : "code");
  const why = useWhy(code === undefined);
  useEffect(() => {
    // A fresh link opened in this window changes the fragment alone, and loads nothing by itself.
    window.onhashchange = () => {
      if (location.hash.startsWith("#code=")) location.reload();
    };
    return () => {
      window.onhashchange = null;
    };
  }, []);
  const reason = why ? t(`gate.ended.${why}`) : ended.value ? t("gate.ended") : null;
  const name = visibleName(readSetting("server_name") ?? "");
  return (
    <main class="gate">
      <div class="gate-card">
        <Brand />
        <h1>{name || t("gate.title")}</h1>
        <p class="quiet">{t("gate.lead", { host: location.host })}</p>
        {reason && (
          <p class="note" role="status">
            {reason}
          </p>
        )}
        <Choice
          label={t("gate.how")}
          name="way"
          options={[
            ["code", t("gate.code")],
            ["password", t("gate.password")],
          ]}
          chosen={way}
          onChoose={setWay}
        />
        {way === "code" ? <CodeForm code={code} /> : <PasswordForm />}
      </div>
    </main>
  );
}

/** Why the one who was in is out; asked once, if at all. */
function useWhy(asks: boolean): WhyOut | null {
  const [why, setWhy] = useState<WhyOut | null>(null);
  useEffect(() => {
    if (asks) void whyOut().then(setWhy);
  }, []);
  return why;
}

/**
 * One try after the other: busy, refused, or to wait.
 *
 * @param wrong what is said when the server does not let one in
 */
function useTry(wrong: Word) {
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<string | null>(null);
  const [untilMs, setUntilMs] = useState(0);
  const now = useNow(untilMs > 0);
  const leftS = untilMs > 0 ? Math.ceil((untilMs - now) / 1000) : 0;
  useEffect(() => {
    if (untilMs > 0 && leftS <= 0) setUntilMs(0);
  }, [untilMs, leftS]);
  const attempt = async (request: () => Promise<void>): Promise<void> => {
    if (busy || leftS > 0) return;
    setBusy(true);
    setProblem(null);
    const fault = await faultOf(request());
    setBusy(false);
    if (fault && fault.afterMs > 0) setUntilMs(Date.now() + fault.afterMs);
    else if (fault) setProblem(problemOf(fault, wrong));
  };
  const said = leftS > 0 ? t("gate.wait", { seconds: leftS }) : problem;
  return { busy, blocked: busy || leftS > 0, said, complain: setProblem, attempt };
}

/** Why something was not done; nothing when it was. */
async function faultOf(request: Promise<void>): Promise<ApiFault | null> {
  try {
    await request;
    return null;
  } catch (error) {
    if (error instanceof ApiFault) return error;
    throw error;
  }
}

function problemOf({ code, message }: ApiFault, wrong: Word): string {
  if (code === "unauthorized") return t(wrong);
  if (code === "no_cookies") return t("gate.cookies");
  return code === "network" || code === "timeout" ? t("gate.offline") : message;
}

function Complaint({ said }: { said: string | null }) {
  if (said === null) return null;
  return (
    <p id="complaint" class="complaint" role="alert">
      {said}
    </p>
  );
}

function CodeForm({ code }: { code: string | undefined }) {
  const [typed, setTyped] = useState(code ?? "");
  const [scanning, setScanning] = useState(false);
  const tried = useRef(false);
  const { busy, blocked, said, complain, attempt } = useTry("gate.wrong");
  const submit = async (text: string): Promise<void> => {
    if (cleanCode(text).length !== CODE_LENGTH) {
      complain(t("gate.short"));
      return;
    }
    await attempt(async () => {
      try {
        await claim(text);
      } catch (error) {
        // A code in the address may have been used by this browser before: then it is signed in.
        if (text === code) await askWho();
        if (access.peek() !== "in") throw error;
      }
    });
  };
  useEffect(() => {
    if (code === undefined || tried.current) return;
    tried.current = true;
    void submit(code);
  }, []);
  return (
    <form
      class="gate-form"
      onSubmit={(event) => {
        event.preventDefault();
        void submit(typed);
      }}
    >
      <label for="code">{t("gate.code")}</label>
      <input
        id="code"
        class="code"
        value={typed}
        placeholder="XXXX-XXXX"
        autocomplete="one-time-code"
        autocapitalize="characters"
        spellcheck={false}
        maxLength={16}
        aria-describedby={said === null ? "code-hint" : "complaint code-hint"}
        aria-invalid={said !== null}
        onInput={(event) => setTyped(event.currentTarget.value)}
      />
      <Complaint said={said} />
      <Button kind="main" type="submit" disabled={blocked}>
        {t(busy ? "gate.busy" : "gate.submit")}
      </Button>
      <Button onClick={() => setScanning(true)}>{t("gate.scan")}</Button>
      <p id="code-hint" class="quiet">
        {t("gate.hint", { command: "towline pair" })}
      </p>
      {scanning && (
        <ScanSheet
          onClose={() => setScanning(false)}
          onCode={(found) => {
            setScanning(false);
            setTyped(found);
            void submit(found);
          }}
        />
      )}
    </form>
  );
}

function PasswordForm() {
  const [user, setUser] = useState(readSetting("user") ?? OWNER);
  const [password, setPassword] = useState("");
  const { busy, blocked, said, complain, attempt } = useTry("gate.password.wrong");
  const submit = (): void => {
    if (password === "") complain(t("gate.password.empty"));
    else void attempt(() => logIn(user, password));
  };
  return (
    <form
      class="gate-form"
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
    >
      <label for="user">{t("gate.user")}</label>
      <input
        id="user"
        value={user}
        autocomplete="username"
        autocapitalize="none"
        spellcheck={false}
        maxLength={80}
        onInput={(event) => setUser(event.currentTarget.value)}
      />
      <label for="password">{t("gate.password")}</label>
      <input
        id="password"
        type="password"
        value={password}
        autocomplete="current-password"
        aria-describedby={said === null ? "password-hint" : "complaint password-hint"}
        aria-invalid={said !== null}
        onInput={(event) => setPassword(event.currentTarget.value)}
      />
      <Complaint said={said} />
      <Button kind="main" type="submit" disabled={blocked}>
        {t(busy ? "gate.busy" : "gate.submit")}
      </Button>
      <p id="password-hint" class="quiet">
        {t("gate.password.hint")}
      </p>
    </form>
  );
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
