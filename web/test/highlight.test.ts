import type { Language } from "highlight.js";
import hljs from "highlight.js/lib/core";
import pythonOfLibrary from "highlight.js/lib/languages/python";
import { expect, test } from "vitest";
import { colourBy, type Grammar } from "../src/md/colouring.ts";
import * as grammars from "../src/md/grammars.ts";
import { colourCode } from "../src/md/highlight.ts";
import { colour } from "../src/md/languages.ts";
import { buildCode } from "../src/md/render.ts";

const CODE = `def f(x: str) -> bool:\n    """Doc & <tag>."""\n    return x == 'a' and "b" != f"{x}"\n`;

function shown(source: string, language: string): HTMLElement {
  const block = buildCode(source, language);
  document.body.append(block.root);
  return block.code;
}

test("colouring keeps every character and makes spans with classes only", async () => {
  const code = shown(CODE, "python");
  colourCode(
    code,
    (run) => run(),
    async () => colour,
  );
  await expect.poll(() => code.childElementCount).toBeGreaterThan(3);
  expect(code.textContent).toBe(CODE);
  for (const element of code.querySelectorAll("*")) {
    expect(element.tagName).toBe("SPAN");
    expect(element.getAttributeNames()).toEqual(["class"]);
  }
});

test("long code, unknown languages and a missing chunk leave the code plain", async () => {
  const asked: string[] = [];
  const load = async () => (source: string, language: string) => {
    asked.push(language);
    return colour(source, language);
  };
  const long = shown("x = 1\n".repeat(5_000), "python");
  colourCode(long, (run) => run(), load);
  const unknown = shown("blah", "klingon");
  colourCode(unknown, (run) => run(), load);
  const plain = shown("x = 1", "python");
  colourCode(
    plain,
    (run) => run(),
    () => Promise.reject(new Error("gone")),
  );
  await expect.poll(() => asked).toEqual(["klingon"]);
  expect([long, unknown, plain].map((code) => code.childElementCount)).toEqual([0, 0, 0]);
});

test.each([
  ["css", "@media print { .a:hover { color: #fff; width: 2.5em } /* wide */ }"],
  ["scss", "a { margin: -1px !important; }"],
  ["js", "const a = `x`; // note"],
  ["ts", "const a: Map<string, number> = new Map(); // `x`"],
  ["tsx", `return <p class={\`a \${on ? \`b \${c}\` : '}'} d\`}>{text}</p>;`],
  ["bash", `for f in *.txt; do echo "$f \${#f} $(wc -l < "$f")"; done # all`],
  ["sh", "cat <<'EOF' > out\nif $x then\nEOF\nexport A=1"],
  ["yaml", "a: 1 # note\nb-c:\n  - d: 'x'\n  - true"],
  ["toml", '[tool.ruff]\nline-length = 100\nname = "x"'],
  ["ini", "; note\n[a]\nb=2"],
  ["html", '<!-- note --><p class="a">x &amp; y</p>'],
  ["markdown", "# Head\n\n- a **b** `c` [d](e)\n"],
  ["c", "#include <a.h>\nint main(void) { return 0; }"],
  ["rust", "pub fn f(x: &'a str) -> u8 { 'b' }"],
  ["ruby", "def f\n  puts 'x' # say\nend"],
  ["php", '<?php function f() { return "x"; }'],
  ["sql", "SELECT 'it''s' FROM t WHERE a = 1 -- all"],
])("%s is coloured, and every character stays", (language, source) => {
  const host = document.createElement("code");
  const made = colour(source, language);
  host.append(made as Node);
  expect(host.textContent).toBe(source);
  expect(host.querySelectorAll("span").length).toBeGreaterThanOrEqual(2);
});

