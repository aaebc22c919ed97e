import "../../core/words.code.ts";
import { useEffect, useRef, useState } from "preact/hooks";
import { t } from "../../core/i18n.ts";
import { visible } from "../../core/visible.ts";
import { allowLink } from "../../md/links.ts";
import type { CallView, ToolCall } from "../../protocol/types.gen.ts";
import { addressOfFile, Picture } from "../base/Picture.tsx";
import { Changes } from "../turn/Changes.tsx";
import { SubAgent } from "./SubAgent.tsx";
import { FOLD_UNITS, outputOf, prettyArguments, receiptOf } from "./tool_text.ts";

/** What a tool card shows when it is opened. */
export function ToolBody({ call, block }: { call: CallView | undefined; block: ToolCall }) {
  if (!call) {
    return (
      <div class="tool-body">
        <LongText label={t("tool.arguments")} text={visible(prettyArguments(block.arguments))} />
      </div>
    );
  }
  const isCommand = call.preview?.kind === "command";
  const output = outputOf(call);
  const running = call.status === "in_progress";
  return (
    <div class="tool-body">
      <LongText
        label={isCommand ? visible(call.tool) : t("tool.arguments")}
        text={visible(isCommand ? (call.preview?.text ?? "") : prettyArguments(call.arguments))}
      />
      {call.changes.length > 0 && (
        <section>
          <p class="label">{t("tool.changes")}</p>
          <Changes changes={call.changes} />
        </section>
      )}
      {(output !== "" || running) && (
        <LongText
          label={t(isCommand ? "tool.output" : "tool.result")}
          text={output}
          tail={running}
        />
      )}
      <Found call={call} />
      {call.status === "completed" && call.content.length + call.artifacts.length === 0 && (
        <p class="quiet">{t("tool.empty")}</p>
      )}
      <ExitCode call={call} />
      {call.child && <SubAgent key={call.child} session={call.child} call={call} />}
      {call.decision && <p class="quiet">{receiptOf(call.decision)}</p>}
    </div>
  );
}

/** What a call found or made, other than words: pages, pictures, files. */
function Found({ call: { artifacts, content, files } }: { call: CallView }) {
  const pages = artifacts.flatMap((one) => {
    if (one.kind === "search") return [...(one.items ?? [])];
    const isPage = (one.kind === "page" || one.kind === "http") && !one.error_code;
    return isPage ? [{ url: one.url, title: one.url, snippet: `HTTP ${one.status}` }] : [];
  });
  const pictures = [
    ...content.flatMap((block) => (block.type === "image" ? (block.file ?? []) : [])),
    ...artifacts.flatMap((one) => (one.kind === "image" ? one.file : [])),
  ];
  return (
    <>
      {pages.length > 0 && (
        <ul class="sources">
          {pages.map(({ url, title, snippet }, place) => (
            <li key={place}>
              <Source url={url} title={title} />
              {snippet && <p class="quiet">{visible(snippet)}</p>}
            </li>
          ))}
        </ul>
      )}
      {[...new Set(pictures)].map((file) => (
        <Picture key={file} src={addressOfFile(file)} />
      ))}
      {files
        .filter((file) => !pictures.includes(file))
        .map((file, place) => (
          <a key={file} href={addressOfFile(file)} target="_blank" rel="noopener">
            {t("tool.whole")} {place > 0 && place + 1}
          </a>
        ))}
    </>
  );
}

/** A page on the web; an address that leads elsewhere is only named. */
function Source({ url, title }: { url: string; title: string }) {
  const href = allowLink(url);
  const name = visible(title || url);
  if (href === undefined) return <>{name}</>;
  return (
    <a href={href} target="_blank" rel="noopener noreferrer nofollow">
      {name}
    </a>
  );
}

function ExitCode({ call }: { call: CallView }) {
  const command = call.artifacts.find((artifact) => artifact.kind === "command");
  if (command?.kind !== "command" || command.exit_code == null) return null;
  return <p class="quiet">{t("tool.exit", { code: command.exit_code })}</p>;
}

interface LongTextProps {
  label: string;
  text: string;
  /** Keep the end in sight, as long as it grows. */
  tail?: boolean;
}

function LongText({ label, text, tail = false }: LongTextProps) {
  const [whole, setWhole] = useState(false);
  const box = useRef<HTMLPreElement>(null);
  useEffect(() => {
    if (tail && box.current) box.current.scrollTop = box.current.scrollHeight;
  });
  if (text === "{}") return null;
  const folded = !whole && text.length > FOLD_UNITS;
  const shown = folded ? (tail ? text.slice(-FOLD_UNITS) : text.slice(0, FOLD_UNITS)) : text;
  return (
    <section>
      <p class="label">{label}</p>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a block that scrolls must take the keys */}
      <pre ref={box} class="well" tabIndex={0}>
        {shown}
      </pre>
      {folded && (
        <button type="button" class="link-button" onClick={() => setWhole(true)}>
          {t("show.more")}
        </button>
      )}
    </section>
  );
}
