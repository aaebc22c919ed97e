import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { t } from "../../core/i18n.ts";
import { visible } from "../../core/visible.ts";
import type { Chat } from "../../state/chat.ts";
import { drafts, outbox, sendText } from "../../state/outbox.ts";
import { IconButton } from "../base/Button.tsx";
import { Icon } from "../base/Icon.tsx";
import { lazy } from "../base/lazy.tsx";
import type { Tools } from "../compose/ComposerTools.tsx";
import { isCoarse, useComposerKeys } from "../hooks/useComposerKeys.ts";
import { editing } from "./editing.ts";

/** Files, commands and paths: there before anybody has typed a word. */
export const ComposerTools = lazy(
  async () => (await import("../compose/ComposerTools.tsx")).ComposerTools,
  true,
);

/** The other ways of a prompt while a turn runs. */
export const QueueMenu = lazy(async () => (await import("../compose/QueueMenu.tsx")).QueueMenu);

/** A draft is kept when typing pauses for this long, in milliseconds. */
const KEEP_MS = 300;

interface ComposerProps {
  session: string | null;
  /** The session's chat; nothing for one that is yet to begin. */
  chat: Chat | null;
}

/** Where a person writes. */
export function Composer({ session, chat }: ComposerProps) {
  const { text, field, type, clear, turn, giveUp } = useDraft(session);
  const working = chat !== null && chat.turn.value !== null;
  const closed = chat !== null && chat.parts.closed !== null;
  const tools = useRef<Tools | null>(null);
  const [files, setFiles] = useState(0);
  const isEmpty = text.trim() === "" && files === 0;

  const send = (when?: "steer"): void => {
    if (isEmpty || closed) return;
    const words = text.trim();
    if (chat) chat.complaint.value = null;
    if (!turn && tools.current?.slash(words)) {
      clear();
      return;
    }
    const blocks = tools.current ? tools.current.take() : [];
    if (!blocks) return;
    drafts.write(session, words);
    sendText(session, words, blocks, { turn, when });
    if (chat) chat.sentCount.value += 1;
    clear();
  };
  const keys = useComposerKeys(
    () => send(),
    (event) => tools.current?.key(event),
  );
  if (closed) return <p class="composer-closed">{t("compose.closed")}</p>;
  return (
    <form
      class="composer"
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      {chat?.complaint.value && (
        <p class="complaint" role="alert">
          {visible(chat.complaint.value)}
        </p>
      )}
      {turn && (
        <p class="composer-note">
          {t("compose.editing")}
          <button type="button" class="link-button" onClick={giveUp}>
            {t("compose.cancel")}
          </button>
        </p>
      )}
      <div class="composer-row">
        <ComposerTools
          session={session}
          chat={chat}
          text={text}
          field={field}
          handle={tools}
          onText={type}
          onCount={setFiles}
        />
        <textarea
          ref={field}
          id="composer"
          rows={1}
          value={text}
          aria-label={t("compose.label")}
          placeholder={t(working ? "compose.placeholder.more" : "compose.placeholder")}
          enterkeyhint={isCoarse() ? "enter" : "send"}
          onInput={(event) => {
            type(event.currentTarget.value);
            if (chat) chat.complaint.value = null;
          }}
          {...keys}
        />
        {working && isEmpty && <StopButton chat={chat} />}
        {working && !isEmpty && <QueueMenu chat={chat} onSteer={() => send("steer")} />}
        {(!working || !isEmpty) && (
          <button
            class="send"
            type="submit"
            disabled={isEmpty}
            aria-label={t(working ? "compose.queue" : "compose.send")}
            title={t(working ? "compose.queue" : "compose.send")}
          >
            <Icon name="arrow_up" />
          </button>
        )}
      </div>
    </form>
  );
}

function StopButton({ chat }: { chat: Chat }) {
  const isStopping = chat.stopping.value !== null;
  return (
    <IconButton
      icon="stop"
      className="stop"
      label={t(isStopping ? "turn.stopping" : "compose.stop")}
      disabled={isStopping}
      onClick={() => void chat.interrupt()}
    />
  );
}

/** The text of a session's composer, kept over reloads and switches. */
function useDraft(session: string | null) {
  const field = useRef<HTMLTextAreaElement>(null);
  const [text, setText] = useState(() => unsentDraft(session));
  const edit = editing.value;
  const [turn, setTurn] = useState<string | undefined>(undefined);
  const [aside, setAside] = useState("");

  useEffect(() => {
    if (edit?.session !== session || !edit) return;
    editing.value = null;
    if (edit.turn) setAside(text);
    setTurn(edit.turn);
    setText((now) => (now.trim() && !edit.turn ? `${edit.text}\n\n${now}` : edit.text));
    field.current?.focus();
  }, [edit, session]);
  useEffect(() => {
    if (text === "") return;
    const timer = setTimeout(() => drafts.write(session, text), KEEP_MS);
    return () => clearTimeout(timer);
  }, [session, text]);
  // What the field holds now: an effect runs after the next frame, and a page may be gone by then.
  const latest = useRef("");
  latest.current = text;
  useEffect(() => {
    const keep = (): void => {
      if (latest.current) drafts.write(session, latest.current);
    };
    const leave = ["pagehide", "visibilitychange"];
    for (const event of leave) addEventListener(event, keep, true);
    return () => {
      for (const event of leave) removeEventListener(event, keep, true);
      // Who goes elsewhere has paused, however soon.
      keep();
    };
  }, [session]);
  useLayoutEffect(() => {
    const element = field.current;
    if (!element) return;
    element.style.height = "auto";
    // The height of nothing is known, and to ask costs a layout of the page.
    if (text !== "") element.style.height = `${element.scrollHeight}px`;
  }, [text]);
  useEffect(() => {
    if (!isCoarse()) field.current?.focus({ preventScroll: true });
  }, [session]);

  return {
    text,
    field,
    /** The turn whose prompt is written anew. */
    turn,
    /** Leaves that prompt as it is; what was being written before comes back. */
    giveUp: () => {
      latest.current = aside;
      setTurn(undefined);
      setText(aside);
      drafts.write(session, aside);
    },
    type: (next: string) => {
      latest.current = next;
      setText(next);
      if (next === "") drafts.write(session, "");
    },
    /** Empties the field; the draft stays until the server has taken what was sent. */
    clear: () => {
      latest.current = "";
      setTurn(undefined);
      setText("");
    },
  };
}

/** The kept draft, unless it is on its way already. */
function unsentDraft(session: string | null): string {
  const draft = drafts.read(session);
  const sent = outbox.peek().some((entry) => entry.session === session && entry.text === draft);
  return sent ? "" : draft;
}
