import "../../core/words.code.ts";
import { useMemo, useState } from "preact/hooks";
import { type DiffPair, type DiffRow, pairRows, parseDiff } from "../../core/diff.ts";
import { t } from "../../core/i18n.ts";
import { visible } from "../../core/visible.ts";
import { copyText } from "../../platform/clipboard.ts";
import { useWide } from "../hooks/useWide.ts";

/** Lines of a diff that are shown at once: more would freeze a phone. */
const MAX_LINES = 200;

const SIGNS: Partial<Record<DiffRow["kind"], string>> = { add: "+", del: "−" };

/** A unified diff: signs, colours and line numbers, scrolled sideways by itself. */
export function Diff({ text }: { text: string }) {
  const rows = useMemo(() => parseDiff(visible(text)), [text]);
  const wide = useWide();
  const [whole, setWhole] = useState(false);
  const [wrapped, setWrapped] = useState(false);
  const [beside, setBeside] = useState(false);
  const [folded, setFolded] = useState<ReadonlySet<DiffRow>>(new Set());
  const open = openRows(rows, folded);
  const shown = whole ? open : open.slice(0, MAX_LINES);
  const fold = (row: DiffRow): void => {
    const next = new Set(folded);
    if (!next.delete(row)) next.add(row);
    setFolded(next);
  };
  return (
    <div class="diff-frame">
      <div class="diff-tools">
        <CopyButton text={text} />
        <Toggle label={t("diff.wrap")} on={wrapped} onChange={setWrapped} />
        {wide && <Toggle label={t("diff.beside")} on={beside} onChange={setBeside} />}
      </div>
      <section
        class={wrapped ? "diff wrapped" : "diff"}
        aria-label={t("diff.label")}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a block that scrolls must take the keys
        tabIndex={0}
      >
        {beside && wide
          ? pairRows(shown).map((pair, place) => <Pair key={place} pair={pair} onFold={fold} />)
          : shown.map((row, place) => <Line key={place} row={row} onFold={fold} />)}
      </section>
      {shown.length < open.length && (
        <button type="button" class="link-button" onClick={() => setWhole(true)}>
          {t("diff.rest", { lines: open.length - shown.length })}
        </button>
      )}
    </div>
  );
}

/** The rows without what stands below a folded head. */
function openRows(rows: readonly DiffRow[], folded: ReadonlySet<DiffRow>): readonly DiffRow[] {
  let hides = false;
  return rows.filter((row) => {
    const isHead = row.kind === "hunk" || row.kind === "file";
    const shows = isHead || !hides;
    if (isHead) hides = folded.has(row);
    return shows;
  });
}

type Fold = (row: DiffRow) => void;

function Line({ row, onFold }: { row: DiffRow; onFold: Fold }) {
  const { kind, text, old, now } = row;
  if (kind === "hunk") {
    return (
      <button type="button" class="row hunk" onClick={() => onFold(row)}>
        <code>{text}</code>
      </button>
    );
  }
  const isHead = kind === "file" || kind === "note";
  return (
    <div class={`row ${kind}`}>
      {!isHead && (
        <span class="numbers" aria-hidden="true">
          <span>{old || ""}</span>
          <span>{now || ""}</span>
        </span>
      )}
      <code>{isHead ? text : `${SIGNS[kind] ?? " "}${text}`}</code>
    </div>
  );
}

function Pair({ pair: { left, right }, onFold }: { pair: DiffPair; onFold: Fold }) {
  if (left && !right && left.kind !== "del") return <Line row={left} onFold={onFold} />;
  return (
    <div class="pair">
      <Half row={left} number={left?.old} />
      <Half row={right} number={right?.now} />
    </div>
  );
}

function Half({ row, number }: { row: DiffRow | null; number: number | undefined }) {
  if (!row) return <div class="half" />;
  return (
    <div class={`half row ${row.kind}`}>
      <span class="numbers" aria-hidden="true">
        <span>{number || ""}</span>
      </span>
      <code>{`${SIGNS[row.kind] ?? " "}${row.text}`}</code>
    </div>
  );
}

interface ToggleProps {
  label: string;
  on: boolean;
  onChange: (on: boolean) => void;
}

function Toggle({ label, on, onChange }: ToggleProps) {
  return (
    <button type="button" class="link-button" aria-pressed={on} onClick={() => onChange(!on)}>
      {label}
    </button>
  );
}

function CopyButton({ text }: { text: string }) {
  const [copied, setCopied] = useState(false);
  const copy = async (): Promise<void> => {
    if (!(await copyText(text))) return;
    setCopied(true);
    setTimeout(() => setCopied(false), 1_500);
  };
  return (
    <button type="button" class="link-button" onClick={() => void copy()}>
      {t(copied ? "copied" : "copy")}
    </button>
  );
}
