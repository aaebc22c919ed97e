/** Code to coloured nodes by a small grammar: modes that begin, hold other modes, and end. */

/** Words by what they are; a text lists them with spaces between. */
export interface Keywords {
  /** What is looked up at all; a run of letters, digits and `_` if not said. */
  $pattern?: RegExp;
  [scope: string]: string | RegExp | undefined;
}

/** A part of code that one kind of colour holds for. */
export interface Mode {
  /** The kind; nothing for a part that only keeps others out. */
  scope?: string;
  /** How it begins: at least one character. */
  begin: RegExp;
  /** How it ends; without this it is what `begin` matched. */
  end?: RegExp;
  keywords?: Keywords;
  /** What may stand in it, the first that matches wins. */
  contains?: Mode[];
}

/** A language. */
export interface Grammar extends Omit<Mode, "begin" | "end" | "scope"> {
  /** Whether the case of letters makes no difference. */
  anyCase?: boolean;
  contains: Mode[];
}

/** So deep may parts stand in each other with a colour; what is deeper has that of what it is in. */
const MAX_DEPTH = 100;

type Inside = Pick<Mode, "end" | "contains" | "keywords">;

interface Compiled {
  /** What may come next: a named group for each mode that may begin, and one for the end. */
  next: RegExp;
  words: Map<string, string>;
  word: RegExp;
}

function compile(mode: Inside, flags: string): Compiled {
  const { contains = [], end, keywords: { $pattern, ...lists } = {} } = mode;
  const parts = contains.map(({ begin }) => begin).concat(end ?? []);
  return {
    next: new RegExp(parts.map(({ source }, at) => `(?<_${at}>${source})`).join("|"), flags),
    words: new Map(
      Object.entries(lists).flatMap(([scope, list]) =>
        String(list)
          .split(" ")
          .map((word) => [word, scope] as const),
      ),
    ),
    word: new RegExp($pattern ?? /\w+/, flags),
  };
}

function build(scope: string): HTMLElement {
  const span = document.createElement("span");
  span.className = `hljs-${scope}`;
  return span;
}

/** Where what stands in a part goes: a span of its own, or at some depth the one around it. */
function enter(node: ParentNode, scope: string, depth: number): ParentNode {
  if (depth > MAX_DEPTH) return node;
  const span = build(scope);
  node.append(span);
  return span;
}

/** The code as nodes: text, and spans with one class. No character is lost. */
export function colourBy(grammar: Grammar, code: string): DocumentFragment {
  const { anyCase } = grammar;
  const made = new Map<Inside, Compiled>();
  const root = document.createDocumentFragment();
  const open: [mode: Inside, node: ParentNode][] = [];
  let mode: Inside = grammar;
  let node: ParentNode = root;
  let written = 0;

  const compiled = (): Compiled => {
    const found = made.get(mode) ?? compile(mode, anyCase ? "gim" : "gm");
    made.set(mode, found);
    return found;
  };
  const write = (upto: number): void => {
    const text = code.slice(written, upto);
    const { words, word } = compiled();
    let from = 0;
    written = upto;
    for (const { 0: name, index } of words.size > 0 ? text.matchAll(word) : []) {
      const scope = words.get(anyCase ? name.toLowerCase() : name);
      if (!scope) continue;
      const span = build(scope);
      span.append(name);
      node.append(text.slice(from, index), span);
      from = index + name.length;
    }
    node.append(text.slice(from));
  };

  for (let at = 0; ; ) {
    const { next } = compiled();
    next.lastIndex = at;
    const match = next.source === "(?:)" ? null : next.exec(code);
    if (!match) break;
    at = match.index + match[0].length;
    const [name = ""] =
      Object.entries(match.groups ?? {}).find(([, text]) => text !== undefined) ?? [];
    const inner = mode.contains?.[Number(name.slice(1))];
    if (inner) {
      write(match.index);
      open.push([mode, node]);
      mode = inner;
      if (inner.scope) node = enter(node, inner.scope, open.length);
    }
    // The end of this one, or one that is whole with its beginning.
    if (!inner?.end) {
      write(at);
      [mode, node] = open.pop() ?? [grammar, root];
    }
  }
  write(code.length);
  root.normalize();
  return root;
}
