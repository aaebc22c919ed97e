import { useComputed } from "@preact/signals";
import { Fragment, type RefObject } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { localeNow, t } from "../../core/i18n.ts";
import { dayOf, formatDay, formatWhen } from "../../core/time.ts";
import { visible } from "../../core/visible.ts";
import { copyText } from "../../platform/clipboard.ts";
import { pageIdle } from "../../platform/idle.ts";
import type { Block, MessageView, OpenMessage } from "../../protocol/types.gen.ts";
import type { Chat } from "../../state/chat.ts";
import { outbox } from "../../state/outbox.ts";
import { readSetting } from "../../state/settings.ts";
import { Button } from "../base/Button.tsx";
import { Icon } from "../base/Icon.tsx";
import { lazy } from "../base/lazy.tsx";
import { usePin } from "../hooks/usePin.ts";
import { Entry, type EntryProps } from "./Message.tsx";
import type { OlderState } from "./older.ts";
import { joinRuns, type Outline, outlineOf } from "./runs.ts";

/** What is on its way: nothing in most moments. */
export const Pending = lazy(async () => (await import("./Pending.tsx")).Pending);

/** What a running turn does, when its last steps do not tell it. */
export const WorkingLine = lazy(async () => (await import("./WorkingLine.tsx")).WorkingLine);

/** Entries that are rendered; older ones come with a tap. */
const WINDOW = 60;
/** As many as fill a screen, which come at once; the others of the window come when there is time. */
const FIRST = 20;
const STEP = 10;
/** A reader who comes so near to the top gets older ones by themselves, in CSS pixels. */
const NEAR_TOP_PX = 400;

type Row = Omit<EntryProps, "chat"> & { key: string };

function rowOf(
  message: MessageView,
  around: readonly MessageView[],
  at: number,
  busy: boolean,
): Row {
  const { seq, id, role, content, time, cut, mark, turn, undone } = message;
  const next = around[at + 1];
  const goesOn = next ? next.turn === turn && next.role === "assistant" : busy;
  const last = role === "user" ? turn !== around[at - 1]?.turn : !goesOn;
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
    last,
    ...ALONE,
  };
}

const NO_BLOCKS: readonly Block[] = [];
/** An entry that has nothing to do with those beside it. */
const ALONE = { led: false, joined: NO_BLOCKS, follows: null, live: false };

function openRow({ id, time, turn }: OpenMessage): Row {
  const fixed = {
    content: NO_BLOCKS,
    role: "assistant",
    cut: null,
    mark: null,
    undone: false,
    open: true,
    last: false,
    ...ALONE,
  };
  return { key: id, id, time, turn, ...fixed };
}

