import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { t } from "../../core/i18n.ts";
import { visibleName } from "../../core/visible.ts";
import { identity } from "../../state/account.ts";
import type { Chat } from "../../state/chat.ts";
import { refreshSessions } from "../../state/sessions.ts";
import { IconButton } from "../base/Button.tsx";
import { lazy } from "../base/lazy.tsx";
import { useWide } from "../hooks/useWide.ts";
import { drawer } from "./drawer.ts";

const MENU = "more-menu";

/** On a phone the list is behind a button. */
export const SessionList = lazy(
  async () => (await import("../sessions/SessionList.tsx")).SessionList,
);
/** There is nothing to tell of a connection in the first seconds. */
const Banner = lazy(async () => (await import("./Banner.tsx")).Banner, true);
export const Sheet = lazy(async () => (await import("../base/Sheet.tsx")).Sheet);
/** The ways to the other pages. Its place is kept, so that nothing moves when it comes. */
const Places = lazy(async () => (await import("./Places.tsx")).Places, true);
/** What keys do everywhere. */
export const Keys = lazy(async () => (await import("./Keys.tsx")).Keys, true);
const MoreMenu = lazy(async () => (await import("./MoreMenu.tsx")).MoreMenu);

interface AppShellProps {
  title: string;
  note: string;
  chat: Chat | null;
  children: ComponentChildren;
}

/** The frame: list, bar, banner, content. */
export function AppShell({ title, note, chat, children }: AppShellProps) {
  const wide = useWide();
  const [menu, setMenu] = useState(false);
  const waiting = chat ? chat.permissions.value.length : 0;
  useEffect(() => {
    document.title = `${waiting > 0 ? `(${waiting}) ` : ""}${title} · ${t("app.name")}`;
  }, [title, waiting]);
  const closeDrawer = (): void => {
    drawer.value = false;
  };
  return (
    <div class="app">
      <button type="button" class="skip button" onClick={focusComposer}>
        {t("skip")}
      </button>
      {wide && (
        <aside class="sidebar">
          <p class="sidebar-name">
            {visibleName(identity.value?.server_name ?? "") || t("app.name")}
          </p>
          <SessionList onPick={() => undefined} />
          <Places wide />
        </aside>
      )}
      <div class="frame">
        <header class="bar">
          {!wide && <IconButton icon="menu" label={t("sessions.open")} onClick={openDrawer} />}
          <div class="bar-words">
            <h1>{title}</h1>
            {note !== "" && <p class="quiet">{note}</p>}
          </div>
          <IconButton icon="more" label={t("menu.open")} popoverTarget={MENU} />
          <div
            id={MENU}
            class="menu"
            popover="auto"
            onToggle={(event) => setMenu(event.newState === "open")}
          >
            {menu && <MoreMenu chat={chat} />}
          </div>
        </header>
        <Banner chat={chat} />
        {children}
      </div>
      {!wide && <Places />}
      {drawer.value && !wide && (
        <Sheet className="drawer" title={t("sessions.title")} onClose={closeDrawer}>
          <SessionList onPick={closeDrawer} />
        </Sheet>
      )}
      <Keys />
    </div>
  );
}

function openDrawer(): void {
  drawer.value = true;
  void refreshSessions();
}

function focusComposer(): void {
  document.getElementById("composer")?.focus();
}
