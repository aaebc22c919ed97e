import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { emptyView } from "../src/core/empty_view.ts";
import { IDLE, type LinkState } from "../src/core/link.ts";
import type { reduceAll } from "../src/core/reducer.ts";
import { GATHER_MS, Live, type LiveSink, preloadParts } from "../src/platform/live.ts";
import type { Incoming } from "../src/protocol/frames.ts";
import type { Fault, Hello, SessionView } from "../src/protocol/types.gen.ts";
import { FakeServer, FakeStream, json, problem } from "./fake_server.ts";

const TIME = "2026-01-31T09:00:00.000Z";
const HELLO = { log: "log_a", last_seq: 0, now: TIME, server_version: "1" };
const EVENTS = "/api/sessions/ses_a/events";
const VIEW = "/api/sessions/ses_a/view";

/** A stored event that changes no more than the number. */
const stored = (seq: number): Record<string, unknown> => ({
  seq,
  session: "ses_a",
  time: TIME,
  event: { type: "notice", code: "n", message: `${seq}` },
});

class Sink implements LiveSink {
  current = emptyView();
  state: LinkState = IDLE;
  hellos: Hello[] = [];
  views = 0;
  taken = 0;
  folds = 0;
  fault: Fault | undefined;
  readonly silent = { value: false };

  view(view: SessionView): void {
    this.current = view;
    this.views += 1;
  }

  frames(frames: readonly Incoming[], fold: typeof reduceAll): { lost: boolean } {
    this.current = fold(this.current, frames);
    this.taken += frames.length;
    this.folds += 1;
    return { lost: this.current.lost };
  }

  hello(hello: Hello): void {
    this.hellos.push(hello);
  }

  link(state: LinkState): void {
    this.state = state;
  }

  gaveUp(fault: Fault): void {
    this.fault = fault;
  }
}

let server: FakeServer;
let streams: FakeStream[];
let sink: Sink;
let live: Live;

beforeEach(async () => {
  await preloadParts();
  vi.useFakeTimers();
  vi.spyOn(Math, "random").mockReturnValue(0.5);
  streams = [];
  server = new FakeServer()
    .on(`GET ${VIEW}`, () => json({ log: "log_a", seq: 2, view: { ...emptyView(), seq: 2 } }))
    .on(`GET ${EVENTS}`, () => {
      const stream = new FakeStream();
      streams.push(stream);
      return stream.response;
    });
  sink = new Sink();
  live = new Live("ses_a", "page_1", sink);
});

afterEach(() => {
  live.close();
  vi.useRealTimers();
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
});

/** Lets what is on its way arrive, without any time passing. */
const settle = (): Promise<unknown> => vi.advanceTimersByTimeAsync(0);

async function goLive(): Promise<FakeStream> {
  live.start(false);
  await settle();
  const stream = streams.at(-1) as FakeStream;
  stream.send(HELLO, "hello");
  await settle();
  expect(sink.state.phase).toBe("live");
  return stream;
}

const cursors = (): (string | null)[] =>
  server.to(EVENTS).map(({ headers }) => headers.get("last-event-id"));

// rules: C4.4
test("a cold start reads the view, then follows from its number under its own name", async () => {
  await goLive();
  expect(server.seen.map(({ path }) => path)).toEqual([VIEW, `${EVENTS}?reader=page_1`]);
  expect(cursors()).toEqual(["2"]);
  expect(sink.hellos).toEqual([HELLO]);
});

// rules: C4.2 W04
test("a cut of any kind goes on from the last event that was applied", async () => {
  const stream = await goLive();
  stream.send(stored(3));
  stream.send(stored(4));
  await settle();
  stream.break();
  await settle();
  expect(cursors()).toEqual(["2", "4"]);
  streams.at(-1)?.send(HELLO, "hello");
  streams.at(-1)?.send(stored(4));
  streams.at(-1)?.send(stored(5));
  await settle();
  streams.at(-1)?.end();
  await settle();
  expect(cursors()).toEqual(["2", "4", "5"]);
  expect(sink.current.notices.map(({ message }) => message)).toEqual(["3", "4", "5"]);
  expect([sink.views, sink.taken]).toEqual([1, 3]);
});

// rules: C4.3 W05
test("a hole, a gap and another log each fetch the view anew", async () => {
  vi.spyOn(Math, "random").mockReturnValue(0);
  const stream = await goLive();
  stream.send(stored(4));
  await settle();
  expect(sink.views).toBe(2);

  streams.at(-1)?.send(HELLO, "hello");
  streams.at(-1)?.send({ requested: "2", last: 9, reason: "too_long" }, "gap");
  await settle();
  expect(sink.views).toBe(3);

  streams.at(-1)?.send({ ...HELLO, log: "log_b" }, "hello");
  streams.at(-1)?.send(stored(3));
  await settle();
  expect(sink.views).toBe(4);
  expect(sink.current.seq).toBe(2);
});

