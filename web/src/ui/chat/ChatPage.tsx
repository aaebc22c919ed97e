import type { ComponentChildren } from "preact";
import { useRef } from "preact/hooks";
import { t } from "../../core/i18n.ts";
import { visible, visibleName } from "../../core/visible.ts";
import type { Chat } from "../../state/chat.ts";
import { Button } from "../base/Button.tsx";
import { lazy } from "../base/lazy.tsx";
import { AppShell } from "../shell/AppShell.tsx";
import { Composer } from "./Composer.tsx";
import { MessageList } from "./MessageList.tsx";

/** Open requests: nothing to show in most moments. */
export const Requests = lazy(async () => (await import("../requests/RequestCard.tsx")).RequestCard);

/** Plan, model and mode, trust: told when the page has time for it. */
export const Dock = lazy(async () => (await import("../dock/Dock.tsx")).Dock, true);

/** What waits its turn: nothing in most moments. */
export const QueueBar = lazy(async () => (await import("./QueueBar.tsx")).QueueBar);

/** What a screen reader hears by itself. */
const StatusRegion = lazy(
  async () => (await import("../shell/StatusRegion.tsx")).StatusRegion,
  true,
);

/** One session. */
export function ChatPage({ chat }: { chat: Chat }) {
  const { cwd, title_truncated } = chat.parts;
  const named = visibleName(chat.title.value ?? "") || t("sessions.untitled");
  const title = title_truncated ? `${named}…` : named;
  return (
    <AppShell title={title} note={visible((cwd ?? "").split("/").slice(-2).join("/"))} chat={chat}>
      <main class="chat">
        {chat.loaded.value ? <MessageList chat={chat} /> : <NotLoaded chat={chat} />}
        <div class="dock">
          <MaybeRequests chat={chat} />
          <Dock chat={chat} />
          {chat.queue.value.length > 0 && <QueueBar chat={chat} />}
          {chat.state.value.failed !== "gone" && (
            <Composer key={chat.session} session={chat.session} chat={chat} />
          )}
        </div>
      </main>
      <StatusRegion key={chat.session} chat={chat} />
    </AppShell>
  );
}

/** Stays once there was something to ask: what went away is told for a moment. */
function MaybeRequests({ chat }: { chat: Chat }) {
  const asked = useRef(false);
  asked.current ||= chat.permissions.value.length + chat.questions.value.length > 0;
  return asked.current ? <Requests chat={chat} /> : null;
}

/** A session of which nothing has come yet. */
function NotLoaded({ chat }: { chat: Chat }) {
  const { phase, failed, failures } = chat.state.value;
  if (failed === "gone") return <Notice text={t("chat.missing")} />;
  if (failed !== null || failures > 1) {
    return (
      <Notice text={t("chat.failed")}>
        <Button onClick={() => chat.retryNow()}>{t("retry")}</Button>
      </Notice>
    );
  }
  return <Notice text={phase === "idle" ? "" : t("chat.loading")} />;
}

function Notice({ text, children }: { text: string; children?: ComponentChildren }) {
  return (
    <div class="log-frame">
      <div class="middle" role="status">
        <p class="quiet">{text}</p>
        {children}
      </div>
    </div>
  );
}
