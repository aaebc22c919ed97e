import { Component } from "preact";
import { said, t, tMaybe } from "../../core/i18n.ts";
import { visible, visibleName } from "../../core/visible.ts";
import type { Block, Mark } from "../../protocol/types.gen.ts";
import type { Chat } from "../../state/chat.ts";
import { Icon } from "../base/Icon.tsx";
import { lazy } from "../base/lazy.tsx";
import { Markdown } from "./Markdown.tsx";
import { countLead, type Joined, piecesOf } from "./runs.ts";
import { Steps } from "./Steps.tsx";

/** What can be done with an answer: nobody misses it in the first moment. */
export const MessageFooter = lazy(
  async () => (await import("../turn/MessageFooter.tsx")).MessageFooter,
  true,
);

/** What goes along, to be looked at. */
const Picture = lazy(async () => (await import("../base/Picture.tsx")).Picture);
/** When one said it, and how to say it otherwise. */
export const OwnFooter = lazy(async () => (await import("../turn/OwnFooter.tsx")).OwnFooter, true);
/** The ways on from a turn that failed. */
export const TurnFailure = lazy(async () => (await import("../turn/TurnFailure.tsx")).TurnFailure);

/** What the list shows of one entry. */
export interface EntryProps extends Joined {
  chat: Chat;
  id: string;
  role: string;
  turn: string | null;
  /** Nothing while it is still being written: then the chat tells it. */
  content: readonly Block[];
  time: string;
  /** Whether it is still being written. */
  open: boolean;
  /** Whether an answer is the last of its turn, which can be copied, or a prompt began its turn. */
  last: boolean;
  cut: string | null;
  mark: Mark | null;
  /** Whether the conversation went back to before it. */
  undone: boolean;
}

/** What of an entry may change. */
const CHANGES = ["content", "open", "last", "cut", "undone", "led", "follows", "live"] as const;

/** One entry of the conversation; made again only when something of it has changed. */
export class Entry extends Component<EntryProps> {
  override shouldComponentUpdate(next: EntryProps): boolean {
    const { props } = this;
    const { joined } = next;
    return (
      CHANGES.some((name) => next[name] !== props[name]) ||
      joined.length !== props.joined.length ||
      joined.some((block, at) => block !== props.joined[at])
    );
  }

  override render(props: EntryProps) {
    if (props.mark) return <MarkLine {...props} mark={props.mark} />;
    return props.role === "user" ? <UserMessage {...props} /> : <AgentMessage {...props} />;
  }
}

/** What a message says, without all that is no text. */
export function plainText(content: readonly Block[]): string {
  return content.map((block) => (block.type === "text" ? block.text : "")).join("");
}

function UserMessage({ chat, turn, content, time, last, undone }: EntryProps) {
  return (
    <article
      class={undone ? "entry user undone" : "entry user"}
      aria-label={t("chat.you")}
      tabIndex={-1} // a tap shows the time
    >
      <UserBubble content={content} />
      {last && turn !== null && !undone && (
        <OwnFooter chat={chat} turn={turn} content={content} time={time} />
      )}
    </article>
  );
}

/** What a person said: as it was typed, without Markdown. */
export function UserBubble({ content }: { content: readonly Block[] }) {
  const files = content.filter((block) => block.type !== "text");
  return (
    <div class="bubble">
      {plainText(content)}
      {files.map((block, place) => (
        <FileBlock key={place} block={block} />
      ))}
    </div>
  );
}

/** A file that goes along: a picture as itself, all else by its name. */
function FileBlock({ block }: { block: Block }) {
  if (block.type === "image" && block.file) return <Picture src={`/api/files/${block.file}`} />;
  return (
    <span class="chip">
      <Icon name="file" />
      {block.type === "file" ? visibleName(block.name) : t("chat.picture")}
    </span>
  );
}

function AgentMessage({ chat, id, turn, time, open, last, cut, undone, ...props }: EntryProps) {
  const content =
    (open && chat.openMessages.value.find((message) => message.id === id)?.content) ||
    props.content;
  const pieces = piecesOf(content, props.led ? countLead(content) : 0);
  const isCut = cut !== null && cut !== "cancelled";
  const ends = last && !open;
  // All of it is shown by the one before.
  if (pieces.length === 0 && !isCut && !ends) return null;
  return (
    <article
      class={undone ? "entry agent undone" : "entry agent"}
      aria-label={t("chat.agent")}
      aria-busy={open}
      tabIndex={-1}
    >
      {pieces.map(({ at, block, steps }, place) => {
        const isLast = place === pieces.length - 1;
        return steps.length > 0 ? (
          <Steps
            key={at}
            chat={chat}
            steps={isLast ? [...steps, ...props.joined] : steps}
            drafts={open}
            follows={isLast ? props.follows : null}
            live={isLast && props.live}
          />
        ) : (
          <BlockView key={at} block={block} open={open} />
        );
      })}
      {isCut && <p class="cut">{t("chat.cut")}</p>}
      {ends && <MessageFooter chat={chat} turn={turn} text={plainText(content)} time={time} />}
    </article>
  );
}

function BlockView({ block, open }: { block: Block; open: boolean }) {
  switch (block.type) {
    case "text":
      return <Markdown text={block.text} open={open} />;
    case "image":
    case "file":
      return (
        <p>
          <FileBlock block={block} />
        </p>
      );
    case "unknown":
      return <p class="quiet">{t("chat.unknown", { name: visible(block.name) })}</p>;
    default:
      return null;
  }
}

function MarkLine({ chat, turn, time, mark }: EntryProps & { mark: Mark }) {
  const { kind, fault } = mark;
  const text = visible(mark.text);
  const label = tMaybe(`mark.${kind}`, { text }) ?? text;
  if (kind !== "turn_failed") return <p class="mark">{label}</p>;
  return (
    <div class="failure">
      <p class="failure-title">
        <Icon name="alert" />
        {label}
      </p>
      <p>{said(fault) ?? text}</p>
      {fault?.retry === "same_request" && (
        <p class="quiet">
          {fault.retry_after_s
            ? t("fault.again.after", { seconds: Math.ceil(fault.retry_after_s) })
            : t("fault.again")}
        </p>
      )}
      {fault && <TurnFailure chat={chat} turn={turn} fault={fault} time={time} />}
    </div>
  );
}
