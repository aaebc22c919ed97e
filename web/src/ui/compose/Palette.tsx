import "../../core/words.code.ts";
import type { RefObject } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { t } from "../../core/i18n.ts";
import { complete, type Token, tokenAt } from "../../core/token.ts";
import { visible } from "../../core/visible.ts";
import { ApiFault, call } from "../../platform/api.ts";
import { inFolder } from "../../state/start.ts";
import { findCarried } from "./slash.ts";

/** Choices that are shown at once. */
const MOST = 8;
/** Typing must pause for this long before the server is asked, in milliseconds. */
const PAUSE_MS = 120;

interface Choice {
  /** What is put in the token's place, without its sign. */
  readonly name: string;
  /** What it does. */
  readonly about: string;
}

/** What a list of suggestions shows, and what a key does with it. */
export interface PaletteState {
  readonly token: Token | null;
  readonly choices: readonly Choice[] | null;
  readonly chosen: number;
  pick: (choice: Choice) => void;
  key: (event: KeyboardEvent) => boolean;
}

interface PaletteProps {
  session: string | null;
  text: string;
  field: RefObject<HTMLTextAreaElement | null>;
  onText: (text: string) => void;
}

/** Follows what is typed, and finds what may be meant. */
export function usePalette({ session, text, field, onText }: PaletteProps): PaletteState {
  const caret = useCaret(field, text);
  const [closedAt, setClosedAt] = useState("");
  const [chosen, setChosen] = useState(0);
  const typed = tokenAt(text, caret);
  const name = typed ? `${typed.kind} ${typed.from} ${typed.word}` : "";
  const token = name !== "" && name !== closedAt ? typed : null;
  const choices = useChoices(session, token);
  useEffect(() => setChosen(0), [choices]);

  const pick = (choice: Choice): void => {
    if (!token) return;
    const [next, place] = complete(text, token, choice.name);
    onText(next);
    requestAnimationFrame(() => {
      field.current?.focus();
      field.current?.setSelectionRange(place, place);
    });
  };
  const act = (event: KeyboardEvent): boolean => {
    const wish = wishOf(event);
    const choice = choices?.[chosen];
    if (wish === "close") setClosedAt(name);
    else if (!choice || wish === null) return false;
    else if (wish !== "pick") setChosen((chosen + wish + choices.length) % choices.length);
    // What is typed out already is sent, not picked.
    else if (choice.name === token?.word) return false;
    else pick(choice);
    return true;
  };
  const key = (event: KeyboardEvent): boolean => {
    const taken = token !== null && !event.isComposing && act(event);
    if (taken) event.preventDefault();
    return taken;
  };
  return { token, choices, chosen, pick, key };
}

/** What a key asks of the list: to move by so many, to pick, to close. */
function wishOf({
  key,
  shiftKey,
  ctrlKey,
  metaKey,
}: KeyboardEvent): number | "pick" | "close" | null {
  if (shiftKey || ctrlKey || metaKey) return null;
  const wishes = {
    ArrowDown: 1,
    ArrowUp: -1,
    Tab: "pick",
    Enter: "pick",
    Escape: "close",
  } as const;
  return wishes[key as keyof typeof wishes] ?? null;
}

/** Where the caret stands, now and after each move. */
function useCaret(field: RefObject<HTMLTextAreaElement | null>, text: string): number {
  const [caret, setCaret] = useState(0);
  useEffect(() => {
    const look = (): void => setCaret(field.current?.selectionStart ?? 0);
    look();
    document.addEventListener("selectionchange", look);
    return () => document.removeEventListener("selectionchange", look);
  }, [field, text]);
  return caret;
}

/** What fits a token; nothing until an answer came. */
function useChoices(session: string | null, token: Token | null): readonly Choice[] | null {
  const [choices, setChoices] = useState<readonly Choice[] | null>(null);
  const commands = useRef<Promise<readonly Choice[]> | null>(null);
  const kind = token?.kind;
  const word = token?.word ?? "";
  useEffect(() => {
    setChoices(null);
    if (!kind) return;
    const asking = new AbortController();
    const ask = async (): Promise<readonly Choice[]> => {
      if (kind === "path") return findPaths(session, word, asking.signal);
      // Another folder has other commands.
      if (session === null) commands.current = null;
      commands.current ??= findCommands(session);
      return (await commands.current).filter(({ name }) => name.startsWith(word));
    };
    const timer = setTimeout(() => {
      ask().then(
        (found) => asking.signal.aborted || setChoices(found.slice(0, MOST)),
        (error: unknown) => {
          commands.current = null;
          // A list that does not come is no fault: what is typed can be sent as it is.
          if (!(error instanceof ApiFault || error instanceof DOMException)) throw error;
        },
      );
    }, PAUSE_MS);
    return () => {
      clearTimeout(timer);
      asking.abort();
    };
  }, [session, kind, word]);
  return choices;
}

async function findCommands(session: string | null): Promise<readonly Choice[]> {
  return (await findCarried(session)).map(({ name, about }) => ({ name, about }));
}

async function findPaths(
  session: string | null,
  prefix: string,
  signal: AbortSignal,
): Promise<readonly Choice[]> {
  const query = { prefix, limit: MOST };
  const { paths } =
    session === null
      ? await call("list_start_paths", { query: { ...query, ...inFolder() }, signal })
      : await call("list_paths", { path: { session }, query, signal });
  return paths.map((name) => ({ name, about: "" }));
}

/** The list above the field. */
export function Palette({ palette: { token, choices, chosen, pick } }: { palette: PaletteState }) {
  if (!token || choices === null) return null;
  const sign = token.kind === "command" ? "/" : "@";
  return (
    <div class="palette">
      {choices.length === 0 ? (
        <p class="quiet">{t("palette.none")}</p>
      ) : (
        <ul aria-label={t("palette.label")}>
          {choices.map((choice, place) => (
            <li key={choice.name}>
              <button
                type="button"
                class="palette-choice"
                aria-current={place === chosen}
                tabIndex={-1} // the focus stays in the field, which hears the keys
                onPointerDown={(event) => event.preventDefault()}
                onClick={() => pick(choice)}
              >
                <span class="palette-name">{`${sign}${visible(choice.name)}`}</span>
                {choice.about && <span class="quiet">{visible(choice.about)}</span>}
              </button>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}
