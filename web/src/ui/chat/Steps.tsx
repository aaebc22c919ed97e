import { computed } from "@preact/signals";
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { t, tMaybe } from "../../core/i18n.ts";
import { formatDuration } from "../../core/time.ts";
import { visible, visibleName } from "../../core/visible.ts";
import type { Block, CallView, Thinking } from "../../protocol/types.gen.ts";
import type { Chat } from "../../state/chat.ts";
import { Icon } from "../base/Icon.tsx";
import { lazy } from "../base/lazy.tsx";
import { SHORT_MS, ToolCard, ToolDraft } from "../tools/ToolCard.tsx";
import { isBad, statusText } from "../tools/tool_text.ts";
import { countLead, stepsOf } from "./runs.ts";

/** What a running turn does, in a few words. */
export const WorkingWords = lazy(async () => (await import("./WorkingLine.tsx")).WorkingWords);
/** What else there is to say of it. */
export const WorkingMore = lazy(async () => (await import("./WorkingLine.tsx")).WorkingMore);

interface StepsProps {
  chat: Chat;
  /** Thoughts and calls, one at least. */
  steps: readonly Block[];
  /** Whether the calls among them are still being written. */
  drafts: boolean;
  /** The message that is being written, when it begins with more of them. */
  follows: string | null;
  /** Whether the turn is at them now. */
  live: boolean;
}

/** A run of steps folded to one line. What failed, or waits for somebody, stays in sight. */
export function Steps({ chat, steps, drafts, follows, live }: StepsProps) {
  const [open, setOpen] = useState(false);
  // Who opened a thought by itself reads on, whatever comes behind it.
  const reads = useRef(false);
  const box = useRef<HTMLDivElement>(null);
  const head = useRef<HTMLButtonElement>(null);
  const ids = steps.map((step) => (step.type === "tool_call" ? step.id : "")).join();
  // As text, so that only what changes it is heard.
  const heard = useMemo(() => computed(() => JSON.stringify(tell(chat, ids.split(",")))), [ids]);
  const told = JSON.parse(heard.value) as Told;
  const alone = steps.length === 1 && follows === null ? steps[0] : undefined;
  const isSeen = // all of it, so there is nothing to fold
    told.words === "" && follows === null && steps.every(({ type }) => type === "tool_call");
  // A call by itself is one line already.
  const isBare = !live && (isSeen || alone?.type === "tool_call");
  const hadFocus = head.current !== null && head.current === document.activeElement;
  useLayoutEffect(() => {
    if (isBare && hadFocus) box.current?.querySelector("summary")?.focus();
  }, [isBare]);
  const toggle = (): void => {
    reads.current = alone?.type === "thinking";
    setOpen(!open);
  };
  const isOpen = open && !isBare;
  return (
    <div ref={box} class={live ? "doings live" : "doings"}>
      {!isBare && (
        <div class="activity">
          <button
            ref={head}
            type="button"
            class="doings-head"
            aria-expanded={isSeen ? undefined : open}
            onClick={toggle}
          >
            {live ? <WorkingWords chat={chat} /> : <Summary told={told} alone={!open && alone} />}
            {!isSeen && <Icon name="chevron" />}
          </button>
          {live && <WorkingMore chat={chat} />}
        </div>
      )}
      {steps.map((step, at) => {
        if (step.type === "thinking") {
          return isOpen && <ThinkingRow key={at} block={step} bare={at === 0 && reads.current} />;
        }
        if (step.type !== "tool_call" || !(open || isBare || told.loud.includes(step.id)))
          return null;
        return drafts ? (
          <ToolDraft key={step.id} block={step} />
        ) : (
          <ToolCard key={step.id} chat={chat} block={step} />
        );
      })}
      {isOpen && follows !== null && <Written chat={chat} id={follows} />}
    </div>
  );
}

