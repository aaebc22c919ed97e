import { Fragment } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { localeNow, t } from "../../core/i18n.ts";
import { dayOf, formatDay } from "../../core/time.ts";
import { copyText } from "../../platform/clipboard.ts";
import type { MessageView, OpenMessage } from "../../protocol/types.gen.ts";
import type { Chat } from "../../state/chat.ts";
import { outbox } from "../../state/outbox.ts";
import { readSetting } from "../../state/settings.ts";
import { Button } from "../base/Button.tsx";
import { Icon } from "../base/Icon.tsx";
import { lazy } from "../base/lazy.tsx";
import { usePin } from "../hooks/usePin.ts";
import { Entry, type EntryProps } from "./Message.tsx";

/** What is on its way: nothing in most moments. */
export const Pending = lazy(async () => (await import("./Pending.tsx")).Pending);

/** What a running turn does. */
export const WorkingLine = lazy(async () => (await import("./WorkingLine.tsx")).WorkingLine);

/** Entries that are rendered; older ones come with a tap. */
const WINDOW = 60;

type Row = Omit<EntryProps, "chat"> & { key: string };

function rowOf(message: MessageView, next: MessageView | undefined, busy: boolean): Row {
  const { seq, id, role, content, time, cut, mark, turn, undone } = message;
  const goesOn = next ? next.turn === turn && next.role === "assistant" : busy;
  return {
    key: id ?? `seq-${seq}`,
    id: id ?? "",
    role,
    turn,
    content,
    time,
    cut,
    mark,
    undone,
    open: false,
    last: !goesOn,
  };
}

function openRow(message: OpenMessage): Row {
  const { id, content, time } = message;
  const fixed = {
    role: "assistant",
    turn: null,
    cut: null,
    mark: null,
    undone: false,
    open: true,
    last: false,
  };
  return { key: id, id, content, time, ...fixed };
}

/** The conversation: what is finished, what is being written, what is on its way. */
export function MessageList({ chat }: { chat: Chat }) {
  const messages = chat.messages.value;
  const opened = chat.openMessages.value;
  const [shown, setShown] = useState(WINDOW);
  const { scroller, column, pinned, toEnd } = usePin(
    chat.session,
    () => !chat.turn.peek() || readSetting("follow") !== "off",
  );
  const keepFrom = useRef<number | null>(null);

  const busy = chat.turn.value !== null;
  const finished = messages.slice(-shown);
  const rows = [
    ...finished.map((message, place) => rowOf(message, finished[place + 1], busy)),
    ...opened.map(openRow),
  ];
  const hidden = messages.length - finished.length;

  const showOlder = (): void => {
    keepFrom.current = scroller.current?.scrollHeight ?? null;
    setShown(shown + WINDOW);
  };
  // What came in above must not move what is being read.
  useLayoutEffect(() => {
    const element = scroller.current;
    if (element && keepFrom.current !== null) {
      element.scrollTop += element.scrollHeight - keepFrom.current;
    }
    keepFrom.current = null;
  }, [shown]);
  useFollowOwn(chat, toEnd);

  return (
    <div class="log-frame">
      {/* biome-ignore lint/a11y/useKeyWithClickEvents: it hears clicks of the buttons inside, keys included */}
      <div
        ref={scroller}
        class={pinned ? "log pinned" : "log"}
        role="log"
        aria-live="off"
        aria-label={t("chat.log")}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must take the keys
        tabIndex={0}
        onClick={copyFromBlock}
      >
        <div ref={column} class="column">
          {hidden > 0 && <Button onClick={showOlder}>{t("chat.older")}</Button>}
          {hidden === 0 && chat.current.value.older && <p class="mark">{t("chat.older.kept")}</p>}
          {rows.map(({ key, ...row }, place) => (
            <Fragment key={key}>
              <DayLine time={row.time} before={rows[place - 1]?.time} />
              <Entry chat={chat} {...row} />
            </Fragment>
          ))}
          {outbox.value.length + chat.queue.value.length > 0 && <Pending chat={chat} />}
          {busy && <WorkingLine chat={chat} />}
        </div>
      </div>
      {!pinned && (
        <button type="button" class="jump" onClick={toEnd} aria-label={t("chat.latest.label")}>
          <Icon name="arrow_down" />
          {t("chat.latest")}
        </button>
      )}
    </div>
  );
}

/** A message of one's own brings the view to the end, wherever it was. */
function useFollowOwn(chat: Chat, toEnd: () => void): void {
  const sent = chat.sentCount.value;
  const seen = useRef(sent);
  useEffect(() => {
    if (sent > seen.current) toEnd();
    seen.current = sent;
  });
}

function DayLine({ time, before }: { time: string; before: string | undefined }) {
  const day = dayOf(Date.parse(time));
  const isNew =
    before === undefined ? day !== dayOf(Date.now()) : day !== dayOf(Date.parse(before));
  if (!isNew) return null;
  return <p class="mark">{formatDay(time, localeNow())}</p>;
}

/** The copy buttons of code blocks, which are not made by components. */
function copyFromBlock(event: MouseEvent): void {
  const target = event.target instanceof Element ? event.target : null;
  const button = target?.closest<HTMLElement>("[data-copy]");
  const code = button?.closest(".code")?.querySelector("pre > code");
  if (!button || !code) return;
  void copyText(code.textContent ?? "").then((done) => {
    if (!done) return;
    button.textContent = t("copied");
    setTimeout(() => {
      button.textContent = t("copy");
    }, 1_500);
  });
}
