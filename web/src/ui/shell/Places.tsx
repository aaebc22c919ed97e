import "../../core/words.later.ts";
import { t, type Word } from "../../core/i18n.ts";
import { chat } from "../../state/chat.ts";
import { openRequests } from "../../state/open_requests.ts";
import { type Route, route } from "../../state/router.ts";
import { Icon } from "../base/Icon.tsx";
import { LATER_ICONS } from "../base/icons.later.ts";
import { Link } from "../base/Link.tsx";

interface Place {
  icon: keyof typeof LATER_ICONS;
  word: Word;
  to: () => Route;
}

/** The chat that is open, or a new one. */
const CHAT: Place = {
  icon: "chat",
  word: "place.chat",
  to: () => (chat.value ? { page: "chat", session: chat.value.session } : { page: "new" }),
};
const BESIDE: Place[] = [
  { icon: "sliders", word: "place.settings", to: () => ({ page: "settings" }) },
];

/** The ways to the pages: tabs below on a phone, links in the sidebar where the list of chats is. */
export function Places({ wide = false }: { wide?: boolean }) {
  return (
    <nav class={wide ? "places" : "tabs"} aria-label={t("place.label")}>
      {(wide ? BESIDE : [CHAT, ...BESIDE]).map((place) => (
        <Way key={place.word} place={place} waiting={place === CHAT ? openRequests.value : 0} />
      ))}
    </nav>
  );
}

function Way({ place, waiting }: { place: Place; waiting: number }) {
  const to = place.to();
  const here = route.value.page;
  const isHere = to.page === here || (place === CHAT && (here === "chat" || here === "new"));
  return (
    <Link className="place" to={to} current={isHere}>
      <Icon path={LATER_ICONS[place.icon]} />
      {t(place.word)}
      {waiting > 0 && (
        <span class="count">
          {waiting}
          <span class="visually-hidden"> {t("place.waiting")}</span>
        </span>
      )}
    </Link>
  );
}