/** What it was, in one line. */
function Summary({
  told: { words, took },
  alone,
}: {
  told: Told;
  alone: Block | false | undefined;
}) {
  return (
    <>
      <span class={words ? "doings-words" : "thinking-label"}>{words || t("turn.thought")}</span>
      {alone && alone.type === "thinking" && <span class="thinking-first">{firstLine(alone)}</span>}
      {took >= SHORT_MS && <span class="quiet">· {formatDuration(took)}</span>}
    </>
  );
}

/** The steps that a message begins with which is being written. */
function Written({ chat, id }: { chat: Chat; id: string }) {
  const { content } = chat.openMessages.value.find((message) => message.id === id) ?? {};
  if (!content) return null;
  return (
    <>
      {stepsOf(content.slice(0, countLead(content))).map((step, at) => {
        if (step.type === "thinking") return <ThinkingRow key={at} block={step} />;
        return step.type === "tool_call" ? <ToolDraft key={at} block={step} /> : null;
      })}
    </>
  );
}

/** A thought's first line may be as long as the thought. */
const FIRST_CHARS = 200;

function firstLine({ text }: Thinking): string {
  return visibleName(text.trimStart().slice(0, FIRST_CHARS).split("\n", 1)[0] ?? "");
}

function ThinkingRow({ block, bare = false }: { block: Thinking; bare?: boolean }) {
  const text = <div class="thinking-text">{block.text}</div>;
  if (bare) return text;
  return (
    <details class="thinking">
      <summary>
        <span class="thinking-label">{t("turn.thought")}</span>
        <span class="thinking-first">{firstLine(block)}</span>
        <Icon name="chevron" />
      </summary>
      {text}
    </details>
  );
}

interface Told {
  /** The calls that stay in sight. */
  loud: string[];
  /** What the others did; empty when there are none. */
  words: string;
  /** Milliseconds from the start of the first call to the end of the last. */
  took: number;
}

/** What a run of calls came to; an empty id is a thought's. */
function tell(chat: Chat, ids: readonly string[]): Told {
  const found = ids.flatMap((id) => chat.calls.value.get(id) ?? []);
  const asked = chat.permissions.value.map(({ call }) => call);
  const loud = found.filter((call) => isLoud(call, asked)).map(({ call }) => call);
  const quiet = ids.filter((id) => id !== "" && !loud.includes(id));
  const [only] = quiet.length === 1 ? found.filter(({ call }) => call === quiet[0]) : [];
  const kinds = new Map<string, number>();
  for (const id of quiet) {
    const call = chat.calls.value.get(id);
    const kind = call?.child ? "child" : call?.effect;
    const word = tMaybe(`steps.${kind}`) ?? t("steps.other");
    count(kinds, word);
  }
  // They stand below in the same words, so the line must not be read as them.
  const bad = new Map<string, number>();
  for (const call of quiet.length > 0 ? found.filter(isBad) : []) {
    count(bad, call.status === "completed" ? t("call.failed") : statusText(call));
  }
  const did = only ? [visible(only.title)] : listed(kinds);
  const words = [...did, ...listed(bad)].join(" · ");
  return { loud, words, took: spanOf(found) };
}

function count(counts: Map<string, number>, word: string): void {
  counts.set(word, (counts.get(word) ?? 0) + 1);
}

function listed(counts: ReadonlyMap<string, number>): string[] {
  return [...counts].map(([word, times]) => `${word} ${times}`);
}

/** Whether it failed, or somebody is waited for. */
function isLoud(call: CallView, asked: readonly (string | null | undefined)[]): boolean {
  const waits = call.status === "pending" && call.expires_at !== null;
  return waits || isBad(call) || asked.includes(call.call);
}

/** Milliseconds from the start of the first call to the end of the last. */
function spanOf(calls: readonly CallView[]): number {
  const begun = calls.flatMap(({ started, duration_ms }) =>
    started ? [[Date.parse(started), duration_ms] as const] : [],
  );
  if (begun.length === 0) return 0;
  return Math.max(...begun.map(([at, ms]) => at + ms)) - Math.min(...begun.map(([at]) => at));
}