// rules: C1.11
test("a frame that cannot be read is counted and passed over", async () => {
  const stream = await goLive();
  stream.write("data: {half\n\n");
  stream.send({ seq: 3 });
  stream.send(stored(3));
  await settle();
  expect(live.broken).toBe(2);
  expect(sink.current.seq).toBe(3);
});

// rules: C3.6
test("a close that was announced is waited out as it says", async () => {
  const stream = await goLive();
  stream.send({ retry_ms: 1_500 }, "reset");
  stream.end();
  await settle();
  await vi.advanceTimersByTimeAsync(1_499);
  expect(streams).toHaveLength(1);
  await vi.advanceTimersByTimeAsync(1);
  expect(streams).toHaveLength(2);
});

// rules: C4.5
test("45 s without a byte count as a cut; a comment is a byte", async () => {
  const stream = await goLive();
  await vi.advanceTimersByTimeAsync(44_000);
  stream.write(": still here\n\n");
  await settle();
  await vi.advanceTimersByTimeAsync(44_000);
  expect(streams).toHaveLength(1);
  await vi.advanceTimersByTimeAsync(1_001);
  expect(streams).toHaveLength(2);
  expect(server.to(EVENTS)[0]?.signal?.aborted).toBe(true);
});

test("stop aborts the request and nothing more comes of it", async () => {
  const stream = await goLive();
  live.stop();
  stream.send(stored(3));
  await vi.advanceTimersByTimeAsync(120_000);
  expect(sink.state.phase).toBe("idle");
  expect(sink.current.seq).toBe(2);
  expect(streams).toHaveLength(1);
});

// rules: C4.4
test("a session that is gone is told as gone", async () => {
  server.on(`GET ${VIEW}`, () => problem(404, "not_found"));
  live.start(false);
  await settle();
  expect(sink.state).toMatchObject({ phase: "failed", failed: "gone" });
});

// rules: C2.1
test("a stream without our header is not ours", async () => {
  server.on(`GET ${EVENTS}`, () => new FakeStream({}).response);
  live.start(false);
  await settle();
  expect(sink.state).toMatchObject({ phase: "failed", failed: "contract_unavailable" });
});

// rules: C4.7
test("a proxy's 404 in front of the stream is no end of the session", async () => {
  server.on(`GET ${EVENTS}`, () => new Response("No", { status: 404 }));
  live.start(false);
  await settle();
  expect(sink.state.phase).toBe("retrying");
});

// rules: C4.6
test("a refused credential is asked for twice more, then a person must sign in", async () => {
  server.on(`GET ${VIEW}`, () => problem(401, "unauthorized"));
  live.start(false);
  await settle();
  await vi.advanceTimersByTimeAsync(1_000);
  expect(server.to(VIEW)).toHaveLength(3);
  expect(sink.state).toMatchObject({ phase: "failed", failed: "unauthorized" });
  expect(sink.fault).toMatchObject({
    code: "unauthorized",
    scope: "client.auth",
    details: { attempts: 2 },
  });
  await vi.advanceTimersByTimeAsync(600_000);
  live.retryNow();
  expect(server.to(VIEW)).toHaveLength(3);
  live.start(false);
  expect(server.to(VIEW)).toHaveLength(4);
});

// rules: C4.1 C4.6
test("a credential that was renewed meanwhile, as by another tab, goes on without a word", async () => {
  const stream = await goLive();
  const follow = (): Response => {
    const opened = new FakeStream();
    streams.push(opened);
    return opened.response;
  };
  const answers = [() => problem(401, "unauthorized"), () => problem(401, "unauthorized"), follow];
  server.on(`GET ${EVENTS}`, () => (answers.shift() ?? follow)());
  stream.break();
  await settle();
  expect(sink.state.phase).toBe("auth_expired");
  await vi.advanceTimersByTimeAsync(1_000);
  streams.at(-1)?.send(HELLO, "hello");
  await settle();
  expect(sink.state).toMatchObject({ phase: "live", refusals: 0 });
  expect(sink.fault).toBeUndefined();
});

// rules: C4.7
test("a network's sign-in page of any status is waited out, for the view as for the stream", async () => {
  server.on(`GET ${VIEW}`, () => new Response("<p>Pay here</p>", { status: 401 }));
  live.start(false);
  await settle();
  expect(sink.state).toMatchObject({ phase: "retrying", failures: 2, refusals: 0 });
  server.on(`GET ${VIEW}`, () => json({ log: "log_a", seq: 2, view: emptyView() }));
  server.on(`GET ${EVENTS}`, () => new Response("<p>Pay here</p>", { status: 511 }));
  live.retryNow();
  await settle();
  expect([sink.views, sink.state.phase]).toEqual([1, "retrying"]);
});

