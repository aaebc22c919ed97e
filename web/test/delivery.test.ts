import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { LIFE_MS } from "../src/core/outbox.ts";
import { ApiFault } from "../src/platform/api.ts";
import { access } from "../src/state/account.ts";
import { deliver, hurryOutbox, outbox, sendAgain, sendText } from "../src/state/outbox.ts";
import { FakeServer, json, problem } from "./fake_server.ts";

const INTERRUPT = "/api/sessions/ses_a/interrupt";
const PROMPTS = "/api/sessions/ses_a/prompts";

let server: FakeServer;

beforeEach(() => {
  vi.useFakeTimers();
  localStorage.clear();
  outbox.value = [];
  access.value = "in";
  server = new FakeServer();
});

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

const keysTo = (path: string): (string | null)[] =>
  server.to(path).map(({ headers }) => headers.get("idempotency-key"));

/** What became of a command. */
function watch(command: Promise<unknown>): { came: unknown } {
  const seen: { came: unknown } = { came: undefined };
  command.then(
    (answer) => {
      seen.came = answer;
    },
    (error: unknown) => {
      seen.came = error;
    },
  );
  return seen;
}

const interrupt = (): { came: unknown } =>
  watch(
    deliver("interrupt", { path: { session: "ses_a" }, key: "key_1", body: { turn: "trn_1" } }),
  );

// rules: C4.9 C2.5
describe("a command", () => {
  test("is sent under one key until it is acknowledged", async () => {
    const seen = interrupt();
    await vi.advanceTimersByTimeAsync(2_999);
    server.on(`POST ${INTERRUPT}`, () => problem(503, "draining", { retry: "same_request" }));
    await vi.advanceTimersByTimeAsync(1);
    server.on(`POST ${INTERRUPT}`, () => json({ turn: "trn_1" }, 202));
    expect(seen.came).toBeUndefined();
    await vi.advanceTimersByTimeAsync(4_000);
    expect(seen.came).toEqual({ turn: "trn_1" });
    expect(keysTo(INTERRUPT)).toEqual(["key_1", "key_1", "key_1", "key_1"]);
  });

  test("waits as long as the server asks", async () => {
    const full = { retry: "same_request", retry_after_s: 20 };
    server.on(`POST ${INTERRUPT}`, () => problem(429, "rate_limited", full));
    interrupt();
    await vi.advanceTimersByTimeAsync(19_999);
    expect(keysTo(INTERRUPT)).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(1);
    expect(keysTo(INTERRUPT)).toHaveLength(2);
  });

  test("that is refused is not sent again", async () => {
    server.on(`POST ${INTERRUPT}`, () => problem(409, "conflict", { detail: "It is over." }));
    const seen = interrupt();
    await vi.advanceTimersByTimeAsync(LIFE_MS);
    expect(seen.came).toBeInstanceOf(ApiFault);
    expect(seen.came).toMatchObject({ code: "conflict" });
    expect(keysTo(INTERRUPT)).toHaveLength(1);
  });

  test("that finds no answer for two minutes is given up, and it is said that nobody knows", async () => {
    const seen = interrupt();
    await vi.advanceTimersByTimeAsync(LIFE_MS);
    expect(seen.came).toMatchObject({ message: "Not sure whether this arrived." });
    const tries = keysTo(INTERRUPT).length;
    await vi.advanceTimersByTimeAsync(LIFE_MS);
    expect(keysTo(INTERRUPT)).toHaveLength(tries);
  });

  // rules: C4.7 W30
  test("is sent again after a network's sign-in page, and not after the server's own 401", async () => {
    server.on(`POST ${INTERRUPT}`, () => new Response("<p>Pay here</p>", { status: 401 }));
    const seen = interrupt();
    await vi.advanceTimersByTimeAsync(500);
    expect([seen.came, access.peek()]).toEqual([undefined, "in"]);
    server.on(`POST ${INTERRUPT}`, () => problem(401, "unauthorized"));
    await vi.advanceTimersByTimeAsync(500);
    expect(seen.came).toMatchObject({ code: "unauthorized" });
    expect(access.peek()).toBe("out");
  });
});

describe("a prompt", () => {
  // rules: C4.9
  test("of two minutes without an answer waits for a person, then goes on under its key", async () => {
    sendText("ses_a", "Hello");
    await vi.advanceTimersByTimeAsync(LIFE_MS);
    expect(outbox.value).toMatchObject([{ state: "unknown", doing: "nothing" }]);
    server.on(`POST ${PROMPTS}`, () => json({ prompt: "pmt_1", session: "ses_a" }, 202));
    const tries = keysTo(PROMPTS).length;
    await vi.advanceTimersByTimeAsync(LIFE_MS);
    expect(keysTo(PROMPTS)).toHaveLength(tries);
    sendAgain(outbox.value[0]?.key ?? "");
    await vi.advanceTimersByTimeAsync(0);
    expect(outbox.value).toMatchObject([{ state: "accepted" }]);
    expect(new Set(keysTo(PROMPTS)).size).toBe(1);
  });

  // rules: C4.9
  test("that waits is tried at once when the network is back, and only once", async () => {
    sendText("ses_a", "Hello");
    await vi.advanceTimersByTimeAsync(7_000);
    const tries = keysTo(PROMPTS).length;
    server.on(`POST ${PROMPTS}`, () => json({ prompt: "pmt_1", session: "ses_a" }, 202));
    hurryOutbox();
    await vi.advanceTimersByTimeAsync(0);
    expect(outbox.value).toMatchObject([{ state: "accepted" }]);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(keysTo(PROMPTS)).toHaveLength(tries + 1);
  });
});
