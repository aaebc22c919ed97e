import { Component } from "preact";
import { said, t, tMaybe } from "../../core/i18n.ts";
import { visible, visibleName } from "../../core/visible.ts";
import type { Block, Mark, Thinking } from "../../protocol/types.gen.ts";
import type { Chat } from "../../state/chat.ts";
import { Icon } from "../base/Icon.tsx";
import { lazy } from "../base/lazy.tsx";
import { ToolCard, ToolDraft } from "../tools/ToolCard.tsx";
import { Markdown } from "./Markdown.tsx";

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
export interface EntryProps {
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

/** One entry of the conversation; made again only when something of it has changed. */
export class Entry extends Component<EntryProps> {
  override shouldComponentUpdate(next: EntryProps): boolean {
    const { content, open, last, cut, undone } = this.props;
    return (
      next.content !== content ||
      next.open !== open ||
      next.last !== last ||
      next.cut !== cut ||
      next.undone !== undone
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
  const text = plainText(content);
  return (
    <article
      class={undone ? "entry agent undone" : "entry agent"}
      aria-label={t("chat.agent")}
      aria-busy={open}
      tabIndex={-1}
    >
      {content.map((block, place) => (
        <BlockView
          key={place}
          chat={chat}
          block={block}
          open={open}
          last={place === content.length - 1}
        />
      ))}
      {cut !== null && cut !== "cancelled" && <p class="cut">{t("chat.cut")}</p>}
      {last && !open && <MessageFooter chat={chat} turn={turn} text={text} time={time} />}
    </article>
  );
}

interface BlockViewProps {
  chat: Chat;
  block: Block;
  open: boolean;
  /** Whether it is the one that is being written, if any is. */
  last: boolean;
}

function BlockView({ chat, block, open, last }: BlockViewProps) {
  switch (block.type) {
    case "text":
      return block.text === "" ? null : <Markdown text={block.text} open={open} />;
    case "thinking":
      return <ThinkingRow block={block} open={open && last} />;
    case "tool_call":
      return open ? <ToolDraft block={block} /> : <ToolCard chat={chat} block={block} />;
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

function ThinkingRow({ block, open }: { block: Thinking; open: boolean }) {
  if (!block.text && !open) return null;
  const first = block.text.trim().split("\n", 1)[0] ?? "";
  return (
    <details class="thinking">
      <summary>
        <Icon name="chevron" />
        <span class="thinking-label">{t(open ? "turn.thinking" : "turn.thought")}</span>
        <span class="thinking-first">{first}</span>
      </summary>
      <div class="thinking-text">{block.text}</div>
    </details>
  );
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
