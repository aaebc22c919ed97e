// @vitest-environment node
import { runInNewContext } from "node:vm";
import { afterEach, expect, test, vi } from "vitest";
import { colourBy } from "../src/md/colouring.ts";
import * as grammars from "../src/md/grammars.ts";

const GRAMMARS = { ...grammars };

/** Ten times the longest code that is coloured: where work grows with the square, a hundredfold. */
const UNITS = 200_000;
/** What takes well below a second is given so long, in milliseconds; the square of it takes longer. */
const LIMIT_MS = 8_000;

/** A node that only knows how deep it stands. */
class Depth {
  static deepest = 0;
  depth = 0;
  append(...nodes: unknown[]): void {
    for (const node of nodes) {
      if (!(node instanceof Depth)) continue;
      node.depth = this.depth + 1;
      Depth.deepest = Math.max(Depth.deepest, node.depth);
    }
  }
  normalize(): void {}
}

afterEach(() => vi.unstubAllGlobals());

/** Colours it and tells how deep the spans stand; throws when that takes too long. */
function work(name: keyof typeof GRAMMARS, code: string): number {
  Depth.deepest = 0;
  const create = () => new Depth();
  vi.stubGlobal("document", { createElement: create, createDocumentFragment: create });
  const run = () => colourBy(GRAMMARS[name](), code);
  runInNewContext("run()", { run }, { timeout: LIMIT_MS });
  return Depth.deepest;
}

/** What is at the beginning, what fills, what is at the end. */
const HOSTILE: [head: string, filling: string, end?: string][] = [
  ...["a", " ", "\n", "\u00a0", "1", "_", "[", '"', "`", "\\", "/", "# "].map(
    (filling): [string, string] => ["", filling],
  ),
  ["", "1", "_"],
  ["", '"\u2028a'],
  ["", "\r/ "],
  ["", "a$"],
  ["", "a "],
  ["", "- ", "a"],
  ["x", "- ", "a"],
  ["a", " "],
  ["a:", " "],
  ["def ", "a"],
  ["def ", "\u00a0", "("],
  ["class a(b", "\u00a0"],
  ["", "${"],
  ["", "<<a\n"],
  ["", "```a\n"],
  ["a=", "[=/"],
  ["a=", "[=/", "]"],
  ["url(data:a/b;base64,", "a"],
  ["", "!\n"],
  ["", "](("],
];

test.each(Object.keys(GRAMMARS) as (keyof typeof GRAMMARS)[])(
  "however hostile the code, the work of %s grows only with its length",
  { timeout: 10 * LIMIT_MS },
  (name) => {
    for (const [head, filling, end = ""] of HOSTILE) {
      const code = head + filling.repeat(UNITS / filling.length) + end;
      expect(() => work(name, code), JSON.stringify([head, filling, end])).not.toThrow();
    }
    // A long word that a text is looked for by, and blank lines where it could stand.
    const half = UNITS / 2;
    expect(() => work(name, `<<${"a".repeat(half)}${"\n".repeat(half)}`)).not.toThrow();
    expect(() => work(name, `${"\n".repeat(half)}${"[".repeat(half)}`)).not.toThrow();
  },
);

test.each([
  ["typescript", "`${"],
  ["bash", "$("],
  ["python", 'f"{'],
] as const)(
  "parts of %s that stand in each other without an end make no deep tree",
  (name, part) => {
    expect(work(name, part.repeat(3))).toBeGreaterThanOrEqual(3);
    expect(work(name, part.repeat(10_000))).toBeLessThanOrEqual(100);
  },
);
