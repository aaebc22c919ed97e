import { expect, test } from "vitest";
import { complete, readSlash, tokenAt } from "../src/core/token.ts";

test.each([
  ["/", "command", ""],
  ["/co", "command", "co"],
  ["/my-own_1", "command", "my-own_1"],
  ["@", "path", ""],
  ["see @src/ap", "path", "src/ap"],
  ['see @"a', "path", "a"],
  ["a\n@x", "path", "x"],
])("%j asks for a %s that begins with %j", (text, kind, word) => {
  expect(tokenAt(text, text.length)).toMatchObject({ kind, word });
});

test.each(["", "hello", "/co pact", "a /co", "ada@host", "@a b", "/a/b"])(
  "%j asks for nothing",
  (text) => {
    expect(tokenAt(text, text.length)).toBeNull();
  },
);

test("what stands behind the caret is no part of the token", () => {
  expect(tokenAt("@ab later", 2)).toMatchObject({ word: "a", from: 0, to: 2 });
});

test.each([
  ["/co", "compact", "/compact |"],
  ["/co rest", "compact", "/compact |rest"],
  ["see @sr", "src/app.py", "see @src/app.py |"],
  ["see @sr", "src/", "see @src/|"],
  ['see @"sr', "src/a.py", "see @src/a.py |"],
  ["@my", "my notes/a (1).md", '@"my notes/a (1).md" |'],
  ["@my", "my notes/", '@"my notes/|'],
])("%j with %j is %j", (text, choice, wanted) => {
  const caret = text.includes(" rest") ? 3 : text.length;
  const token = tokenAt(text, caret);
  if (!token) throw new Error("no token");
  const [next, place] = complete(text, token, choice);
  expect(`${next.slice(0, place)}|${next.slice(place)}`).toBe(wanted);
});

test.each([
  ["/compact", { name: "compact", words: "" }],
  [" /model local/x ", { name: "model", words: "local/x" }],
  ["/review a\nb", { name: "review", words: "a\nb" }],
  ["/etc/hosts", null],
  ["/Big", null],
  ["compact", null],
])("%j as a command is %j", (text, wanted) => {
  expect(readSlash(text)).toEqual(wanted);
});
