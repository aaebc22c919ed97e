import { readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { EN } from "../src/core/words.en.ts";

const ROOT = join(import.meta.dirname, "..");
const DIST = join(ROOT, "../packages/server/src/towline_server/web/dist");

function listFiles(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
}

const SOURCES = [...listFiles(join(ROOT, "src")), ...listFiles(join(ROOT, "test"))]
  .filter((path) => /\.tsx?$/.test(path) && !path.endsWith(".gen.ts"))
  .map((path): [string, string] => [relative(ROOT, path), readFileSync(path, "utf8")]);
const SHIPPED = SOURCES.filter(([path]) => path.startsWith("src/"));

test("no file is longer than 400 lines", () => {
  const long = SOURCES.filter(([, text]) => text.split("\n").length > 400);
  expect(long.map(([path]) => path)).toEqual([]);
});

// rules: W25
test("no source makes elements out of strings, or runs one", () => {
  const banned =
    /innerHTML|outerHTML|insertAdjacentHTML|document\.write|createContextualFragment|DOMParser|dangerouslySetInnerHTML|\beval\(|new Function|style="/;
  expect(SHIPPED.filter(([, text]) => banned.test(text)).map(([path]) => path)).toEqual([]);
});

test("the core knows neither the screen nor the platform, and the words no file above them", () => {
  const above: [folder: string, banned: RegExp][] = [
    ["src/core/", /from "(?:preact|@preact|\.\.\/(?:platform|state|ui|md)\/)/],
    ["src/protocol/", /from "(?:preact|@preact|\.\.\/)/],
    ["src/platform/", /from "(?:preact|@preact|\.\.\/(?:state|ui|md)\/)/],
    ["src/md/", /from "(?:preact|@preact|\.\.\/(?:state|ui)\/)/],
    ["src/state/", /from "\.\.\/ui\//],
  ];
  const found = above.flatMap(([folder, banned]) =>
    SHIPPED.filter(([path, text]) => path.startsWith(folder) && banned.test(text)),
  );
  expect(found.map(([path]) => path)).toEqual([]);
});

test("every word of the page comes from the word lists", () => {
  const bare = /[^=]>\s*[A-Z][a-z]+(?: [a-z]+)*[.!?]?\s*<\//;
  const spoken = /(?:aria-label|title|placeholder|alt)="[A-Z][a-z]/;
  const found = SHIPPED.filter(
    ([path, text]) => path.endsWith(".tsx") && (bare.test(text) || spoken.test(text)),
  );
  expect(found.map(([path]) => path)).toEqual([]);
});

test("what the first screen says is in the words that it has", () => {
  const later = SHIPPED.filter(([, text]) =>
    /words\.(?:later|device|push|settings|code)\.ts/.test(text),
  ).map(([path]) => path);
  const missing = SHIPPED.filter(([path]) => !later.includes(path)).flatMap(([path, text]) =>
    [...text.matchAll(/\bt\(\s*"([^"]+)"/g)]
      .filter(([, word]) => !Object.hasOwn(EN, word ?? ""))
      .map(([, word]) => `${path}: ${word}`),
  );
  expect(later.length).toBeGreaterThan(3);
  expect(missing).toEqual([]);
});

// rules: W19
test("the built page stays within its budgets", () => {
  const packed = (name: string): number =>
    gzipSync(readFileSync(join(DIST, name)), { level: 9 }).length;
  const sum = (names: string[]): number => names.reduce((bytes, name) => bytes + packed(name), 0);
  const document = readFileSync(join(DIST, "index.html"), "utf8");
  const first = [...document.matchAll(/(?:src|href)="\/([^"]+)"/g)].map(([, name]) => name ?? "");
  const scripts = first.filter((name) => name.endsWith(".js"));
  const all = listFiles(DIST).map((path) => relative(DIST, path));
  expect(sum(scripts)).toBeLessThanOrEqual(45 * 1024);
  expect(sum(all.filter((name) => name.endsWith(".js")))).toBeLessThanOrEqual(120 * 1024);
  expect(sum(all.filter((name) => name.endsWith(".css")))).toBeLessThanOrEqual(12 * 1024);
  // The document itself, and on a wide screen the list of sessions.
  expect(first.length + 2).toBeLessThanOrEqual(8);
});

test("the built page loads nothing from elsewhere and has nothing inline", () => {
  const document = readFileSync(join(DIST, "index.html"), "utf8");
  expect(document).not.toMatch(/<style|style=|https?:|<script(?![^>]* src=)|\son\w+=/);
  expect(listFiles(DIST).some((path) => /fixture|views/.test(path))).toBe(false);
});
