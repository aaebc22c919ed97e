import { expect, test } from "vitest";
import {
  afterTry,
  makeEntry,
  OUTBOX_LIFE_MS,
  type OutboxEntry,
  retryEntry,
  withoutSeen,
} from "../src/core/outbox.ts";

const again = { kind: "again", message: "no network", afterMs: 0 } as const;

// rules: C4.9 W13
test("a prompt that found no answer is sent again under its key, later and later", () => {
  let entry: OutboxEntry = makeEntry("key", "ses_a", "hello", 0);
  const waits: (number | undefined)[] = [];
  for (let round = 0; round < 5; round++) {
    let waitMs: number | undefined;
    [entry, waitMs] = afterTry(entry, again, 0);
    waits.push(waitMs);
  }
  expect(waits).toEqual([1_000, 2_000, 4_000, 8_000, 8_000]);
  expect(entry).toMatchObject({ key: "key", state: "sending", message: "no network" });
});

// rules: C4.9
test("after two minutes nothing is sent unasked: its state is not known", () => {
  const entry = makeEntry("key", "ses_a", "hello", 0);
  expect(afterTry(entry, again, OUTBOX_LIFE_MS - 1_000)[1]).toBe(1_000);
  const [old, waitMs] = afterTry(entry, again, OUTBOX_LIFE_MS);
  expect([old.state, waitMs]).toEqual(["unknown", undefined]);
  expect(retryEntry(old, 500_000)).toMatchObject({ key: "key", state: "sending", begun: 500_000 });
});

test("the server's own wish to wait counts, also beyond the two minutes", () => {
  const entry = makeEntry("key", "ses_a", "hello", 0);
  expect(afterTry(entry, { ...again, afterMs: 30_000 }, 0)[1]).toBe(30_000);
  expect(afterTry(entry, { ...again, afterMs: 300_000 }, 0)[0].state).toBe("unknown");
});

test("a refusal says why and waits for a person", () => {
  const entry = makeEntry("key", "ses_a", "hello", 0);
  const [refused, waitMs] = afterTry(entry, { kind: "refused", message: "too long" }, 5);
  expect([refused.state, refused.message, waitMs]).toEqual(["refused", "too long", undefined]);
  expect(afterTry(entry, { kind: "accepted" }, 5)[0].state).toBe("accepted");
});

// rules: W13
test("what the log holds is no entry any more, and nothing changes without need", () => {
  const entries = [makeEntry("a", null, "1", 0), makeEntry("b", "ses_a", "2", 0)];
  expect(withoutSeen(entries, new Set(["b", "x"])).map(({ key }) => key)).toEqual(["a"]);
  expect(withoutSeen(entries, new Set(["x"]))).toBe(entries);
});
