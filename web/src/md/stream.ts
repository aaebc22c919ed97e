/** A Markdown text that grows: finished blocks settle for good, only the tail is made again. */

import type { Token } from "marked";
import remend from "remend";
import { lexBlocks, normalizeLines } from "./lex.ts";
import {
  build,
  buildCode,
  type CodeBlock,
  readLanguage,
  renderMarkdown,
  renderToken,
} from "./render.ts";

/** Between two paints of a growing text, in milliseconds: ten a second read as continuous. */
const FLUSH_MS = 80;
/** The same for a tail that is itself long, because all of it is lexed each time. */
const LONG_FLUSH_MS = 250;
const LONG_TAIL_UNITS = 8 * 1024;

/** Completion of half-open marks; what the finished text would not show is switched off. */
const REMEND = {
  linkMode: "text-only",
  comparisonOperators: false,
  htmlTags: false,
  katex: false,
  singleTilde: false,
} as const;

/** The clock of a stream, given so that a test can hold it. */
export interface Pace {
  /** Milliseconds of a clock that only goes forward. */
  now(): number;
  /** Runs once after a time; the answer takes it back. */
  after(ms: number, run: () => void): () => void;
  /** Whether nobody can see the page now. */
  hidden(): boolean;
  /** Tells each change of that; the answer ends it. */
  onVisibility(run: () => void): () => void;
}

/** The pace of a real page. */
export const PAGE_PACE: Pace = {
  now: () => performance.now(),
  after: (ms, run) => {
    const timer = setTimeout(run, ms);
    return () => clearTimeout(timer);
  },
  hidden: () => document.visibilityState === "hidden",
  onVisibility: (run) => {
    document.addEventListener("visibilitychange", run);
    return () => document.removeEventListener("visibilitychange", run);
  },
};

interface OpenFence {
  block: CodeBlock;
  /** A line that closes it. */
  closing: RegExp;
  /** The beginning of such a line, which is held back so that it never flashes up as code. */
  mayClose: RegExp;
  /** Where the code begins, how far it is shown, and how far whole lines were looked at. */
  start: number;
  shown: number;
  scanned: number;
}

