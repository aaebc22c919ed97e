/** Unified diffs as rows with line numbers. */

/** One line of a diff as it is shown. */
export interface DiffRow {
  /** `file` and `hunk` are heads; `note` is what belongs to no file's text. */
  readonly kind: "file" | "hunk" | "add" | "del" | "same" | "note";
  /** The line without its sign. */
  readonly text: string;
  /** Its number before; 0 for none. */
  readonly old: number;
  /** Its number after; 0 for none. */
  readonly now: number;
}

const HUNK = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/;
const KINDS: Record<string, DiffRow["kind"]> = { "+": "add", "-": "del", " ": "same", "": "same" };

/** How far a hunk has been read. */
interface Place {
  old: number;
  now: number;
  /** Lines of the hunk that are still to come, before and after. */
  oldLeft: number;
  nowLeft: number;
}

/**
 * The rows of a unified diff, of one file or more.
 *
 * A hunk's own counts say where it ends, so a deleted line that begins with `--` is no head. What
 * cannot be read as a diff is kept as notes: nothing is left out.
 */
export function parseDiff(text: string): DiffRow[] {
  const place: Place = { old: 0, now: 0, oldLeft: 0, nowLeft: 0 };
  return text
    .replace(/\n$/, "")
    .split("\n")
    .map((line) => readLine(line, place));
}

function readLine(line: string, place: Place): DiffRow {
  const kind = KINDS[line.slice(0, 1)];
  if (kind && place.oldLeft + place.nowLeft > 0) return countLine(kind, line.slice(1), place);
  const hunk = HUNK.exec(line);
  if (hunk) {
    const [, old = "0", oldCount = "1", now = "0", nowCount = "1"] = hunk;
    place.old = Number(old);
    place.now = Number(now);
    place.oldLeft = Number(oldCount);
    place.nowLeft = Number(nowCount);
    return { kind: "hunk", text: line, old: 0, now: 0 };
  }
  if (/^(?:---|\+\+\+) /.test(line)) return { kind: "file", text: line, old: 0, now: 0 };
  // A piece of a diff, without the head that says where it stands.
  if (kind === "add" || kind === "del") return { kind, text: line.slice(1), old: 0, now: 0 };
  return { kind: "note", text: line, old: 0, now: 0 };
}

function countLine(kind: DiffRow["kind"], text: string, place: Place): DiffRow {
  const row = { kind, text, old: 0, now: 0 };
  if (kind !== "add") {
    row.old = place.old++;
    place.oldLeft -= 1;
  }
  if (kind !== "del") {
    row.now = place.now++;
    place.nowLeft -= 1;
  }
  return row;
}

/** How many lines diffs add and take away. */
export function countDiff(texts: Iterable<string>): { added: number; removed: number } {
  let added = 0;
  let removed = 0;
  for (const text of texts) {
    for (const { kind } of parseDiff(text)) {
      if (kind === "add") added += 1;
      if (kind === "del") removed += 1;
    }
  }
  return { added, removed };
}

/** A pair of lines side by side; nothing stands where the other side has no line. */
export interface DiffPair {
  readonly left: DiffRow | null;
  readonly right: DiffRow | null;
}

/** The rows side by side: what went beside what came in its place. Heads stand on the left. */
export function pairRows(rows: readonly DiffRow[]): DiffPair[] {
  const pairs: DiffPair[] = [];
  for (let at = 0; at < rows.length; ) {
    const gone = takeWhile(rows, at, "del");
    const come = takeWhile(rows, at + gone.length, "add");
    for (let place = 0; place < Math.max(gone.length, come.length); place++) {
      pairs.push({ left: gone[place] ?? null, right: come[place] ?? null });
    }
    at += gone.length + come.length;
    const row = gone.length + come.length === 0 ? rows[at] : undefined;
    if (!row) continue;
    pairs.push({ left: row, right: row.kind === "same" ? row : null });
    at += 1;
  }
  return pairs;
}

function takeWhile(rows: readonly DiffRow[], from: number, kind: DiffRow["kind"]): DiffRow[] {
  let end = from;
  while (rows[end]?.kind === kind) end += 1;
  return rows.slice(from, end);
}
