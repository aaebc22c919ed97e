import { describe, expect, test } from "vitest";
import { countDiff, type DiffRow, pairRows, parseDiff } from "../src/core/diff.ts";

const DIFF = `--- a/app.py
+++ b/app.py
@@ -1,4 +1,4 @@ def main
 import os
-PORT = 8000
--- not a head
+PORT = 8080
++++ nor this
 # end
@@ -20 +20,2 @@
-last
+last
+ more
\\ No newline at end of file
--- a/b
+++ b/b
@@ -0,0 +1 @@
+😀
`;

const brief = ({ kind, text, old, now }: DiffRow): string => `${kind} ${old} ${now} ${text}`;

describe("a unified diff", () => {
  // rules: W27
  test("has a number for each line, and heads only where hunks are over", () => {
    expect(parseDiff(DIFF).map(brief)).toEqual([
      "file 0 0 --- a/app.py",
      "file 0 0 +++ b/app.py",
      "hunk 0 0 @@ -1,4 +1,4 @@ def main",
      "same 1 1 import os",
      "del 2 0 PORT = 8000",
      "del 3 0 -- not a head",
      "add 0 2 PORT = 8080",
      "add 0 3 +++ nor this",
      "same 4 4 # end",
      "hunk 0 0 @@ -20 +20,2 @@",
      "del 20 0 last",
      "add 0 20 last",
      "add 0 21  more",
      "note 0 0 \\ No newline at end of file",
      "file 0 0 --- a/b",
      "file 0 0 +++ b/b",
      "hunk 0 0 @@ -0,0 +1 @@",
      "add 0 1 😀",
    ]);
  });

  test.each([
    ["", ["note 0 0 "]],
    ["+x\n-y\nz", ["add 0 0 x", "del 0 0 y", "note 0 0 z"]],
    ["@@ -1,2 +1,2 @@\n a\nBinary", ["hunk 0 0 @@ -1,2 +1,2 @@", "same 1 1 a", "note 0 0 Binary"]],
    ["@@ -1,2 +1,2 @@\n a\n\n", ["hunk 0 0 @@ -1,2 +1,2 @@", "same 1 1 a", "same 2 2 "]],
  ])("that is broken or cut loses nothing: %j", (text, rows) => {
    expect(parseDiff(text).map(brief)).toEqual(rows);
  });

  test("is counted", () => {
    expect(countDiff([DIFF, "+one"])).toEqual({ added: 6, removed: 3 });
  });

  // rules: W27
  test("stands side by side with what came in each line's place", () => {
    const sides = pairRows(parseDiff(DIFF)).map(
      ({ left, right }) => `${left?.text ?? ""} | ${right?.text ?? ""}`,
    );
    expect(sides.slice(2, 8)).toEqual([
      "@@ -1,4 +1,4 @@ def main | ",
      "import os | import os",
      "PORT = 8000 | PORT = 8080",
      "-- not a head | +++ nor this",
      "# end | # end",
      "@@ -20 +20,2 @@ | ",
    ]);
    expect(sides.slice(8, 10)).toEqual(["last | last", " |  more"]);
  });
});