/** The conversation: what is finished, what is being written, what is on its way. */
export function MessageList({ chat }: { chat: Chat }) {
  const messages = chat.messages.value;
  // Which ones are being written and how they are made up, not what they say: their words are
  // nobody's matter but their own.
  const outlines = useComputed(() =>
    JSON.stringify(chat.openMessages.value.map(({ id, content }) => [id, outlineOf(content)])),
  ).value;
  const opened = chat.openMessages.peek();
  const [shown, setShown] = useState(FIRST);
  const { scroller, column, pinned, toEnd } = usePin(
    chat.session,
    () => !chat.turn.peek() || readSetting("follow") !== "off",
  );

  const busy = chat.turn.value !== null;
  const finished = messages.slice(-shown);
  const rows = [
    ...finished.map((message, place) => rowOf(message, finished, place, busy)),
    ...opened.map(openRow),
  ];
  const acts = joinRuns(rows, new Map(JSON.parse(outlines) as [string, Outline][]), busy);
  const seqs = finished.map(({ seq }) => seq);
  const hidden = messages.length - finished.length;
  const older = useOlder(chat, scroller, finished[0]?.seq);
  const isFilling = hidden > 0 && shown < WINDOW;
  const showOlder = (count: number): void => {
    if (hidden > 0) older.hold();
    else older.read();
    setShown((before) => before + count);
  };
  useEffect(() => {
    if (isFilling) pageIdle(() => showOlder(STEP));
  }, [isFilling, shown]);
  const since = chat.newAfter.value ?? Number.POSITIVE_INFINITY;
  const firstNew = finished.findIndex(({ seq, role }) => seq > since && role !== "user");
  const notices = chat.notices.value;
  const noticesBetween = (after: number, before = Number.POSITIVE_INFINITY) =>
    notices
      .filter(({ seq }) => seq > after && seq < before)
      .map(({ seq, message }) => (
        <p key={seq} class="mark">
          {visible(message)}
        </p>
      ));
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
        onScroll={({ currentTarget: { scrollTop } }) => {
          if (pinned || scrollTop >= NEAR_TOP_PX) return;
          if (hidden > 0 || older.state === "more") showOlder(WINDOW);
        }}
      >
        <div ref={column} class="column">
          {((hidden > 0 && !isFilling) || older.state === "more" || older.state === "failed") && (
            <Button onClick={() => showOlder(WINDOW)}>{t("chat.older")}</Button>
          )}
          {older.state === "loading" && <p class="mark">{t("chat.loading")}</p>}
          {hidden === 0 && older.state === "none" && noticesBetween(0, seqs[0])}
          {rows.map(({ key, ...row }, place) => (
            <Fragment key={key}>
              <DayLine time={row.time} before={rows[place - 1]?.time} />
              {place > 0 && place === firstNew && <NewLine since={rows[place - 1]?.time} />}
              <Entry chat={chat} {...row} />
              {noticesBetween(seqs[place] ?? Number.POSITIVE_INFINITY, seqs[place + 1])}
            </Fragment>
          ))}
          {outbox.value.length + chat.queue.value.length > 0 && <Pending chat={chat} />}
          {busy && !acts && <WorkingLine chat={chat} />}
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

interface Older {
  /** Whether there is more at the server, as far as is known. */
  state: OlderState;
  /** Keeps what is read in its place over the next change above it. */
  hold: () => void;
  /** Asks the server for more. */
  read: () => void;
}

/** What is older than all that is held, and how it comes in without moving what is read. */
function useOlder(
  chat: Chat,
  scroller: RefObject<HTMLDivElement | null>,
  first: number | undefined,
): Older {
  const [known, setKnown] = useState<OlderState | null>(null);
  const held = useRef<[entry: Element, top: number] | null>(null);
  const hold = (): void => {
    // The first in sight: what stands above it may change as well.
    const edge = scroller.current?.getBoundingClientRect().top ?? 0;
    const entry = [...(scroller.current?.querySelectorAll(".entry") ?? [])].find(
      (one) => one.getBoundingClientRect().bottom >= edge,
    );
    held.current = entry ? [entry, entry.getBoundingClientRect().top] : null;
  };
  useLayoutEffect(() => {
    const [entry, top] = held.current ?? [];
    if (!entry || top === undefined || !scroller.current) return;
    scroller.current.scrollTop += entry.getBoundingClientRect().top - top;
    held.current = null;
  }, [first]);
  const read = async (): Promise<void> => {
    setKnown("loading");
    const { readOlder } = await import("./older.ts");
    setKnown(await readOlder(chat, hold));
  };
  const state = known ?? (chat.parts.older ? "more" : "none");
  return { state, hold, read: () => void read() };
}

function NewLine({ since = "" }: { since?: string | undefined }) {
  return (
    <p class="mark new-line">
      {t("chat.since", { time: formatWhen(since, Date.now(), localeNow()) })}
    </p>
  );
}

/** A message of one's own brings the view to the end, wherever it was. */
function useFollowOwn(chat: Chat, toEnd: () => void): void {
  const sent = chat.sentCount.value;
  const seen = useRef(sent);
  useEffect(() => {
    if (sent > seen.current) toEnd();
    seen.current = sent;
  }, [sent]);
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
