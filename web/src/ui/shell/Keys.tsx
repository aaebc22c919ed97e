import "../../core/words.code.ts";
import { useEffect } from "preact/hooks";
import { t, type Word } from "../../core/i18n.ts";
import { chat } from "../../state/chat.ts";
import { refreshSessions } from "../../state/sessions.ts";
import { Sheet } from "../base/Sheet.tsx";
import { SessionSheet } from "../sessions/SessionSheet.tsx";
import { drawer, keysShown, sessionAsked } from "./drawer.ts";

/** A second press of Escape counts for so long, in milliseconds. */
const AGAIN_MS = 2_000;

const HELP: readonly [keys: string, what: Word][] = [
  ["Ctrl K", "sessions.title"],
  ["Ctrl Enter", "compose.send"],
  ["Esc Esc", "compose.stop"],
  ["↑", "keys.edit"],
  ["/ @", "palette.label"],
  ["1 2 3", "keys.answer"],
  ["?", "keys.title"],
];

/** What keys do wherever the focus is, the help on all of them, and what is done with a session. */
export function Keys() {
  useEffect(() => {
    addEventListener("keydown", act);
    return () => removeEventListener("keydown", act);
  }, []);
  const row = sessionAsked.value;
  if (row) {
    return (
      <SessionSheet
        key={row.id}
        row={row}
        onClose={() => {
          sessionAsked.value = null;
        }}
      />
    );
  }
  if (!keysShown.value) return null;
  return (
    <Sheet
      title={t("keys.title")}
      onClose={() => {
        keysShown.value = false;
      }}
    >
      <dl class="keys">
        {HELP.map(([keys, what]) => (
          <div key={what}>
            <dt>
              <kbd>{keys}</kbd>
            </dt>
            <dd>{t(what)}</dd>
          </div>
        ))}
      </dl>
    </Sheet>
  );
}

function act(event: KeyboardEvent): void {
  const { key, ctrlKey, metaKey, altKey, defaultPrevented, isComposing, target } = event;
  if (defaultPrevented || isComposing || altKey) return;
  if (key === "k" && (ctrlKey || metaKey)) {
    event.preventDefault();
    void showSessions();
    return;
  }
  // What lies above the page has the keys.
  if (ctrlKey || metaKey || document.querySelector("dialog[open], :popover-open")) return;
  if (key === "Escape") pressEscape();
  if (key === "?" && !(target instanceof Element && target.matches("input, textarea, select"))) {
    event.preventDefault();
    keysShown.value = true;
  }
}

/** The search of the list, which may have to be opened first. */
async function showSessions(): Promise<void> {
  const field = (): HTMLElement | null => document.getElementById("session-search");
  if (!field()) {
    drawer.value = true;
    void refreshSessions();
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  field()?.focus();
}

/** The first press says what the second one does. */
function pressEscape(): void {
  const open = chat.peek();
  if (!open?.turn.peek()) return;
  if (open.escaped.peek()) void open.interrupt();
  open.escaped.value = !open.escaped.peek();
  setTimeout(() => {
    open.escaped.value = false;
  }, AGAIN_MS);
}
