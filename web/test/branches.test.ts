import { expect, test } from "vitest";
import { step } from "../src/core/link.ts";
import { afterTry, faultOf, send, settle, tick } from "../src/core/outbox.ts";
import { findMissed } from "./branches.ts";
import {
  type LinkCase,
  linkInput,
  linkState,
  type OutboxCase,
  outboxEntry,
  readCases,
} from "./cases.ts";

function runLink(cases: readonly LinkCase[]): void {
  for (const { state: fields = {}, steps } of cases) {
    let state = linkState(fields);
    for (const { input } of steps) [state] = step(state, linkInput(input));
  }
}

function runOutbox({ entry: fields = {}, steps }: OutboxCase): void {
  let entry = outboxEntry(fields);
  for (const { do: deed } of steps) {
    const now = ("now_ms" in deed && deed.now_ms) || 0;
    if (deed.type === "settle") {
      [entry = entry] = settle([entry], new Set(deed.queued), new Set(deed.delivered));
    } else if (deed.type === "try") entry = afterTry(entry, deed.attempt, deed.outcome, now);
    else entry = deed.type === "send" ? send(entry, now) : tick(entry, now);
  }
  faultOf(entry);
}

test("what no case comes through is found", async () => {
  const few = readCases<LinkCase>("link").filter(({ name }) => name.startsWith("start_stop"));
  const missed = await findMissed("/core/link.ts", () => runLink(few));
  expect(missed).toContain("takeHello: return recover(state, given);");
  expect(missed).toContain("step: ? go(state, given.now_ms)");
});

// rules: C4.8
test("the cases come through every branch of the link", async () => {
  const cases = readCases<LinkCase>("link");
  expect(await findMissed("/core/link.ts", () => runLink(cases))).toEqual([]);
});

// rules: C4.9
test("the cases come through every branch of the outbox", async () => {
  const cases = readCases<OutboxCase>("outbox");
  expect(await findMissed("/core/outbox.ts", () => cases.forEach(runOutbox))).toEqual([]);
});
