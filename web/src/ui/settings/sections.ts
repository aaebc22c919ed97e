import type { Word } from "../../core/i18n.ts";
import type { LATER_ICONS } from "../base/icons.later.ts";
import { type LazyComponent, lazy } from "../base/lazy.tsx";

/** One section of the settings: its words, and a file of its own that is fetched when it is opened. */
export interface Section {
  /** Its part of the address: `#/settings/ID`. */
  id: string;
  icon: keyof typeof LATER_ICONS;
  name: Word;
  /** What is in it, in one line. */
  lead: Word;
  View: LazyComponent<object>;
}

/** In the order of the list. */
export const SECTIONS: readonly Section[] = [
  {
    id: "models",
    icon: "key",
    name: "set.models",
    lead: "set.models.lead",
    View: lazy(async () => (await import("./ModelsSection.tsx")).ModelsSection),
  },
  {
    id: "usage",
    icon: "bars",
    name: "set.usage",
    lead: "set.usage.lead",
    View: lazy(async () => (await import("./UsageSection.tsx")).UsageSection),
  },
  {
    id: "look",
    icon: "look",
    name: "set.look",
    lead: "set.look.lead",
    View: lazy(async () => (await import("./LookSection.tsx")).LookSection),
  },
  {
    id: "notifications",
    icon: "bell",
    name: "set.push",
    lead: "set.push.lead",
    View: lazy(async () => (await import("./NotificationsSection.tsx")).NotificationsSection),
  },
  {
    id: "devices",
    icon: "device",
    name: "set.devices",
    lead: "set.devices.lead",
    View: lazy(async () => (await import("./DevicesSection.tsx")).DevicesSection),
  },
  {
    id: "device",
    icon: "download",
    name: "set.device",
    lead: "set.device.lead",
    View: lazy(async () => (await import("./OfflineSection.tsx")).OfflineSection),
  },
  {
    id: "account",
    icon: "shield",
    name: "set.account",
    lead: "set.account.lead",
    View: lazy(async () => (await import("./AccountSection.tsx")).AccountSection),
  },
  {
    id: "about",
    icon: "info",
    name: "set.about",
    lead: "set.about.lead",
    View: lazy(async () => (await import("./AboutSection.tsx")).AboutSection),
  },
];
