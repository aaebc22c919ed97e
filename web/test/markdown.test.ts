import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { renderMarkdown } from "../src/md/render.ts";
import { MarkdownStream } from "../src/md/stream.ts";
import { HandPace } from "./pace.ts";
import { seeded } from "./seeded.ts";

const FOLDER = join(import.meta.dirname, "fixtures/markdown");
const FIXTURES = readdirSync(FOLDER)
  .sort()
  .map((name): [string, string] => [name, readFileSync(join(FOLDER, name), "utf8")]);

function oneShot(text: string): string {
  const host = document.createElement("div");
  host.append(...renderMarkdown(text));
  return host.innerHTML;
}

interface Streamed {
  html: string;
  /** Whether a block that had settled was touched again. */
  disturbed: boolean;
}

/** Streams the pieces with a paint after each, then ends with the whole text. */
function stream(pieces: string[], whole = pieces.join("")): Streamed {
  const host = document.createElement("div");
  const markdown = new MarkdownStream(host, () => undefined, new HandPace());
  const settled = new Map<Element, string>();
  for (const piece of pieces) {
    markdown.push(piece);
    markdown.flush();
    for (const child of host.children) {
      if (child.className !== "md-tail" && !settled.has(child)) settled.set(child, child.outerHTML);
    }
  }
  markdown.end(whole);
  const disturbed = [...settled].some(
    ([child, html]) => child.parentNode !== host || child.outerHTML !== html,
  );
  return { html: host.innerHTML, disturbed };
}

function cutAtRandom(text: string, random: (bound: number) => number): string[] {
  const pieces: string[] = [];
  for (let at = 0; at < text.length; ) {
    const size = 1 + random(random(4) === 0 ? 120 : 12);
    pieces.push(text.slice(at, at + size));
    at += size;
  }
  return pieces;
}

test.each(FIXTURES)("%s: any cut in two gives the one-shot page", (_name, text) => {
  const wanted = oneShot(text);
  for (let cut = 0; cut <= text.length; cut++) {
    expect(stream([text.slice(0, cut), text.slice(cut)]).html).toBe(wanted);
  }
});

// rules: W17
test.each(FIXTURES)("%s: any pieces give it, and no settled block is touched", (name, text) => {
  const wanted = oneShot(text);
  const random = seeded(5);
  const cuts = [text.split(""), ...Array.from({ length: 30 }, () => cutAtRandom(text, random))];
  for (const pieces of cuts) {
    const { html, disturbed } = stream(pieces);
    expect(html).toBe(wanted);
    // A definition at the end may turn earlier words into links: then all is made once more.
    if (name !== "definitions.md") expect(disturbed).toBe(false);
  }
});

const SCRAPS =
  "a|b c|\n|\n|\n\n|- |* |1. |2) |> |    |  |```|``|`|~~~|#| |## |¦| ¦ |¦--¦|---|===|**|*|_|[x]|[y](z)|[z]: /u|<div>|</div>|<!--|-->|\t|2|&amp;|<b>|- [ ] |![i](j)|https://a.b|\\|+|<pre>|<a>|<?|~|\r"
    .split("|")
    .map((scrap) => scrap.replaceAll("¦", "|"));

test("texts made of scraps of syntax give the one-shot page, character by character", () => {
  const random = seeded(23);
  for (let round = 0; round < 800; round++) {
    const scraps = Array.from({ length: 3 + random(22) }, () => SCRAPS[random(SCRAPS.length)]);
    const text = scraps.join("");
    expect(stream(text.split("")).html, JSON.stringify(text)).toBe(oneShot(text));
  }
});

// rules: C1.8
test("an end that tells another text than the deltas did is what is shown", () => {
  const { html } = stream(["# Deltas\n\n", "one\n\n", "two"], "*The truth*");
  expect(html).toBe(oneShot("*The truth*"));
});

test("an empty answer leaves an empty host", () => {
  expect(stream([], "").html).toBe("");
});

test("an open fence is one text node that only grows, and stays when it has closed", () => {
  const host = document.createElement("div");
  const markdown = new MarkdownStream(host, () => undefined, new HandPace());
  const lines = ["Look:\n\n", "```js\n", "let a = 1;\n", "let b", " = 2;\n"];
  for (const line of lines) {
    markdown.push(line);
    markdown.flush();
  }
  const text = host.querySelector("pre > code")?.firstChild as Text;
  expect(text.data).toBe("let a = 1;\nlet b = 2;");
  markdown.push("``");
  markdown.flush();
  expect(text.data).toBe("let a = 1;\nlet b = 2;");
  markdown.push("`\n\nAnd more text.\n\nEnd");
  markdown.flush();
  expect(host.querySelector("pre > code")?.firstChild).toBe(text);
  expect(text.data).toBe("let a = 1;\nlet b = 2;");
  markdown.dispose();
});

test("a settled code block is told once, an open one not", () => {
  const told: string[] = [];
  const host = document.createElement("div");
  const tell = (block: Element): void => {
    for (const code of block.querySelectorAll("pre > code")) told.push(code.textContent);
  };
  const markdown = new MarkdownStream(host, tell, new HandPace());
  markdown.push("```py\nx = 1\n");
  markdown.flush();
  expect(told).toEqual([]);
  markdown.push("```\n\nText.\n\n- item\n  ```sh\n  ls\n  ```\n");
  markdown.flush();
  markdown.end("```py\nx = 1\n```\n\nText.\n\n- item\n  ```sh\n  ls\n  ```\n");
  expect(told).toEqual(["x = 1", "ls"]);
});

test("text is painted at most every 80 ms, a long tail every 250 ms, at once at the end", () => {
  const pace = new HandPace();
  const host = document.createElement("div");
  const markdown = new MarkdownStream(host, () => undefined, pace);
  markdown.push("one");
  pace.pass(0);
  expect(host.textContent).toBe("one");
  markdown.push(" two");
  pace.pass(79);
  expect(host.textContent).toBe("one");
  pace.pass(1);
  expect(host.textContent).toBe("one two");
  markdown.push(` ${"long ".repeat(2_000)}`);
  pace.pass(100);
  expect(host.textContent).toBe("one two");
  pace.pass(150);
  expect(host.textContent.length).toBeGreaterThan(9_000);
  markdown.end("one two");
  expect(host.textContent).toBe("one two");
  expect(pace.pending).toBe(0);
});

test("nothing is painted while hidden, all of it when the page is seen again", () => {
  const pace = new HandPace();
  const host = document.createElement("div");
  const markdown = new MarkdownStream(host, () => undefined, pace);
  pace.setHidden(true);
  markdown.push("unseen");
  pace.pass(5_000);
  expect(host.textContent).toBe("");
  pace.setHidden(false);
  pace.pass(80);
  expect(host.textContent).toBe("unseen");
  markdown.dispose();
});

// rules: C1.6
test("a partial replaces the text, and deltas go on from there", () => {
  const host = document.createElement("div");
  const markdown = new MarkdownStream(host, () => undefined, new HandPace());
  markdown.push("First paragraph.\n\nSecond\n\nthird");
  markdown.flush();
  markdown.replace("Another start");
  markdown.push(" goes on");
  markdown.flush();
  expect(host.textContent).toBe("Another start goes on");
  markdown.end("Another start goes on");
  expect(host.innerHTML).toBe(oneShot("Another start goes on"));
});

test("a text nested beyond reason is shown as it stands", () => {
  const deep = `${"> ".repeat(4_000)}x`;
  expect(stream([deep]).html).toBe(oneShot(deep));
  expect(oneShot(deep)).toContain("&gt; &gt; &gt;");
});