const FENCE = /^(`{3,}|~{3,})([^\n]*)\n/;

/** Block borders, without the blank lines that the lexer gives now to one block, now to none. */
function outline(tokens: Token[]): string[] {
  return tokens
    .filter((token) => token.type !== "space")
    .map((token) => `${token.type}:${token.raw.replace(/\n+$/, "")}`);
}

/** A fenced block in text of whole lines: an open one runs to the end, line feed included. */
function isClosedFence(token: Token): boolean {
  return token.type === "code" && FENCE.test(token.raw) && !token.raw.endsWith("\n");
}

/** Streams one message into a host element. */
export class MarkdownStream {
  readonly #host: HTMLElement;
  readonly #tail = build("div", "md-tail");
  readonly #pace: Pace;
  readonly #onSettled: (block: Element) => void;
  readonly #unwatch: () => void;
  #text = "";
  /** A CR at the end of a delta: whether it is half of a CRLF is not known yet. */
  #heldCr = "";
  #settled = 0;
  #scanned = 0;
  #borders: string[] = [];
  #defines = false;
  #fence: OpenFence | undefined;
  #painted = "";
  #flushedAt = Number.NEGATIVE_INFINITY;
  #cancel: (() => void) | undefined;
  #ended = false;

  /**
   * @param host an element that this stream alone writes to
   * @param onSettled told each block when it has settled, for colouring
   */
  constructor(host: HTMLElement, onSettled: (block: Element) => void, pace: Pace = PAGE_PACE) {
    this.#host = host;
    this.#onSettled = onSettled;
    this.#pace = pace;
    host.replaceChildren(this.#tail);
    this.#unwatch = pace.onVisibility(() => this.#schedule());
  }

  /** Adds text at the end; it shows with the next flush. */
  push(delta: string): void {
    if (this.#ended) return;
    const whole = this.#heldCr + delta;
    this.#heldCr = whole.endsWith("\r") ? "\r" : "";
    this.#text += normalizeLines(this.#heldCr ? whole.slice(0, -1) : whole);
    this.#schedule();
  }

  /** Puts another text in place of all there is, as a `partial` frame does. */
  replace(text: string): void {
    if (this.#ended) return;
    this.#reset();
    this.#host.replaceChildren(this.#tail);
    this.push(text);
  }

  /** The whole text, now final. What was built from its beginning stays in place. */
  end(text: string): void {
    if (this.#ended) return;
    this.dispose();
    const whole = normalizeLines(text);
    if (whole.startsWith(this.#text)) {
      this.#text = whole;
      this.#settle(whole.length, true);
      this.#tail.remove();
      if (this.#agrees(whole)) return;
    }
    const nodes = renderMarkdown(whole);
    this.#host.replaceChildren(...nodes);
    this.#tell(nodes);
  }

  /** Stops all timers; the text stays as it is shown. */
  dispose(): void {
    this.#ended = true;
    this.#cancel?.();
    this.#cancel = undefined;
    this.#unwatch();
  }

  /** Shows what has come so far. */
  flush(): void {
    this.#cancel?.();
    this.#cancel = undefined;
    this.#flushedAt = this.#pace.now();
    const lines = this.#text.lastIndexOf("\n") + 1;
    if (lines > this.#scanned) {
      this.#scanned = lines;
      if (!this.#fence || this.#fenceCloses(this.#fence, lines)) this.#settle(lines, false);
    }
    this.#paintTail();
  }

  #reset(): void {
    this.#text = "";
    this.#heldCr = "";
    this.#settled = 0;
    this.#scanned = 0;
    this.#borders = [];
    this.#defines = false;
    this.#fence = undefined;
    this.#painted = "";
    this.#tail.replaceChildren();
  }

  #schedule(): void {
    if (this.#ended || this.#cancel || this.#pace.hidden()) return;
    const long = this.#text.length - this.#settled > LONG_TAIL_UNITS && !this.#fence;
    const due = this.#flushedAt + (long ? LONG_FLUSH_MS : FLUSH_MS);
    const leftMs = due - this.#pace.now();
    if (leftMs > 0) this.#cancel = this.#pace.after(leftMs, () => this.flush());
    else this.flush();
  }

  /**
   * Makes blocks of `text[settled..upto]` final: all when the text has ended, else all but the last.
   *
   * Only whole lines are looked at: half a line may still become a list item or a heading rule that
   * changes the block before it.
   */
  #settle(upto: number, ended: boolean): void {
    const { tokens, defines } = lexBlocks(this.#text.slice(this.#settled, upto));
    let count = tokens.length;
    if (!ended) {
      const last = tokens.findLastIndex((token) => token.type !== "space");
      const open = tokens[last];
      count = open && isClosedFence(open) ? last + 1 : Math.max(last, 0);
    }
    this.#defines ||= defines;
    for (const token of tokens.slice(0, count)) {
      this.#place(token);
      this.#settled += token.raw.length;
    }
    while (this.#text[this.#settled] === "\n") this.#settled += 1;
    this.#borders.push(...outline(tokens.slice(0, count)));
  }

  #place(token: Token): void {
    const nodes = this.#takeFence(token) ?? renderToken(token);
    if (nodes.length === 0) return;
    this.#tail.before(...nodes);
    this.#tell(nodes);
    this.#painted = "";
  }

  /** The block that was shown while its fence was open: what a reader selected in it stays. */
  #takeFence(token: Token): Node[] | undefined {
    const fence = this.#fence;
    if (!fence || token.type !== "code") return undefined;
    this.#fence = undefined;
    if ((fence.block.code.dataset.language ?? "") !== readLanguage(token.lang)) return undefined;
    if (fence.block.text.data !== token.text) fence.block.text.data = token.text;
    return [fence.block.root];
  }

  /** Whether the blocks made one by one are the blocks of the whole text. */
  #agrees(whole: string): boolean {
    if (this.#defines) return false;
    const { tokens, defines } = lexBlocks(whole, true);
    const borders = outline(tokens);
    const same = borders.length === this.#borders.length;
    return same && !defines && borders.every((border, at) => border === this.#borders[at]);
  }

  #tell(nodes: Node[]): void {
    for (const node of nodes) if (node instanceof Element) this.#onSettled(node);
  }

  #paintTail(): void {
    const text = this.#text.slice(this.#settled);
    this.#fence ??= this.#openFence(text);
    if (this.#fence) {
      this.#growFence(this.#fence);
    } else if (text !== this.#painted) {
      this.#painted = text;
      const { tokens } = lexBlocks(remend(text, REMEND));
      this.#tail.replaceChildren(...tokens.flatMap((token) => renderToken(token)));
    }
  }

  #openFence(text: string): OpenFence | undefined {
    const head = FENCE.exec(text);
    const marker = head?.[1] ?? "";
    const info = head?.[2] ?? "";
    if (!head || (marker.startsWith("`") && info.includes("`"))) return undefined;
    const start = this.#settled + head[0].length;
    const block = buildCode("", readLanguage(info.trim()));
    this.#tail.replaceChildren(block.root);
    return {
      block,
      closing: new RegExp(`^ {0,3}${marker}[~\`]* *$`),
      mayClose: /^ {0,3}[~`]*[~` ]*$/,
      start,
      shown: start,
      scanned: start,
    };
  }

  #fenceCloses(fence: OpenFence, upto: number): boolean {
    const lines = this.#text.slice(fence.scanned, upto).split("\n");
    fence.scanned = upto;
    return lines.some((line) => fence.closing.test(line));
  }

  #growFence(fence: OpenFence): void {
    // The last line feed waits too: the one before the closing line is no part of the code.
    const lineStart = this.#text.lastIndexOf("\n") + 1;
    const open = this.#text.slice(Math.max(lineStart, fence.start));
    const upto = fence.mayClose.test(open) ? lineStart - 1 : this.#text.length;
    if (upto <= fence.shown) return;
    fence.block.text.appendData(this.#text.slice(fence.shown, upto));
    fence.shown = upto;
  }
}
