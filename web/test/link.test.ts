import { describe, expect, test } from "vitest";
import {
  type Cut,
  IDLE,
  LINK_TIMES,
  type LinkEffect,
  type LinkInput,
  type LinkState,
  stepLink,
} from "../src/core/link.ts";

/** A link with its last effects; `now` inputs name the current attempt. */
class Machine {
  state: LinkState;
  effects: readonly LinkEffect[] = [];
  random = 1;

  constructor(state: LinkState = IDLE) {
    this.state = state;
  }

  put(input: LinkInput): this {
    const world = { random: this.random, times: LINK_TIMES };
    [this.state, this.effects] = stepLink(this.state, input, world);
    return this;
  }

  get attempt(): number {
    return this.state.attempt;
  }

  cut(cut: Cut): this {
    return this.put({ type: "cut", attempt: this.attempt, cut });
  }

  hello(log = "log_a"): this {
    return this.put({ type: "hello", attempt: this.attempt, log });
  }

  applied(seq: number): this {
    return this.put({ type: "applied", attempt: this.attempt, seq });
  }

  view(seq: number, log = "log_a"): this {
    return this.put({ type: "view", attempt: this.attempt, log, seq });
  }

  fire(timer: "answer" | "silence" | "retry"): this {
    return this.put({ type: "timer", timer, attempt: this.attempt });
  }

  /** The request among the last effects. */
  get asked(): LinkEffect | undefined {
    return this.effects.find(({ type }) => type === "follow" || type === "fetch_view");
  }

  /** What a timer of the last effects was set to. */
  armed(timer: string): number | undefined {
    for (const effect of this.effects) {
      if (effect.type === "arm" && effect.timer === timer) return effect.ms;
    }
    return undefined;
  }
}

const status = (code: number, retryAfterMs = 0): Cut => ({
  kind: "status",
  status: code,
  contract: "1",
  retryAfterMs,
});

/** Live at seq 12 of `log_a`. */
function live(): Machine {
  return new Machine().put({ type: "start" }).view(10).hello().applied(12);
}

// rules: C4.4
test("a cold start fetches the view and follows from its number", () => {
  const machine = new Machine().put({ type: "start" });
  expect(machine.state.phase).toBe("recovering");
  expect(machine.asked?.type).toBe("fetch_view");
  expect(machine.armed("answer")).toBe(LINK_TIMES.viewMs);
  machine.view(10);
  expect(machine.state.phase).toBe("connecting");
  expect(machine.asked).toMatchObject({ type: "follow", after: 10 });
  expect(machine.armed("answer")).toBe(10_000);
  expect(machine.hello().state.phase).toBe("live");
});

// rules: C4.1 C4.2
test("a cut reconnects at once from the last event that was applied", () => {
  const machine = live().cut({ kind: "network" });
  expect(machine.state.phase).toBe("retrying");
  expect(machine.armed("retry")).toBe(0);
  machine.fire("retry");
  expect(machine.asked).toMatchObject({ type: "follow", after: 12 });
  expect(machine.hello().state).toMatchObject({ phase: "live", failures: 0 });
});

// rules: C4.3
test("a loss, a gap or another log fetches the view anew", () => {
  const lost = live();
  lost.put({ type: "lost", attempt: lost.attempt });
  expect(lost.state).toMatchObject({ phase: "recovering", cursor: null });
  expect(lost.asked?.type).toBe("fetch_view");
  expect(lost.view(20).asked).toMatchObject({ after: 20 });

  const other = live().cut({ kind: "ended" }).fire("retry").hello("log_b");
  expect(other.state.phase).toBe("recovering");
  expect(other.asked?.type).toBe("fetch_view");
});

test("a server that always loses something is asked less and less often", () => {
  const machine = live();
  const waits: (number | undefined)[] = [];
  for (let round = 0; round < 6; round++) {
    machine.put({ type: "lost", attempt: machine.attempt });
    waits.push(machine.armed("retry"));
    if (machine.state.phase === "retrying") machine.fire("retry");
    machine.view(12).hello();
  }
  expect(waits).toEqual([undefined, undefined, undefined, 1_000, 2_000, 4_000]);
});

// rules: C4.5
test("back-off: at once, then 1 s doubling to 30 s, 5 min after 8 failures", () => {
  const machine = live();
  const waits: (number | undefined)[] = [];
  for (let round = 0; round < 10; round++) {
    waits.push(machine.cut({ kind: "network" }).armed("retry"));
    machine.fire("retry");
  }
  expect(waits).toEqual([0, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 300_000, 300_000]);
});

// rules: C4.5
test("back-off is spread from nothing to its ceiling, with the server's retry as a floor", () => {
  const machine = live();
  machine.put({ type: "bytes", attempt: machine.attempt, retryMs: 3_000 });
  machine.random = 0;
  expect(machine.cut({ kind: "network" }).armed("retry")).toBe(0);
  expect(machine.fire("retry").cut({ kind: "network" }).armed("retry")).toBe(3_000);
  machine.random = 0.5;
  expect(machine.fire("retry").cut({ kind: "network" }).armed("retry")).toBe(3_000);
  machine.fire("retry").cut({ kind: "network" }).fire("retry");
  expect(machine.cut({ kind: "network" }).armed("retry")).toBe(4_000);
});

