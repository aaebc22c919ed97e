/** English for the settings that are about devices. */

import { addWords } from "./i18n.ts";
import "./words.later.ts";

export const EN_DEVICE = {
  "offline.title": "Offline copies",
  "offline.keep": "Keep copies on this device",
  "offline.lead":
    "The last {sessions} chats, {messages} messages each, to read offline. Signing out deletes them.",
  "offline.insecure": "Over plain HTTP no page opens without its server.",
  "install.title": "Home screen",
  "install.lead": "It opens as an app of its own, and can tell you when the agent needs you.",
  "install.installed": "It runs as an app on this device.",
  "install.menu": "See your browser’s menu: “Install” or “Add to Home Screen”.",
  "install.insecure": "Browsers install only what comes over HTTPS: see “On a phone” in the docs.",
  "install.ios.share": "Tap the share sign in the browser’s bar.",
  "install.ios.add": "Choose “Add to Home Screen”, then “Add”.",
  "install.ios.open": "Open towline from the home screen and sign in there once more.",
  "install.ios.untested":
    "Notifications on an iPhone or iPad work only when it was opened from there.",
  "awake.title": "Screen",
  "awake.keep": "Keep the screen on while the agent works",
  "awake.lead": "Only while this page is in front, and only as long as a turn runs.",
  "awake.cannot": "This browser cannot keep the screen on here.",
  "devices.lead": "What is signed in as you. What you sign out is out at once.",
  "devices.pair": "Pair a device",
  "devices.pair.lead": "Point the other device’s camera at this, or type the code there.",
  "devices.pair.here":
    "This server can be reached on its own machine alone: see “On a phone” in the docs.",
  "devices.pair.qr": "The link as a picture for a camera",
  "devices.pair.left": "Works once, for {time} more",
  "devices.pair.copy": "Copy the link",
  "devices.pair.warn": "Whoever opens it is signed in as you.",
  "devices.pair.over": "That code has run out.",
  "devices.pair.again": "Make a new one",
  "devices.pair.failed": "No code could be made: {message}",
  "devices.none": "Nothing is paired yet.",
  "devices.failed": "The list could not be loaded: {message}",
  "devices.current": "This device",
  "devices.used": "used {when}",
  "devices.until": "until {when}",
  "devices.endless": "until you sign it out",
  "devices.kind.device": "Paired device",
  "devices.kind.login": "Password",
  "devices.kind.program": "Program",
  "devices.revoke": "Sign out",
  "devices.revoke.sure": "Sign it out",
  "devices.sure": "Sign “{name}” out?",
  "devices.keep": "Keep",
} as const;

addWords("device", EN_DEVICE);
