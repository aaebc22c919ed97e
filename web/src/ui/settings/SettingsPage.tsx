import "../../core/words.settings.ts";
import { t } from "../../core/i18n.ts";
import { visibleName } from "../../core/visible.ts";
import { identity } from "../../state/account.ts";
import { chat } from "../../state/chat.ts";
import { leave } from "../../state/sign_in.ts";
import { Button } from "../base/Button.tsx";
import { Icon } from "../base/Icon.tsx";
import { LATER_ICONS } from "../base/icons.later.ts";
import { Link } from "../base/Link.tsx";
import { useWide } from "../hooks/useWide.ts";
import { AppShell } from "../shell/AppShell.tsx";
import { SECTIONS, type Section } from "./sections.ts";

/** The settings: the list of sections, and one of them; on a phone one after the other. */
export function SettingsPage({ part }: { part: string | undefined }) {
  const wide = useWide();
  const asked = SECTIONS.find(({ id }) => id === part);
  const shown = asked ?? (wide ? SECTIONS[0] : undefined);
  return (
    <AppShell title={t("place.settings")} note="" chat={chat.value}>
      <main class="settings">
        {(wide || !shown) && <SectionList shown={shown} />}
        {shown && (
          <section key={shown.id} class="setting" aria-labelledby="setting-name">
            {!wide && (
              <Link className="setting-back" to={{ page: "settings" }}>
                <Icon path={LATER_ICONS.back} />
                {t("set.all")}
              </Link>
            )}
            <h2 id="setting-name">{t(shown.name)}</h2>
            <shown.View />
          </section>
        )}
      </main>
    </AppShell>
  );
}

function SectionList({ shown }: { shown: Section | undefined }) {
  const user = visibleName(identity.value?.user ?? "");
  return (
    <nav class="setting-list" aria-label={t("set.list")}>
      <ul>
        {SECTIONS.map((section) => (
          <li key={section.id}>
            <Link
              className="setting-row"
              to={{ page: "settings", part: section.id }}
              current={section === shown}
            >
              <Icon path={LATER_ICONS[section.icon]} />
              <span class="setting-row-words">
                {t(section.name)}
                <span class="quiet">{t(section.lead)}</span>
              </span>
              <Icon name="chevron" />
            </Link>
          </li>
        ))}
      </ul>
      <div class="setting-leave">
        <p class="quiet">{t("set.user", { user })}</p>
        <Button onClick={() => void leave()}>{t("menu.logout")}</Button>
      </div>
    </nav>
  );
}
