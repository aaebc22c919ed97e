import { describe, expect, test } from "vitest";
import {
  type Happening,
  IDLE,
  type LinkEffect,
  type LinkInput,
  type LinkState,
  step,
} from "../src/core/link.ts";
import { type LinkCase, linkEffect, linkInput, linkState, patched, readCases } from "./cases.ts";
import { seeded } from "./seeded.ts";

const CASES = readCases<LinkCase>("link");

// rules: C4.1 C4.2 C4.3 C4.4 C4.5 C4.6 C4.7 C4.8 C2.1 C2.3 C2.4 C3.2 C3.5 C3.6 C3.7
test.each(CASES)("$name", ({ state: fields = {}, steps }) => {
  let expected = fields;
  let state = linkState(fields);
  for (const moment of steps) {
    const [next, effects] = step(state, linkInput(moment.input));
    expected = patched(expected, moment.state);
    expect(next, JSON.stringify(moment.input)).toEqual(linkState(expected));
    expect(effects, JSON.stringify(moment.input)).toEqual((moment.effects ?? []).map(linkEffect));
    state = next;
  }
});

test("there are cases to read, and they name only fields that a state has", () => {
  expect(CASES.length).toBeGreaterThan(60);
  const named = CASES.flatMap(({ state = {}, steps }) => [
    ...Object.keys(state),
    ...steps.flatMap((moment) => Object.keys(moment.state)),
  ]);
  expect(named.filter((name) => !Object.hasOwn(IDLE, name))).toEqual([]);
});

/** Something that may happen to a link, likely or not. */
function happen(random: (bound: number) => number, newest: number): Happening {
  const attempt = newest - (random(4) === 0 ? 1 : 0);
  const log = random(5) === 0 ? "b" : "a";
  const seq = random(9);
  const ends = random(9) === 0;
  const any: Happening[] = [
    { type: "start", turn_running: random(2) === 0 },
    { type: "stop" },
    { type: "retry_now" },
    { type: "tick" },
    { type: "tick" },
    { type: "tick" },
    { type: "heard", attempt },
    { type: "hello", attempt, log },
    { type: "hello", attempt, log },
    { type: "stored", attempt, seq, ends },
    { type: "stored", attempt, seq, ends },
    { type: "gap", attempt },
    { type: "lost", attempt },
    { type: "retry", attempt, retry_ms: random(1e9) },
    { type: "reset", attempt, retry_ms: random(1e9) },
    { type: "loaded", attempt, log, seq, ends },
    { type: "loaded", attempt, log, seq, ends },
    { type: "cut", attempt },
    {
      type: "refused",
      attempt,
      status: [400, 401, 403, 404, 410, 429, 500, 503][random(8)] ?? 500,
      contract: random(3) > 0,
      retry_after_ms: random(2) * random(1e6),
    },
    { type: "misfit", attempt, reason: random(2) === 0 ? "not_json" : "version_mismatch" },
  ];
  if (random(200) === 0) return { type: "close" };
  return any[random(any.length)] as Happening;
}

const ENDINGS = new Set(["cut", "refused", "misfit"]);

/** The requests that are under way after a step. */
function follow(
  underWay: Set<number>,
  before: LinkState,
  given: LinkInput,
  effects: readonly LinkEffect[],
): void {
  const isEnd = given.type === "loaded" ? before.doing === "view" : ENDINGS.has(given.type);
  if ("attempt" in given && isEnd) underWay.delete(given.attempt);
  for (const effect of effects) {
    if (effect.type === "drop") expect(underWay.delete(effect.attempt)).toBe(true);
    if (effect.type === "connect" || effect.type === "load_view") underWay.add(effect.attempt);
  }
}

function check(before: LinkState, given: LinkInput, [after, effects]: ReturnType<typeof step>) {
  const types = effects.map(({ type }) => type);
  const isResting = before.phase === "failed" || before.phase === "closed";
  if (isResting && given.type !== "start") expect(types).toEqual([]);
  if (before.phase === "closed") expect(after).toBe(before);
  if (types.includes("deliver")) expect(after.seq).toBe((before.seq ?? 0) + 1);
  else if (!types.includes("adopt")) expect(after.seq).toBe(before.seq);
  const isAtRest = ["idle", "failed", "closed"].includes(after.phase);
  expect(after.doing === "nothing").toBe(isAtRest);
  expect(after.wake_ms === null).toBe(isAtRest);
}

// rules: C4.2 C4.7 C4.8
describe("whatever happens", () => {
  test.each(Array.from({ length: 30 }, (_, seed) => seed))(
    "one request at most is under way, rest is silent, the cursor goes on (story %i)",
    (seed) => {
      const random = seeded(seed);
      const underWay = new Set<number>();
      let state = IDLE;
      let now_ms = 0;
      for (let round = 0; round < 300; round++) {
        now_ms += random(3) === 0 ? random(400_000) : random(2_000);
        const happening = happen(random, state.attempt);
        const given = { ...happening, now_ms, random: random(1_000) / 1_000 };
        const made = step(state, given);
        check(state, given, made);
        follow(underWay, state, given, made[1]);
        state = made[0];
        expect(underWay.size).toBe(state.doing === "view" || state.doing === "stream" ? 1 : 0);
      }
    },
  );
});