// rules: C4.5
test("an answer that does not come in 10 s, and 45 s without a byte, count as a cut", () => {
  expect(new Machine().put({ type: "start" }).view(1).fire("answer").state.phase).toBe("retrying");
  const machine = live();
  machine.put({ type: "head", attempt: machine.attempt });
  expect(machine.effects).toContainEqual({ type: "disarm", timer: "answer" });
  expect(machine.armed("silence")).toBe(45_000);
  machine.put({ type: "bytes", attempt: machine.attempt });
  expect(machine.armed("silence")).toBe(45_000);
  expect(machine.fire("silence").state.phase).toBe("retrying");
});

// rules: C4.6
test("a refused credential is tried twice more, then a person must sign in", () => {
  const machine = live().cut({ kind: "network" }).fire("retry");
  expect(machine.cut(status(401)).state.phase).toBe("auth_expired");
  expect(machine.armed("retry")).toBe(0);
  machine.fire("retry").cut(status(401));
  expect(machine.armed("retry")).toBe(1_000);
  machine.fire("retry").cut(status(401));
  expect(machine.state).toMatchObject({ phase: "failed", failure: "unauthorized" });
  expect(machine.asked).toBeUndefined();
  expect(machine.put({ type: "start" }).asked).toMatchObject({ type: "follow", after: 12 });
});

test("a credential that was renewed meanwhile goes on, and the count begins anew", () => {
  const machine = live().cut({ kind: "network" }).fire("retry").cut(status(401)).fire("retry");
  expect(machine.hello().state).toMatchObject({ phase: "live", refused: 0 });
});

// rules: C4.4
test.each([404, 410])("%i means gone, and is not asked again", (code) => {
  const machine = new Machine().put({ type: "start" }).cut(status(code));
  expect(machine.state).toMatchObject({ phase: "failed", failure: "gone" });
  expect(machine.armed("retry")).toBeUndefined();
});

// rules: C2.1
test.each(["contract_unavailable", "version_mismatch"] as const)(
  "an answer of success that is not ours fails as %s",
  (failure) => {
    const machine = new Machine().put({ type: "start" }).cut({ kind: "foreign", failure });
    expect(machine.state).toMatchObject({ phase: "failed", failure });
  },
);

// rules: C4.7
test("a proxy's error page backs off, whatever its status", () => {
  for (const code of [401, 404, 502]) {
    const cut: Cut = { kind: "status", status: code, contract: null, retryAfterMs: 0 };
    expect(live().cut(cut).state.phase).toBe("retrying");
  }
});

// rules: C2.4
test("a full or draining server is asked again when it said", () => {
  expect(live().cut(status(503, 7_000)).armed("retry")).toBe(7_000);
  expect(live().cut(status(500)).armed("retry")).toBe(0);
});

// rules: C3.6
test("a reset reconnects after its own time", () => {
  const machine = live();
  machine.put({ type: "reset", attempt: machine.attempt, retryMs: 1_700 });
  expect(machine.state.phase).toBe("retrying");
  expect(machine.armed("retry")).toBe(1_700);
  expect(machine.fire("retry").asked).toMatchObject({ after: 12 });
});

// rules: C4.7
describe("start and stop", () => {
  test("start twice is start once", () => {
    const machine = live();
    expect(machine.put({ type: "start" }).effects).toEqual([]);
    expect(machine.state.phase).toBe("live");
  });

  test("stop keeps the cursor, and start goes on from it", () => {
    const machine = live().put({ type: "stop" });
    expect(machine.state).toMatchObject({ phase: "idle", cursor: 12, log: "log_a" });
    expect(machine.effects).toContainEqual({ type: "abort" });
    expect(machine.put({ type: "stop" }).effects).toEqual([]);
    expect(machine.put({ type: "start" }).asked).toMatchObject({ type: "follow", after: 12 });
  });

  test("a fresh start fetches the view, also of a link that runs", () => {
    expect(live().put({ type: "start", fresh: true }).asked?.type).toBe("fetch_view");
  });

  test("close is for good", () => {
    const machine = live().put({ type: "close" });
    expect(machine.state.phase).toBe("closed");
    expect(machine.put({ type: "start" }).effects).toEqual([]);
    expect(machine.state.phase).toBe("closed");
  });

  test("retry now asks at once, and only while it waits", () => {
    const machine = live().cut({ kind: "network" }).fire("retry").cut({ kind: "network" });
    expect(machine.put({ type: "retry_now" }).asked).toMatchObject({ type: "follow" });
    expect(live().put({ type: "retry_now" }).effects).toEqual([]);
  });
});

test("reports of an earlier request change nothing", () => {
  const machine = live();
  const stale = machine.attempt;
  machine.cut({ kind: "network" }).fire("retry");
  const before = machine.state;
  const cut: Cut = { kind: "network" };
  const late: LinkInput[] = [
    { type: "head", attempt: stale },
    { type: "bytes", attempt: stale, retryMs: 9 },
    { type: "hello", attempt: stale, log: "log_z" },
    { type: "applied", attempt: stale, seq: 99 },
    { type: "lost", attempt: stale },
    { type: "view", attempt: stale, log: "log_z", seq: 1 },
    { type: "cut", attempt: stale, cut },
    { type: "timer", timer: "silence", attempt: stale },
    { type: "reset", attempt: stale, retryMs: 1 },
  ];
  for (const input of late) {
    machine.put(input);
    expect(machine.state).toBe(before);
    expect(machine.effects).toEqual([]);
  }
});
