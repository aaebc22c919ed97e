import { t } from "../../core/i18n.ts";
import { outbox } from "../../state/outbox.ts";
import { lazy } from "../base/lazy.tsx";
import { AppShell } from "../shell/AppShell.tsx";
import { Composer } from "./Composer.tsx";

const PendingEntry = lazy(async () => (await import("./Pending.tsx")).PendingEntry);

/** What the server proposes, and what the chat will have. */
export const Suggestions = lazy(async () => (await import("../dock/Start.tsx")).Suggestions);
export const StartChips = lazy(async () => (await import("../dock/Start.tsx")).StartChips);

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
                <div class="welcome">
                  <h2>{t("chat.empty")}</h2>
                  <Suggestions />
                </div>
              ) : (
                pending.map((entry) => <PendingEntry key={entry.key} entry={entry} />)
              )}
            </div>
          </div>
        </div>
        <div class="dock">
          <StartChips />
          <Composer key="new" session={null} chat={null} />
        </div>
      </main>
    </AppShell>
  );
}
