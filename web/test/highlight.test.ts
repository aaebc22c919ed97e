import { expect, test } from "vitest";
import { parseHighlighted } from "../src/md/coloured.ts";
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

test("output that is not the highlighter's stays text", () => {
  const host = document.createElement("div");
  host.append(parseHighlighted('<img src=x onerror=alert(1)>&copy;</span></span><span id="x">y'));
  expect(host.childElementCount).toBe(0);
  expect(host.textContent).toBe('<img src=x onerror=alert(1)>&copy;<span id="x">y');
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
