/** English for the notifications. */

import { addWords } from "./i18n.ts";

export const EN_PUSH = {
  "push.loading": "Looking…",
  "push.unsupported": "This browser has no notifications for pages.",
  "push.install":
    "On an iPhone or iPad, add this page to the Home Screen first: tap Share, “Add to Home Screen”, and open it there.",
  "push.insecure":
    "This page came over plain HTTP, and browsers allow no notifications there. Open it over HTTPS.",
  "push.blocked":
    "Notifications are blocked here. Allow them in the browser's settings for this site, then reload.",
  "push.off": "Notifications are off on this device.",
  "push.on": "Notifications are on for this device.",
  "push.lead":
    "You are called when the agent needs you, cannot go on, or is done after 30 seconds, and none of your devices shows this page. Message text is sent only if the server's settings say so.",
  "push.enable": "Turn on",
  "push.disable": "Turn off",
  "push.test": "Send a test",
  "push.busy": "One moment…",
  "push.no_worker": "This page is not ready for it yet. Reload it, then try again.",
  "push.refused": "The browser gave no subscription. Try again later.",
  "push.failed": "That did not work: {message}",
  "push.delivered": "Last message: delivered, {when}.",
  "push.not_delivered": "Last message: not delivered, {when}. {message}",
  "push.gone": "The push service knows this device no more. Turn notifications on again.",
} as const;

addWords("push", EN_PUSH);
