/** Markdown tokens to DOM nodes. No HTML string is made or read on the way. */

import type { Token, Tokens } from "marked";
import { t } from "../core/i18n.ts";
import { decodeEntities } from "./entities.ts";
import { lexBlocks, normalizeLines } from "./lex.ts";
import { allowImage, allowLink } from "./links.ts";

/** Deeper blocks are shown as their text. */
const MAX_DEPTH = 24;

/** The page has one `h1` and each turn's region an `h2`, so a message's headings start below. */
const FIRST_HEADING = 3;
const LAST_HEADING = 6;

/** An element with a class and children. */
export function build(tag: string, className = "", ...children: (Node | string)[]): HTMLElement {
  const element = document.createElement(tag);
  if (className) element.className = className;
  element.append(...children);
  return element;
}

/** A code block and the text node that carries its code. */
export interface CodeBlock {
  root: HTMLElement;
  code: HTMLElement;
  text: Text;
}

/** The first word of a fence's info line, as a language name; empty when there is none. */
export function readLanguage(info: string | undefined): string {
  return /^[\w+#.-]+/.exec(info ?? "")?.[0].toLowerCase() ?? "";
}

/** A code block with its language and a copy button; the code is one text node. */
export function buildCode(source: string, language: string): CodeBlock {
  const text = document.createTextNode(source);
  const code = build("code", "", text);
  if (language) code.dataset.language = language;
  const pre = build("pre", "", code);
  pre.tabIndex = 0;
  const copy = build("button", "code-copy", t("copy"));
  copy.setAttribute("type", "button");
  copy.dataset.copy = "code";
  const bar = build("div", "code-bar", build("span", "", language || t("code")), copy);
  return { root: build("div", "code", bar, pre), code, text };
}

function renderAll(tokens: Token[] | undefined, depth: number): Node[] {
  return (tokens ?? []).flatMap((token) => renderToken(token, depth));
}

function renderLink(token: Tokens.Link, depth: number): Node[] {
  const children = renderAll(token.tokens, depth);
  const href = allowLink(decodeEntities(token.href));
  if (href === undefined) return children;
  const link = build("a", "", ...children);
  link.setAttribute("href", href);
  if (token.title) link.title = decodeEntities(token.title);
  if (!href.startsWith("#")) {
    link.setAttribute("target", "_blank");
    link.setAttribute("rel", "noopener noreferrer");
  }
  return [link];
}

function renderImage(token: Tokens.Image, depth: number): Node[] {
  const label = decodeEntities(token.text);
  const source = allowImage(decodeEntities(token.href), location.origin);
  if (source === undefined) {
    const text: Token = { type: "escape", raw: token.raw, text: label || token.href };
    return renderLink({ ...token, type: "link", tokens: [text] }, depth);
  }
  const image = build("img");
  image.setAttribute("src", source);
  image.setAttribute("alt", label);
  image.setAttribute("loading", "lazy");
  return [image];
}

function renderItem(item: Tokens.ListItem, depth: number): Node {
  return build("li", item.task ? "task" : "", ...renderAll(item.tokens, depth));
}

function renderList(token: Tokens.List, depth: number): Node {
  const list = build(token.ordered ? "ol" : "ul");
  if (token.ordered && token.start !== 1) list.setAttribute("start", String(token.start));
  list.append(...token.items.map((item) => renderItem(item, depth)));
  return list;
}

function renderCheckbox(token: Tokens.Checkbox): Node {
  const box = build("input");
  box.setAttribute("type", "checkbox");
  box.setAttribute("disabled", "");
  box.setAttribute("aria-label", t(token.checked ? "task.done" : "task.open"));
  if (token.checked) box.setAttribute("checked", "");
  return box;
}

function renderCell(cell: Tokens.TableCell, tag: string, depth: number): Node {
  return build(tag, cell.align ? `align-${cell.align}` : "", ...renderAll(cell.tokens, depth));
}

function renderTable(token: Tokens.Table, depth: number): Node {
  const head = build("tr", "", ...token.header.map((cell) => renderCell(cell, "th", depth)));
  const rows = token.rows.map((row) =>
    build("tr", "", ...row.map((cell) => renderCell(cell, "td", depth))),
  );
  const table = build("table", "", build("thead", "", head), build("tbody", "", ...rows));
  const frame = build("div", "table", table);
  frame.tabIndex = 0;
  return frame;
}

function renderHtml(token: Tokens.HTML | Tokens.Tag): Node {
  if (token.block) return build("p", "raw", token.raw.trimEnd());
  // The one tag that writers of tables cannot do without.
  return /^<br\s*\/?>$/i.test(token.raw) ? build("br") : document.createTextNode(token.raw);
}

function renderHeading(token: Tokens.Heading, depth: number): Node {
  const level = Math.min(FIRST_HEADING - 1 + token.depth, LAST_HEADING);
  return build(`h${level}`, `size-${token.depth}`, ...renderAll(token.tokens, depth));
}

function renderText(token: Tokens.Text, depth: number): Node[] {
  if (token.tokens) return renderAll(token.tokens, depth);
  return [document.createTextNode(decodeEntities(token.text))];
}

type Renderer = (token: never, depth: number) => Node | Node[];

/** One renderer for each kind of token; a kind that is not here is shown as it was written. */
const RENDERERS: Record<string, Renderer> = {
  blockquote: (token: Tokens.Blockquote, depth) =>
    build("blockquote", "", ...renderAll(token.tokens, depth)),
  br: () => build("br"),
  checkbox: renderCheckbox,
  code: (token: Tokens.Code) => buildCode(token.text, readLanguage(token.lang)).root,
  codespan: (token: Tokens.Codespan) => build("code", "", token.text),
  def: () => [],
  del: (token: Tokens.Del, depth) => build("del", "", ...renderAll(token.tokens, depth)),
  em: (token: Tokens.Em, depth) => build("em", "", ...renderAll(token.tokens, depth)),
  escape: (token: Tokens.Escape) => document.createTextNode(token.text),
  heading: renderHeading,
  hr: () => build("hr"),
  html: renderHtml,
  image: renderImage,
  link: renderLink,
  list: renderList,
  paragraph: (token: Tokens.Paragraph, depth) => build("p", "", ...renderAll(token.tokens, depth)),
  space: () => [],
  strong: (token: Tokens.Strong, depth) => build("strong", "", ...renderAll(token.tokens, depth)),
  table: renderTable,
  text: renderText,
};

/** The nodes of one token. */
export function renderToken(token: Token, depth = 0): Node[] {
  const render = depth > MAX_DEPTH ? undefined : RENDERERS[token.type];
  if (!render) return [document.createTextNode(token.raw)];
  const made = render(token as never, depth + 1);
  return Array.isArray(made) ? made : [made];
}

/** The nodes of a whole text. */
export function renderMarkdown(text: string): Node[] {
  return renderAll(lexBlocks(normalizeLines(text)).tokens, 0);
}
