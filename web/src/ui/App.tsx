import { computed, effect } from "@preact/signals";
import { Component, type ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { t } from "../core/i18n.ts";
import { learn } from "../platform/api.ts";
import { pageIdle } from "../platform/idle.ts";
import { watchPageLife } from "../platform/page_life.ts";
import { access } from "../state/account.ts";
import { Chat, chat } from "../state/chat.ts";
import { newKey } from "../state/outbox.ts";
import { type Page, route } from "../state/router.ts";
import { refreshSessions } from "../state/sessions.ts";
import { language } from "../state/settings.ts";
import { Button } from "./base/Button.tsx";
import { type LazyComponent, lazy } from "./base/lazy.tsx";
import { ChatPage, Requests } from "./chat/ChatPage.tsx";
import { preloadStreamer } from "./chat/Markdown.tsx";
import { Pending, WorkingLine } from "./chat/MessageList.tsx";
import { NewChatPage } from "./chat/NewChatPage.tsx";
import { useViewport } from "./hooks/useViewport.ts";
import { SessionList, Sheet } from "./shell/AppShell.tsx";
import { ToolBody } from "./tools/ToolCard.tsx";

/** The pages beside the chat. */
const PAGES: Record<Page, LazyComponent<{ part: string | undefined }>> = {
  settings: lazy(async () => (await import("./settings/SettingsPage.tsx")).SettingsPage),
};
const Gate = lazy(async () => (await import("./gate/Gate.tsx")).Gate);
const Unreachable = lazy(async () => (await import("./gate/Gate.tsx")).Unreachable);

/** The list is read again this often while the page is seen, in milliseconds. */
const LIST_EVERY_MS = 20_000;

/** This page's name among the readers of a session. */
const READER = newKey();

/** The whole page. */
export function App({ code }: { code: string | undefined }) {
  useViewport();
  return (
    <Boundary key={language.value}>
      <Pages code={code} />
    </Boundary>
  );
}

function Pages({ code }: { code: string | undefined }) {
  const left = useRef(code);
  if (access.value === "in") left.current = undefined; // it works once: a later sign-in starts empty
  switch (access.value) {
    case "in":
      return <SignedIn />;
    case "out":
      return <Gate code={left.current} />;
    case "unreachable":
      return <Unreachable />;
    default:
      return null;
  }
}

function SignedIn() {
  // An effect would wait for a frame that shows nothing yet.
  useLayoutEffect(() => keepChat(), []);
  useEffect(() => keepList(), []);
  useEffect(() => pageIdle(fetchTheRest), []);
  const open = chat.value;
  const at = route.value;
  if (at.page === "new") return <NewChatPage />;
  if (at.page === "chat") return open ? <ChatPage key={open.session} chat={open} /> : null;
  const Beside = PAGES[at.page];
  return <Beside part={at.part} />;
}

/** Tells the server that somebody looks, from now on. */
async function tellPresence(): Promise<void> {
  (await import("../state/presence.ts")).beginPresence();
}

/** What the first screen does without, before it is needed; what fails is asked for again then. */
function fetchTheRest(): void {
  const parts = [Pending, WorkingLine, Requests, ToolBody, SessionList, Sheet].map(
    ({ preload }) => preload,
  );
  void Promise.allSettled(
    [preloadStreamer, learn, tellPresence, ...parts].map((preload) => preload()),
  );
}

/** Opens the session that the route names, and leaves it when the route names another or none. */
function keepChat(): () => void {
  const stopFollowing = effect(() => {
    const to = route.value;
    const open = chat.peek();
    if (to.page === "chat" ? open?.session === to.session : to.page !== "new") return;
    open?.stop();
    chat.value = to.page === "chat" ? new Chat(to.session, READER) : null;
    chat.peek()?.start();
  });
  const stopWatching = watchPageLife({
    hidden: (awayMs) => chat.peek()?.stop(awayMs),
    online: () => chat.peek()?.retryNow(),
    woken: (awayMs) => {
      const open = chat.peek();
      open?.stop(awayMs);
      open?.start();
    },
  });
  return () => {
    stopFollowing();
    stopWatching();
    chat.peek()?.stop();
    chat.value = null;
  };
}

/** Reads the list when something in it has probably moved, and now and then. */
function keepList(): () => void {
  const news = computed(() => {
    const open = chat.value;
    return JSON.stringify([route.value, open?.turn.value?.id, open?.permissions.value.length ?? 0]);
  });
  const stop = effect(() => {
    void news.value;
    void refreshSessions();
  });
  const timer = setInterval(() => {
    if (document.visibilityState === "visible") void refreshSessions();
  }, LIST_EVERY_MS);
  return () => {
    stop();
    clearInterval(timer);
  };
}

/** Shows something when a component fails, instead of a white page. */
class Boundary extends Component<{ children: ComponentChildren }, { failed: boolean }> {
  override state = { failed: false };

  static override getDerivedStateFromError(): { failed: boolean } {
    return { failed: true };
  }

  override render() {
    if (!this.state.failed) return this.props.children;
    return (
      <main class="gate">
        <div class="gate-card" role="alert">
          <p>{t("error.page")}</p>
          <Button kind="main" onClick={() => location.reload()}>
            {t("link.reload")}
          </Button>
        </div>
      </main>
    );
  }
}