test.each([
  ["ts", "a / b / c", []],
  ["ts", "x = /[/`]\\/'/g.test(s) // no", ["/[/`]\\/'/g", "test", "// no"]],
  [
    "ts",
    `\`a \${f({ b: '}' })}\``,
    [`\`a \${f({ b: '}' })}\``, `\${f({ b: '}' })}`, "f", "b", "'}'"],
  ],
  ["ts", "class Tow extends Line {}", ["class", "Tow", "extends", "Line"]],
  ["bash", `a#b $# \${x#y} # c`, ["$#", `\${x#y}`, "# c"]],
  ["yaml", 'a: 1 # n\n"b c": it\'s', ["a", "1", "# n", '"b c"']],
  ["yaml", "- at: 10:30\n  on: &x http://a.b/c#d", ["at", "10:30", "on", "&x"]],
  ["json", '{"a": [1, "#b", null],\n "c:d": -2e5}', ['"a"', "1", '"#b"', "null", '"c:d"', "-2e5"]],
  ["diff", "--- a\n+++ b\n@@ -1 +1 @@\n-x\n+y\n z", ["--- a", "+++ b", "@@ -1 +1 @@", "-x", "+y"]],
  ["toml", "[a.b]\nc = [1, 'd']", ["[a.b]", "c", "1", "'d'"]],
  ["html", "<a href='#'>b</a>", ["a", "href", "'#'", "a"]],
  ["md", "## A\n1. *b* `c`", ["## A", "1.", "*b*", "`c`"]],
  ["bash", "./done.sh --if=1", []],
  ["bash", "echo 'it $is' \"$it\"", ["echo", "'it $is'", '"$it"', "$it"]],
])("in %s, %s has these parts", (language, source, parts) => {
  const host = document.createElement("code");
  host.append(colour(source, language) as Node);
  expect([...host.querySelectorAll("span")].map((span) => span.textContent)).toEqual(parts);
});

const GRAMMARS = { ...grammars };
const SAMPLES: Record<keyof typeof GRAMMARS, string> = {
  bash: `#!/bin/sh\nfor f in *.txt; do echo "$f \${#f} $(wc -l < "$f")" 'a'; done # OPTIMIZE: all\ncat <<'EOF' > out\nif $x\nEOF\nexport A=1`,
  common: `#include <a.h>\n/* NOTE: more */ pub fn f(x: &'a str) -> u8 { return g("\\"b", 0x1f, -2.5e3); } # n`,
  css: "@media print { .a:HOVER, #b { Color: #FFF; margin: -1.5em !important } /* NOTE: wide */ }",
  diff: "--- a\n+++ b\n@@ -1 +1 @@\n-x\n+y\n z",
  markdown: "# Head\n\n```js\nlet a\n```\n- a **b** `c` *d* [e](f)\n> g\n",
  pairs: "[a.b]\n; note\n- at: 10:30 # n\n  on: &x http://a.b/c#d\n\"c d\": 'e'\nf = [true, -2e5]",
  python: `@wraps(f, a=1)  # why\nclass Näme(Base):\n    async def g(self, x: str = "a", *, n=1_000) -> bool:\n        """Doc.\n\n        >>> 1\n        """\n        y = f"{x!r} {{no}} {n:04}" if"" or self.z else rb'\\x'  # type: int\n        return 0x1F + .5e-3 + 2j`,
  sql: "SELECT 'it''s', count(*) FROM t WHERE a = 1.5 AND NOT b -- BUG: all",
  typescript: `@dec class A<T> extends B { #x?: number = /[/\`]\\/'/g.test(s) ? 1 : 0xff; }\nconst s = \`a \${f({ b: '}' })} \\\` c\`; // ok`,
  xml: `<!DOCTYPE a><!-- BUG: b --><p class="a" id='b'>x &amp; y</p>`,
};

test.each(Object.entries(SAMPLES))("%s is coloured as the library does it", (name, source) => {
  const { anyCase = false, ...own }: Grammar = GRAMMARS[name as keyof typeof GRAMMARS]();
  hljs.registerLanguage(name, () => ({ case_insensitive: anyCase, ...own }) as Language);
  const host = document.createElement("code");
  host.append(colourBy({ anyCase, ...own }, source));
  const { value } = hljs.highlight(source, { language: name });
  expect(host.innerHTML.replaceAll("&nbsp;", " ")).toBe(
    value.replaceAll("&quot;", '"').replaceAll("&#x27;", "'"),
  );
});

test("the small grammar of Python gives each character the colour of the library's own", () => {
  const seen = (node: Node, kind: string): string[] =>
    [...node.childNodes].flatMap((child) =>
      child instanceof Element
        ? seen(
            child,
            /hljs-(?:params|subst)/.test(child.className) ? kind : (child.classList[0] ?? ""),
          )
        : [...(child.textContent ?? "")].map((char) => `${char} ${kind}`),
    );
  hljs.registerLanguage("whole", pythonOfLibrary);
  const host = document.createElement("code");
  host.innerHTML = hljs.highlight(SAMPLES.python, { language: "whole" }).value;
  expect(seen(colour(SAMPLES.python, "python") as Node, "")).toEqual(seen(host, ""));
});

test("a word that every object knows is a word like any other", () => {
  expect(colour("constructor(toString)", "ts")?.textContent).toBe("constructor(toString)");
});
