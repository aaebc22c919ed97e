/** What is being typed at the caret that can be completed. */

/** A command behind `/`, or a path behind `@`. */
export interface Token {
  readonly kind: "command" | "path";
  /** What is typed behind the sign so far. */
  readonly word: string;
  /** Where the sign stands, and where the word ends, in UTF-16 units. */
  readonly from: number;
  readonly to: number;
}

const COMMAND = /^\/([\w-]*)$/;
const PATH = /(?:^|\s)@("?)([^\s"]*)$/;

/** The token that ends at the caret; nothing in most moments. */
export function tokenAt(text: string, caret: number): Token | null {
  const before = text.slice(0, caret);
  const command = COMMAND.exec(before);
  if (command) return { kind: "command", word: command[1] ?? "", from: 0, to: caret };
  const path = PATH.exec(before);
  if (!path) return null;
  const [, quote = "", word = ""] = path;
  return { kind: "path", word, from: caret - word.length - quote.length - 1, to: caret };
}

/**
 * The text with a choice in the token's place, and where the caret stands then.
 *
 * A folder stays open for more; a path that a mention would break off is put in quotes.
 */
export function complete(text: string, token: Token, choice: string): [string, number] {
  const sign = token.kind === "command" ? "/" : "@";
  const isOpen = choice.endsWith("/");
  const isOdd = token.kind === "path" && /[\s'`<>|*?,;()[\]{}]/.test(choice);
  const end = isOpen ? "" : " ";
  const written = isOdd ? `${sign}"${choice}${isOpen ? "" : '" '}` : `${sign}${choice}${end}`;
  const rest = text.slice(token.to);
  const gap = end && rest.startsWith(" ") ? rest.slice(1) : rest;
  return [text.slice(0, token.from) + written + gap, token.from + written.length];
}

/** A whole text that asks for a command: its name, and what stands behind it. */
export function readSlash(text: string): { name: string; words: string } | null {
  const found = /^\/([a-z0-9_][a-z0-9_-]{0,63})(?:\s+([\s\S]*))?$/.exec(text.trim());
  return found ? { name: found[1] ?? "", words: found[2] ?? "" } : null;
}
