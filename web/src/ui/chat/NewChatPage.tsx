import { t, type Word } from "../../core/i18n.ts";
import { outbox, sendText } from "../../state/outbox.ts";
import { lazy } from "../base/lazy.tsx";
import { AppShell } from "../shell/AppShell.tsx";
import { Composer } from "./Composer.tsx";

const PendingEntry = lazy(async () => (await import("./Pending.tsx")).PendingEntry);

const SUGGESTIONS: Word[] = ["chat.suggest.files", "chat.suggest.readme", "chat.suggest.disk"];

/** A session that is yet to begin: it is made with its first prompt. */
export function NewChatPage() {
  const pending = outbox.value.filter((entry) => entry.session === null);
  return (
    <AppShell title={t("sessions.new")} note="" chat={null}>
      <main class="chat">
        <div class="log-frame">
          <div class="log">
            <div class="column">
              {pending.length === 0 ? (
                <Welcome />
              ) : (
                pending.map((entry) => <PendingEntry key={entry.key} entry={entry} />)
              )}
            </div>
          </div>
        </div>
        <div class="dock">
          <Composer key="new" session={null} chat={null} />
        </div>
      </main>
    </AppShell>
  );
}

function Welcome() {
  return (
    <div class="welcome">
      <h2>{t("chat.empty")}</h2>
      <p class="quiet">{t("chat.empty.lead")}</p>
      <ul class="suggestions">
        {SUGGESTIONS.map((word) => (
          <li key={word}>
            <button type="button" class="suggestion" onClick={() => sendText(null, t(word))}>
              {t(word)}
            </button>
          </li>
        ))}
      </ul>
    </div>
  );
}
