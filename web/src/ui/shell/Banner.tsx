import "../../core/words.later.ts";
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { t, type Word } from "../../core/i18n.ts";
import type { LinkState } from "../../core/link.ts";
import { type Chat, serverBuild } from "../../state/chat.ts";

/** A connection that is back sooner was never worth a word, in milliseconds. */
const WORTH_TELLING_MS = 2_000;

/** This page's own build, as it stands in the document. */
const ownBuild =
  document.querySelector('meta[name="towline-build"]')?.getAttribute("content") ?? "";

function troubleOf({ phase, failed }: LinkState): Word | null {
  if (failed === "contract_unavailable") return "link.unavailable";
  if (failed === "version_mismatch") return "link.version";
  if (failed === "gone") return "chat.missing";
  if (failed === "rejected") return "chat.failed";
  if (phase === "recovering") return "link.recovering";
  if (phase === "connecting") return "link.connecting";
  return phase === "retrying" || phase === "auth_expired" ? "link.retrying" : null;
}

/** At most one line about the connection and the page itself. */
export function Banner({ chat }: { chat: Chat | null }) {
  const trouble = chat?.loaded.value ? troubleOf(chat.state.value) : null;
  const isLong = useLasting(trouble !== null);
  const build = serverBuild.value;
  if (build !== null && ownBuild !== "" && !build.startsWith(ownBuild)) {
    return (
      <Line kind="info" action="link.reload" onAction={() => location.reload()}>
        {t("link.update")}
      </Line>
    );
  }
  if (!chat || trouble === null || !isLong) return null;
  if (trouble === "link.version") {
    return (
      <Line kind="warn" action="link.reload" onAction={() => location.reload()}>
        {t(trouble)}
      </Line>
    );
  }
  return (
    <Line kind="warn" action="retry" onAction={() => chat.retryNow()}>
      {t(trouble)}
    </Line>
  );
}

interface LineProps {
  kind: "info" | "warn";
  action: Word;
  onAction: () => void;
  children: ComponentChildren;
}

function Line({ kind, action, onAction, children }: LineProps) {
  return (
    <div class={`banner ${kind}`} role="status">
      <span>{children}</span>
      <button type="button" class="link-button" onClick={onAction}>
        {t(action)}
      </button>
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
