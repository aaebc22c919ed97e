import assert from "node:assert/strict";
import { test } from "node:test";

import { byPrice, total } from "../src/cart.js";
import { parsePrice } from "../src/price.js";

test("cents are whole", () => {
  assert.equal(parsePrice("1.15"), 115);
  assert.equal(total([["0.29", 1], ["1.15", 3]]), 374);
});

test("what is no price is refused", () => {
  assert.throws(() => parsePrice("free"), TypeError);
});

test("lines are sorted by number, and those given stay", () => {
  const lines = [["10.00", 1], ["9.50", 1]];
  assert.deepEqual(byPrice(lines), [["9.50", 1], ["10.00", 1]]);
  assert.deepEqual(lines[0], ["10.00", 1]);
});
