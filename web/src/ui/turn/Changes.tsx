import "../../core/words.code.ts";
import { useState } from "preact/hooks";
import { countDiff } from "../../core/diff.ts";
import { t, tMaybe } from "../../core/i18n.ts";
import { visible } from "../../core/visible.ts";
import type { FileChange } from "../../protocol/types.gen.ts";
import { Diff } from "../tools/Diff.tsx";

/** Changed files, each folded to a line until it is opened. */
export function Changes({ changes }: { changes: readonly FileChange[] }) {
  return (
    <ul class="changes">
      {changes.map((change) => (
        <li key={`${change.path} ${change.after}`}>
          <Change change={change} open={changes.length === 1} />
        </li>
      ))}
    </ul>
  );
}

function Change({ change, open }: { change: FileChange; open: boolean }) {
  const [shown, setShown] = useState(open);
  const { path, kind, source, diff } = change;
  const word = tMaybe(`change.${kind}`, { source: visible(source ?? "") }) ?? visible(kind);
  return (
    <details open={open} onToggle={(event) => setShown(event.currentTarget.open)}>
      <summary class="change-head">
        <span class="change-path">{visible(path)}</span>
        <span class="quiet">{word}</span>
        {diff && <Counts changes={[change]} />}
      </summary>
      {shown && (diff ? <Diff text={diff} /> : <NoDiff change={change} />)}
      {shown && diff && change.truncated && <p class="quiet">{t("change.cut")}</p>}
    </details>
  );
}

function NoDiff({ change }: { change: FileChange }) {
  const isMoved = change.kind === "moved" && change.before === change.after;
  return isMoved || change.path.endsWith("/") ? null : <p class="quiet">{t("change.binary")}</p>;
}

/** How many lines came and went: at least so many, where only the heads of the diffs are here. */
export function Counts({ changes }: { changes: readonly FileChange[] }) {
  const { added, removed } = countDiff(changes.flatMap(({ diff }) => diff ?? []));
  return (
    <span class="counts">
      {changes.some(({ truncated }) => truncated) && "≥ "}
      <span class="add">+{added}</span> <span class="del">−{removed}</span>
    </span>
  );
}
