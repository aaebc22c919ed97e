// rules: W22

import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { emptyView } from "../src/core/empty_view.ts";
import { IDLE } from "../src/core/link.ts";
import { preloadParts } from "../src/platform/live.ts";
import { Chat, chat } from "../src/state/chat.ts";
import { acceptHeld, held, startHeld } from "../src/state/held.ts";
import { FakeServer, FakeStream, json, problem } from "./fake_server.ts";

let server: FakeServer;
let open: Chat;

const LIST = "GET /api/sessions";
const answered = (): Response => json({ sessions: [], next: null });

vi.useFakeTimers();
startHeld();

beforeEach(() => {
  vi.useFakeTimers();
  server = new FakeServer().on(LIST, answered);
  open = new Chat("ses_a", "page");
  open.link({ ...IDLE, phase: "retrying", failures: 1 });
  chat.value = open;
});

afterEach(() => {
  chat.value = null;
  held.value = false;
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

test("a silent stream is held back when all else is answered and it stays silent", async () => {
  open.silent.value = true;
  await vi.advanceTimersByTimeAsync(900);
  expect(server.to("/api/sessions")).toHaveLength(1);
  expect(held.value).toBe(false);
  await vi.advanceTimersByTimeAsync(100);
  expect(held.value).toBe(true);
});

test("a line that is back with the answer was a hole", async () => {
  open.silent.value = true;
  await vi.advanceTimersByTimeAsync(900);
  open.silent.value = false;
  await vi.advanceTimersByTimeAsync(1_000);
  expect(held.value).toBe(false);
});

test.each([
  ["no answer", () => Promise.reject(new TypeError("Load failed"))],
  ["a proxy's fault", () => problem(502, "http")],
])("%s says nothing of a proxy that holds back", async (_, answer) => {
  server.on(LIST, answer);
  held.value = true; // of the turns before
  open.silent.value = true;
  await vi.advanceTimersByTimeAsync(2_000);
  expect(held.value).toBe(false);
});

test("who has read so is not told again", async () => {
  acceptHeld();
  open.silent.value = true;
  await vi.advanceTimersByTimeAsync(2_000);
  expect(held.value).toBe(false);
});

test("a stream that says nothing in its time is silent, until one speaks or is cut", async () => {
  await preloadParts();
  vi.spyOn(Math, "random").mockReturnValue(0.5);
  const streams: FakeStream[] = [];
  server
    .on("GET /api/sessions/ses_c/view", () =>
      json({ log: "log_a", seq: 2, view: { ...emptyView(), seq: 2 } }),
    )
    .on("GET /api/sessions/ses_c/events", () => {
      streams.push(new FakeStream());
      return streams.at(-1)?.response as Response;
    });
  const asked = new Chat("ses_c", "page");
  asked.start();
  await vi.advanceTimersByTimeAsync(9_999);
  expect([streams.length, asked.silent.value]).toEqual([1, false]);
  await vi.advanceTimersByTimeAsync(1);
  expect([streams.length, asked.silent.value]).toEqual([2, true]);
  streams.at(-1)?.write(": a sign of life is no word\n\n");
  await vi.advanceTimersByTimeAsync(10_500);
  expect([streams.length, asked.silent.value]).toEqual([3, true]);
  streams.at(-1)?.break();
  await vi.advanceTimersByTimeAsync(0);
  expect(asked.silent.value).toBe(false);
  await vi.advanceTimersByTimeAsync(11_000);
  expect([streams.length, asked.silent.value]).toEqual([4, true]);
  asked.retryNow();
  await vi.advanceTimersByTimeAsync(0);
  const hello = { log: "log_a", last_seq: 2, now: "2026-01-31T09:00:00.000Z", server_version: "1" };
  streams.at(-1)?.send(hello, "hello");
  await vi.advanceTimersByTimeAsync(0);
  expect([asked.state.value.phase, asked.silent.value]).toEqual(["live", false]);
  await vi.advanceTimersByTimeAsync(45_000); // a line that falls silent later did speak
  expect([asked.state.value.phase, asked.silent.value]).toEqual(["retrying", false]);
  asked.stop();
});
