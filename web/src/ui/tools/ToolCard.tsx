import { useMemo, useState } from "preact/hooks";
import { t } from "../../core/i18n.ts";
import { formatDuration } from "../../core/time.ts";
import { visible } from "../../core/visible.ts";
import type { CallView, ToolCall } from "../../protocol/types.gen.ts";
import type { Chat } from "../../state/chat.ts";
import { Icon } from "../base/Icon.tsx";
import { lazy } from "../base/lazy.tsx";
import { effectIcon, glance, isBad, statusText } from "./tool_text.ts";

/** How many lines came and went. */
const Counts = lazy(async () => (await import("../turn/Changes.tsx")).Counts, true);

/** So much of a long title's end is always seen, in UTF-16 units. */
const END_UNITS = 16;

/** What took less shows no time. */
export const SHORT_MS = 100;

/** The inside of a card: of no use before one is opened. */
export const ToolBody = lazy(async () => (await import("./ToolBody.tsx")).ToolBody);

/** A tool call: one line until it is opened. */
export function ToolCard({ chat, block }: { chat: Pick<Chat, "call">; block: ToolCall }) {
  const call = useMemo(() => chat.call(block.id), [chat, block.id]).value;
  const [open, setOpen] = useState(false);
  const hint = call ? glance(call) : "";
  return (
    <details
      class={call && isBad(call) ? "tool bad" : "tool"}
      data-status={call?.status}
      onToggle={(event) => setOpen(event.currentTarget.open)}
    >
      <summary class="tool-head">
        <StateIcon call={call} />
        <Title text={visible(call?.title || block.name)} />
        <span class="tool-side">
          {call && call.changes.length > 0 && <Counts changes={call.changes} />}
          {call && <span class="tool-status">{statusText(call)}</span>}
          {call && call.duration_ms >= SHORT_MS && <span>{formatDuration(call.duration_ms)}</span>}
          <Icon name="chevron" />
        </span>
        {hint !== "" && <span class="tool-hint">{visible(hint)}</span>}
      </summary>
      {open && <ToolBody call={call} block={block} />}
    </details>
  );
}

/** What is done to what: when there is no room, the middle goes, for the end says most. */
function Title({ text }: { text: string }) {
  const end = text.length > 2 * END_UNITS ? text.slice(-END_UNITS) : "";
  return (
    <span class="tool-title">
      <span>{end ? text.slice(0, -END_UNITS) : text}</span>
      <span>{end}</span>
    </span>
  );
}

/** A call whose arguments are still being written. */
export function ToolDraft({ block }: { block: ToolCall }) {
  return (
    <div class="tool">
      <div class="tool-head">
        <span class="ring" aria-hidden="true" />
        <span class="tool-title">{visible(block.name) || t("tool.writing")}</span>
      </div>
    </div>
  );
}

function StateIcon({ call }: { call: CallView | undefined }) {
  if (!call) return <Icon name="wrench" />;
  if (call.status === "in_progress") return <span class="ring" aria-hidden="true" />;
  if (call.status === "pending") return <Icon name="clock" />;
  return <Icon name={isBad(call) ? "alert" : effectIcon(call.effect)} />;
}
