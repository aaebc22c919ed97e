import { expect, test } from "vitest";
import {
  afterTry,
  type Entry,
  faultOf,
  LIFE_MS,
  makeEntry,
  send,
  settle,
  tick,
} from "../src/core/outbox.ts";
import { type Deed, type OutboxCase, outboxEntry, patched, readCases } from "./cases.ts";
import { seeded } from "./seeded.ts";

const CASES = readCases<OutboxCase>("outbox");

function apply(entry: Entry, deed: Deed): Entry {
  switch (deed.type) {
    case "send":
      return send(entry, deed.now_ms ?? 0);
    case "tick":
      return tick(entry, deed.now_ms ?? 0);
    case "try":
      return afterTry(entry, deed.attempt, deed.outcome, deed.now_ms ?? 0);
    case "settle":
      return settle([entry], new Set(deed.queued), new Set(deed.delivered))[0] as Entry;
  }
}

// rules: C4.9 C2.5 W13
test.each(CASES)("$name", ({ entry: fields = {}, steps, fault = null }) => {
  let expected = fields;
  let entry = outboxEntry(fields);
  for (const moment of steps) {
    entry = apply(entry, moment.do);
    expected = patched(expected, moment.entry);
    expect(entry, JSON.stringify(moment.do)).toEqual(outboxEntry(expected));
  }
  expect(faultOf(entry)).toEqual(fault);
});

test("there are cases to read, and they name only fields that an entry has", () => {
  expect(CASES.length).toBeGreaterThan(20);
  const named = CASES.flatMap(({ entry = {}, steps }) => [
    ...Object.keys(entry),
    ...steps.flatMap((moment) => Object.keys(moment.entry)),
  ]);
  const known = Object.keys(makeEntry("k"));
  expect(named.filter((name) => !known.includes(name))).toEqual([]);
});

test("entries of which the log shows nothing new stay the same list", () => {
  const entries = [makeEntry("a"), makeEntry("b")];
  expect(settle(entries, new Set(["x"]), new Set())).toBe(entries);
  expect(settle(entries, new Set(["b"]), new Set()).map(({ state }) => state)).toEqual([
    "sending",
    "queued",
  ]);
});

function doSomething(random: (bound: number) => number, now_ms: number, newest: number): Deed {
  const kind = (["accepted", "refused", "again", "again"] as const)[random(4)] ?? "again";
  const keys = (): string[] => (random(8) === 0 ? ["k"] : []);
  const deeds: Deed[] = [
    { type: "send", now_ms },
    { type: "tick", now_ms },
    { type: "try", attempt: newest - random(2), outcome: { kind, after_ms: random(9e4) }, now_ms },
    { type: "settle", queued: keys(), delivered: keys() },
  ];
  return deeds[random(deeds.length)] as Deed;
}

// rules: C4.9
test.each(Array.from({ length: 60 }, (_, seed) => seed))(
  "whatever happens a command is sent within its life alone, one try at a time (story %i)",
  (seed) => {
    const random = seeded(seed);
    let entry = makeEntry("k");
    let now = 0;
    for (let round = 0; round < 100; round++) {
      now += random(20_000);
      const before = entry;
      const deed = doSomething(random, now, entry.attempt);
      entry = apply(before, deed);
      if (entry.attempt !== before.attempt) {
        expect([entry.attempt, before.doing === "try"]).toEqual([before.attempt + 1, false]);
        expect(deed.type === "send" || now < entry.begun_ms + LIFE_MS).toBe(true);
      }
      expect(entry.wake_ms === null).toBe(entry.doing === "nothing");
      expect(faultOf(entry) !== null).toBe(entry.state === "refused" || entry.state === "unknown");
      if (before.state === "delivered") expect(entry.state).toBe("delivered");
    }
  },
);
