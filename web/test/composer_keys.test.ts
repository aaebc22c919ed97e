import { describe, expect, test } from "vitest";
import { type KeyLike, sends } from "../src/ui/hooks/composer_keys.ts";

const ENTER: KeyLike = {
  key: "Enter",
  keyCode: 13,
  isComposing: false,
  shiftKey: false,
  ctrlKey: false,
  metaKey: false,
  altKey: false,
};
const LONG_AGO = 10_000;

// rules: W10
describe.each([
  { name: "Enter", press: {}, fine: true, coarse: false },
  { name: "Shift+Enter", press: { shiftKey: true }, fine: false, coarse: false },
  { name: "Alt+Enter", press: { altKey: true }, fine: false, coarse: false },
  { name: "Ctrl+Enter", press: { ctrlKey: true }, fine: true, coarse: true },
  { name: "Cmd+Enter", press: { metaKey: true }, fine: true, coarse: true },
  { name: "Ctrl+Shift+Enter", press: { ctrlKey: true, shiftKey: true }, fine: true, coarse: true },
  {
    name: "another key",
    press: { key: "a", keyCode: 65, ctrlKey: true },
    fine: false,
    coarse: false,
  },
])("$name", ({ press, fine, coarse }) => {
  test(`${fine ? "sends" : "does not send"} with a mouse`, () => {
    expect(sends({ ...ENTER, ...press }, false, LONG_AGO)).toBe(fine);
  });

  test(`${coarse ? "sends" : "does not send"} on glass`, () => {
    expect(sends({ ...ENTER, ...press }, true, LONG_AGO)).toBe(coarse);
  });
});

// rules: W11
describe("an Enter that confirms a candidate never sends", () => {
  test.each([{}, { ctrlKey: true }, { metaKey: true }])("while composing, with %j", (press) => {
    expect(sends({ ...ENTER, ...press, isComposing: true }, false, LONG_AGO)).toBe(false);
    expect(sends({ ...ENTER, ...press, keyCode: 229 }, false, LONG_AGO)).toBe(false);
  });

  test("within 30 ms of the end of a composition, as Safari sends it", () => {
    expect(sends(ENTER, false, 0)).toBe(false);
    expect(sends(ENTER, false, 29)).toBe(false);
    expect(sends(ENTER, false, 30)).toBe(true);
  });
});
