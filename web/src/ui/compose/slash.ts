/** Commands behind `/`: those that this page carries out, each by its operation. */

import "../../core/words.code.ts";
import { t } from "../../core/i18n.ts";
import { readSlash } from "../../core/token.ts";
import { ApiFault, call } from "../../platform/api.ts";
import type { CommandInfo } from "../../protocol/types.gen.ts";
import type { Chat } from "../../state/chat.ts";
import { deliver, newKey, wish } from "../../state/outbox.ts";
import { go } from "../../state/router.ts";
import { putSession } from "../../state/sessions.ts";
import { inFolder, start } from "../../state/start.ts";
import { chipsOpen } from "../dock/chips_open.ts";

type Carry = (chat: Chat, name: string, words: string) => Promise<void>;

/** What can be done before there is a session. */
const CARRIED_NEW: Record<string, (name: string, words: string) => Promise<void> | void> = {
  create_session: () => undefined,
  update_session: (name, words) => {
    if (words === "" || (name !== "model" && name !== "mode")) chipsOpen.value = true;
    else wish.value = { ...wish.value, [name]: words };
  },
  run_command: async (command, words) => {
    const made = await deliver("create_session", { key: newKey(), body: wish.peek() });
    putSession(made);
    go({ page: "chat", session: made.id });
    await runCommand(made.id, command, words);
  },
};

async function runCommand(session: string, command: string, words: string): Promise<void> {
  const body = { arguments: words, when: "auto" };
  await deliver("run_command", { path: { session, command }, key: newKey(), body });
}

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
    await runCommand(chat.session, command, words);
    chat.sentCount.value += 1;
  },
};

/** The commands of a session, or of one that is yet to begin, which this page carries out. */
export async function findCarried(session: string | null): Promise<readonly CommandInfo[]> {
  const known = session === null ? CARRIED_NEW : CARRIED;
  return (await readCommands(session)).filter(({ operation }) =>
    Object.hasOwn(known, operation ?? ""),
  );
}

async function readCommands(session: string | null): Promise<readonly CommandInfo[]> {
  if (session !== null) return (await call("list_commands", { path: { session } })).commands;
  return (start.peek() ?? (await call("get_start", { query: inFolder() }))).commands;
}

/**
 * Does what a text beginning with `/` asks for; tells what was wrong when it was not done.
 *
 * @returns nothing when it was done
 */
export async function runSlash(chat: Chat | null, text: string): Promise<string | null> {
  const asked = readSlash(text);
  if (!asked) return null;
  const name = `/${asked.name}`;
  try {
    const found = (await readCommands(chat?.session ?? null)).find(
      (one) => one.name === asked.name,
    );
    if (!found) return t("palette.unknown", { name });
    const operation = found.operation ?? "";
    const carry = chat ? CARRIED[operation]?.bind(null, chat) : CARRIED_NEW[operation];
    if (!carry) return t(chat ? "palette.later" : "palette.none", { name });
    await carry(asked.name, asked.words);
    return null;
  } catch (error) {
    if (!(error instanceof ApiFault)) throw error;
    return error.message;
  }
}
