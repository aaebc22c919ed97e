import "../../core/words.later.ts";
import { useEffect, useState } from "preact/hooks";
import { localeNow, t, type Word } from "../../core/i18n.ts";
import type { LinkState } from "../../core/link.ts";
import { formatWhen } from "../../core/time.ts";
import type { Chat } from "../../state/chat.ts";
import { askAgain, offline } from "../../state/copies.ts";
import { acceptHeld, held } from "../../state/held.ts";
import { declineInstall, install, installWay, offersInstall } from "../../state/install.ts";
import { acceptLimits, isLimited } from "../../state/plain_http.ts";
import { takeUpdate, updateReady, updating } from "../../state/update.ts";
import { crowded } from "../../state/windows.ts";
import { lazy } from "../base/lazy.tsx";

const HeldSheet = lazy(async () => (await import("./HeldSheet.tsx")).HeldSheet);
const InstallSheet = lazy(async () => (await import("./InstallSheet.tsx")).InstallSheet);

/** A connection that is back sooner was never worth a word, in milliseconds. */
const WORTH_TELLING_MS = 2_000;

function troubleOf({ phase, failed }: LinkState): Word | null {
  if (failed === "contract_unavailable") return "link.unavailable";
  if (failed === "version_mismatch") return "link.version";
  if (failed === "gone") return "chat.missing";
  if (failed === "rejected") return "chat.failed";
  if (crowded.value) return "link.crowded";
  if (phase === "recovering") return "link.recovering";
  if (phase === "connecting") return "link.connecting";
  return phase === "retrying" || phase === "auth_expired" ? "link.retrying" : null;
}

/** At most one line: about a new build, the connection, what is shown instead, and what is held back. */
export function Banner({ chat }: { chat: Chat | null }) {
  const trouble = chat?.loaded.value ? troubleOf(chat.state.value) : null;
  const isLong = useLasting(trouble !== null);
  if (updateReady.value) return <UpdateLine />;
  if (trouble === "link.version") {
    return <Line kind="warn" text={t(trouble)} actions={{ "link.reload": reload }} />;
  }
  const copied = chat?.copied.value ?? null;
  if (chat && copied !== null && !crowded.value) {
    const time = formatWhen(new Date(copied).toISOString(), Date.now(), localeNow());
    const text = t("offline.copy", { time });
    return <Line kind="warn" text={text} actions={{ retry: () => chat.retryNow() }} />;
  }
  if (held.value && chat?.silent.value && trouble === "link.retrying") return <HeldLine />;
  if (chat && trouble !== null && isLong) {
    return <Line kind="warn" text={t(trouble)} actions={{ retry: () => retry(chat) }} />;
  }
  if (offline.value) {
    const actions = { retry: () => void askAgain() };
    return <Line kind="warn" text={t("offline.none")} actions={actions} />;
  }
  if (isLimited.value) {
    return <Line kind="info" text={t("http.limited")} actions={{ "http.accept": acceptLimits }} />;
  }
  if (held.value) return <HeldLine />;
  return offersInstall.value ? <InstallLine /> : null;
}

/** A window that gave way to others begins anew. */
function retry(chat: Chat): void {
  chat.start();
  chat.retryNow();
}

function reload(): void {
  location.reload();
}

function UpdateLine() {
  if (updating.value) return <Line kind="info" text={t("link.updating")} actions={{}} />;
  const actions = { "link.reload": () => void takeUpdate() };
  return <Line kind="info" text={t("link.update")} actions={actions} />;
}

function HeldLine() {
  const [shows, setShows] = useState(false);
  return (
    <>
      <Line
        kind="warn"
        text={t("held.line")}
        actions={{ "held.how": () => setShows(true), "http.accept": acceptHeld }}
      />
      {shows && <HeldSheet onClose={() => setShows(false)} />}
    </>
  );
}

function InstallLine() {
  const [shows, setShows] = useState(false);
  const begin = (): void => {
    if (installWay.peek() === "offer") void install();
    else setShows(true);
  };
  const actions = { "install.do": begin, "install.later": declineInstall };
  return (
    <>
      <Line kind="info" text={t("install.offer")} actions={actions} />
      {shows && <InstallSheet onClose={() => setShows(false)} />}
    </>
  );
}

interface LineProps {
  kind: "info" | "warn";
  text: string;
  actions: Partial<Record<Word, () => void>>;
}

function Line({ kind, text, actions }: LineProps) {
  return (
    <div class={`banner ${kind}`} role="status">
      <span>{text}</span>
      {Object.entries(actions).map(([word, act]) => (
        <button key={word} type="button" class="link-button" onClick={act}>
          {t(word as Word)}
        </button>
      ))}
    </div>
  );
}

/** Whether something has held on for long enough to be told. */
function useLasting(holds: boolean): boolean {
  const [lasting, setLasting] = useState(false);
  useEffect(() => {
    if (!holds) return;
    const timer = setTimeout(() => setLasting(true), WORTH_TELLING_MS);
    return () => {
      clearTimeout(timer);
      setLasting(false);
    };
  }, [holds]);
  return lasting;
}