// rules: C2.1 C4.1
test("one that calls itself a success is not taken for one, and start asks anew", async () => {
  server.on(`GET ${VIEW}`, () => new Response("<p>Pay here</p>", { status: 200 }));
  live.start(false);
  await settle();
  expect(sink.state).toMatchObject({ phase: "failed", failed: "contract_unavailable" });
  expect(sink.fault?.code).toBe("capability_unavailable");
  server.on(`GET ${VIEW}`, () => json({ log: "log_a", seq: 2, view: emptyView() }));
  await goLive();
});

// rules: C4.2 C4.3 C4.7
test("back from the background the cursor is enough, but not after a minute of a running turn", async () => {
  await goLive();
  live.stop();
  await vi.advanceTimersByTimeAsync(59_000);
  live.start(true);
  await settle();
  expect([sink.views, streams.length]).toEqual([1, 2]);
  // A page that slept learns of it when it is awake: the moment it went counts, not that one.
  live.stop(60_001);
  live.start(true);
  await settle();
  expect([sink.views, streams.length]).toEqual([2, 3]);
  live.stop(3_600_000);
  live.start(false);
  await settle();
  expect([sink.views, streams.length]).toEqual([2, 4]);
});

// rules: C4.5
test("who will not wait for the next try need not", async () => {
  server.on(`GET ${VIEW}`, () => problem(503, "draining", { retry_after_s: 60 }));
  live.start(false);
  await settle();
  expect([server.to(VIEW).length, sink.state.phase]).toEqual([1, "retrying"]);
  live.retryNow();
  await settle();
  expect(server.to(VIEW)).toHaveLength(2);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(server.to(VIEW)).toHaveLength(3);
});

// rules: C4.5
test("a head that does not come in 10 s is not waited for any longer", async () => {
  server.on(`GET ${EVENTS}`, () => new Promise<Response>(() => undefined));
  live.start(false);
  await settle();
  await vi.advanceTimersByTimeAsync(9_999);
  expect(server.to(EVENTS)).toHaveLength(1);
  await vi.advanceTimersByTimeAsync(2);
  expect(server.to(EVENTS)).toHaveLength(2);
  expect(server.to(EVENTS)[0]?.signal?.aborted).toBe(true);
});

// rules: C3.7 C4.1
test("the stream of a closed session ends for good", async () => {
  const stream = await goLive();
  const event = { type: "session_closed", reason: "done" };
  stream.send({ seq: 3, session: "ses_a", time: TIME, event });
  await settle();
  stream.end();
  await vi.advanceTimersByTimeAsync(600_000);
  expect([sink.state.phase, streams.length]).toEqual(["closed", 1]);
});

// rules: C1.5 C4.3
test("a delta that leaves a hole fetches the view anew", async () => {
  const stream = await goLive();
  const envelope = (seq: number | null, event: object): Record<string, unknown> => ({
    ...(seq !== null && { seq }),
    session: "ses_a",
    turn: "trn_1",
    time: TIME,
    event,
  });
  stream.send(envelope(3, { type: "turn_started", prompt: "pmt_1", model: "m", limits: {} }));
  stream.send(envelope(4, { type: "message_started", message: "msg_1", role: "assistant" }));
  stream.send(
    envelope(null, { type: "text_delta", message: "msg_1", block: 0, at: 9, text: "late" }),
  );
  await vi.advanceTimersByTimeAsync(GATHER_MS + 1); // words wait for more words
  expect([sink.views, sink.state.losses]).toEqual([2, 1]);
});

// rules: W16
test("pieces that come one by one are handed over together, in order, before what is kept", async () => {
  const stream = await goLive();
  const envelope = (seq: number | null, event: object): Record<string, unknown> => ({
    ...(seq !== null && { seq }),
    session: "ses_a",
    turn: "trn_1",
    time: TIME,
    event,
  });
  const word = (at: number, text: string): Record<string, unknown> =>
    envelope(null, { type: "text_delta", message: "msg_1", block: 0, at, text });
  stream.send(envelope(3, { type: "turn_started", prompt: "pmt_1", model: "m", limits: {} }));
  stream.send(envelope(4, { type: "message_started", message: "msg_1", role: "assistant" }));
  await settle();
  const before = sink.folds;
  for (const at of [0, 1, 2, 3]) {
    stream.send(word(at, "x"));
    await settle();
  }
  expect(sink.folds).toBe(before);
  await vi.advanceTimersByTimeAsync(GATHER_MS + 1);
  expect(sink.folds).toBe(before + 1);
  stream.send(word(4, "y"));
  await settle();
  const content = [{ type: "text", text: "xxxxy" }];
  stream.send(envelope(5, { type: "message_ended", message: "msg_1", content }));
  await vi.advanceTimersByTimeAsync(GATHER_MS);
  expect(sink.folds).toBe(before + 2);
  expect(sink.state.losses).toBe(0);
});
