/** The words and icons of a tool card. */

import { localeNow, t, tMaybe } from "../../core/i18n.ts";
import { formatClock } from "../../core/time.ts";
import { visible } from "../../core/visible.ts";
import type { CallView, Decision, ResultBlock } from "../../protocol/types.gen.ts";
import type { IconName } from "../base/icons.ts";

/** Characters of a call's text that a card shows before it is asked for all. */
export const FOLD_UNITS = 6_000;

/** The icon for what a tool does to the world. */
export function effectIcon(effect: string): IconName {
  const icons: Record<string, IconName> = {
    read: "file",
    write: "pencil",
    exec: "terminal",
    network: "globe",
  };
  return icons[effect] ?? "wrench";
}

/** A call's status in words; a word that is not known stands for itself. */
export function statusText(call: CallView): string {
  return tMaybe(`call.${call.status}`) ?? visible(call.status);
}

/** Whether the call came to nothing good. */
export function isBad(call: CallView): boolean {
  return call.is_error || ["failed", "denied", "unknown"].includes(call.status);
}

/** The text of a result; what is no text is named. */
export function resultText(content: readonly ResultBlock[]): string {
  return content
    .filter((block) => block.type !== "image" || !block.file)
    .map((block) => {
      if (block.type === "text") return block.text;
      if (block.type === "file") return `[${block.name}]`;
      return block.type === "image" ? `[${t("chat.picture")}]` : JSON.stringify(block.raw, null, 2);
    })
    .join("\n");
}

/** What a call printed or answered: the tail of it while it runs. */
export function outputOf(call: CallView): string {
  if (call.output) return call.output;
  const command = call.artifacts.find((artifact) => artifact.kind === "command");
  const printed = command?.kind === "command" ? command.output : undefined;
  return printed || resultText(call.content);
}

/** The one line that says most about where a call is: its progress, its last output, its error. */
export function glance(call: CallView): string {
  if (call.status === "in_progress") return call.progress ?? lastLine(call.output);
  if (call.decision && (call.status === "denied" || !isBad(call))) return receiptOf(call.decision);
  return isBad(call) ? (resultText(call.content).trim().split("\n", 1)[0] ?? "") : "";
}

/** Who decided about a call, and when. */
export function receiptOf({ by, option, note, time }: Decision): string {
  const word = option === "deny" ? "tool.refused" : "tool.allowed";
  const gaps = {
    by: tMaybe(`tool.by.${by}`) ?? visible(by),
    time: formatClock(time, localeNow()),
  };
  return t(word, gaps) + (note ? ` · ${visible(note)}` : "");
}

function lastLine(text: string): string {
  return text.trimEnd().split("\n").at(-1)?.trim() ?? "";
}

/** Arguments as indented JSON; text that is no JSON stays as the model wrote it. */
export function prettyArguments(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
