/** English for the settings. */

import { addWords } from "./i18n.ts";
import "./words.later.ts";

export const EN_SETTINGS = {
  "set.all": "All settings",
  "set.list": "Sections",
  "set.user": "Signed in as {user}.",
  "set.look": "Look and typing",
  "set.look.lead": "Theme, text size, language, Enter key",
  "set.push": "Notifications",
  "set.push.lead": "When the agent needs you and you look elsewhere",
} as const;

addWords(EN_SETTINGS);
