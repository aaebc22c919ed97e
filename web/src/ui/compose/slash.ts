/** Commands behind `/`: those that this page carries out, each by its operation. */

import "../../core/words.code.ts";
import { t } from "../../core/i18n.ts";
import { readSlash } from "../../core/token.ts";
import { ApiFault, call } from "../../platform/api.ts";
import type { CommandInfo } from "../../protocol/types.gen.ts";
import type { Chat } from "../../state/chat.ts";
import { deliver, newKey } from "../../state/outbox.ts";
import { go } from "../../state/router.ts";
import { putSession } from "../../state/sessions.ts";
import { chipsOpen } from "../dock/chips_open.ts";

type Carry = (chat: Chat, name: string, words: string) => Promise<void>;

const CARRIED: Record<string, Carry> = {
  create_session: async () => go({ page: "new" }),
  fork_session: async ({ session }) => {
    const made = await deliver("fork_session", { path: { session }, key: newKey(), body: {} });
    putSession(made);
    go({ page: "chat", session: made.id });
  },
  compact_session: async ({ session }) => {
    await deliver("compact_session", { path: { session }, key: newKey() });
  },
  get_usage: async () => {
    chipsOpen.value = true;
  },
  update_session: async ({ session }, name, words) => {
    if (words === "" || (name !== "model" && name !== "mode")) chipsOpen.value = true;
    else {
      const body = { [name]: words };
      await deliver("update_session", { path: { session }, key: newKey(), body });
    }
  },
  run_command: async (chat, command, words) => {
    const path = { session: chat.session, command };
    const body = { arguments: words, when: "auto" };
    await deliver("run_command", { path, key: newKey(), body });
    chat.sentCount.value += 1;
  },
};

/** Whether this page carries a command out. */
export function isCarried({ operation }: CommandInfo): boolean {
  return Object.hasOwn(CARRIED, operation ?? "");
}

/** The commands of a session. */
export async function readCommands(session: string): Promise<readonly CommandInfo[]> {
  return (await call("list_commands", { path: { session } })).commands;
}

/**
 * Does what a text beginning with `/` asks for; tells what was wrong when it was not done.
 *
 * @returns nothing when it was done
 */
export async function runSlash(chat: Chat, text: string): Promise<string | null> {
  const asked = readSlash(text);
  if (!asked) return null;
  const name = `/${asked.name}`;
  try {
    const found = (await readCommands(chat.session)).find((one) => one.name === asked.name);
    if (!found) return t("palette.unknown", { name });
    const carry = CARRIED[found.operation ?? ""];
    if (!carry) return t("palette.later", { name });
    await carry(chat, asked.name, asked.words);
    return null;
  } catch (error) {
    if (!(error instanceof ApiFault)) throw error;
    return error.message;
  }
}
