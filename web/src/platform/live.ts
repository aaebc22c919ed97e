/** One session's stream: does what the link machine says and hands on what comes. */

import {
  type Cut,
  IDLE,
  LINK_TIMES,
  type LinkEffect,
  type LinkInput,
  type LinkState,
  type LinkTimes,
  stepLink,
  type Timer,
} from "../core/link.ts";
import { SseDecoder } from "../core/sse.ts";
import { decodeFrame, type Incoming } from "../protocol/events.ts";
import { CONTRACT_HEADER, type Hello, type SessionView } from "../protocol/types.gen.ts";
import { ApiFault, addressOf, call, foreignAnswer, retryAfterMs } from "./api.ts";

/** Who takes what the stream brings. */
export interface LiveSink {
  /** A view that replaces what there was. */
  view(view: SessionView): void;
  /** Frames in order; tells the last number held and whether something was missed. */
  frames(frames: readonly Incoming[]): { seq: number; lost: boolean };
  /** The first frame of a connection. */
  hello(hello: Hello): void;
  /** The connection's state, each time it has changed. */
  link(state: LinkState): void;
}

/** Follows one session. */
export class Live {
  /** Frames that could not be read. */
  broken = 0;

  readonly #session: string;
  readonly #reader: string;
  readonly #sink: LiveSink;
  readonly #times: LinkTimes;
  readonly #timers = new Map<Timer, ReturnType<typeof setTimeout>>();
  #state = IDLE;
  #request: AbortController | undefined;

  /**
   * @param reader this page's own name: a new connection of it replaces the old one (C3.9)
   */
  constructor(session: string, reader: string, sink: LiveSink, times = LINK_TIMES) {
    this.#session = session;
    this.#reader = reader;
    this.#sink = sink;
    this.#times = times;
  }

  /** Tells the machine something. */
  put(input: LinkInput): void {
    const before = this.#state;
    const world = { random: Math.random(), times: this.#times };
    const [state, effects] = stepLink(before, input, world);
    this.#state = state;
    for (const effect of effects) this.#perform(effect);
    if (state !== before) this.#sink.link(state);
  }

  #perform(effect: LinkEffect): void {
    switch (effect.type) {
      case "abort":
        this.#request?.abort();
        this.#request = undefined;
        break;
      case "arm": {
        const { timer, attempt, ms } = effect;
        clearTimeout(this.#timers.get(timer));
        this.#timers.set(
          timer,
          setTimeout(() => this.put({ type: "timer", timer, attempt }), ms),
        );
        break;
      }
      case "disarm":
        clearTimeout(this.#timers.get(effect.timer));
        this.#timers.delete(effect.timer);
        break;
      case "fetch_view":
        void this.#fetchView(effect.attempt);
        break;
      case "follow":
        void this.#follow(effect.attempt, effect.after);
        break;
    }
  }

  #signal(): AbortSignal {
    this.#request = new AbortController();
    return this.#request.signal;
  }

  async #fetchView(attempt: number): Promise<void> {
    try {
      const path = { session: this.#session };
      const { log, seq, view } = await call("get_view", { path, signal: this.#signal() });
      if (attempt !== this.#state.attempt) return;
      this.#sink.view(view);
      this.put({ type: "view", attempt, log, seq });
    } catch (error) {
      this.put({ type: "cut", attempt, cut: cutOf(error) });
    }
  }

  async #follow(attempt: number, after: number): Promise<void> {
    const address = addressOf("follow", { session: this.#session }, { reader: this.#reader });
    try {
      const response = await fetch(address, {
        headers: { accept: "text/event-stream", "last-event-id": String(after) },
        credentials: "same-origin",
        cache: "no-store",
        signal: this.#signal(),
      });
      const cut = cutOfHead(response);
      if (cut) {
        await response.body?.cancel();
        this.put({ type: "cut", attempt, cut });
        return;
      }
      this.put({ type: "head", attempt });
      await this.#pump(response, attempt);
      this.put({ type: "cut", attempt, cut: { kind: "ended" } });
    } catch {
      // Whatever the engine calls it: what we did not end ourselves is a cut.
      this.put({ type: "cut", attempt, cut: { kind: "network" } });
    }
  }

  async #pump(response: Response, attempt: number): Promise<void> {
    const decoder = new SseDecoder();
    const reader = response.body?.getReader();
    let told: number | undefined;
    while (reader && attempt === this.#state.attempt) {
      const { done, value } = await reader.read();
      if (done) return;
      const events = decoder.feed(value);
      const isNew = decoder.retry !== told;
      told = decoder.retry;
      this.put({ type: "bytes", attempt, ...(isNew && told !== undefined && { retryMs: told }) });
      this.#take(
        events.map(({ event, data }) => decodeFrame(event, data)),
        attempt,
      );
    }
  }

  /** Control frames go to the machine, the rest to the sink, in order. */
  #take(frames: Incoming[], attempt: number): void {
    let batch: Incoming[] = [];
    const handOver = (): void => {
      if (batch.length === 0 || attempt !== this.#state.attempt) return;
      const { seq, lost } = this.#sink.frames(batch);
      batch = [];
      if (lost) this.put({ type: "lost", attempt });
      else if (seq !== this.#state.cursor) this.put({ type: "applied", attempt, seq });
    };
    for (const frame of frames) {
      if (frame.kind === "envelope" || frame.kind === "partial") batch.push(frame);
      else {
        handOver();
        this.#takeControl(frame, attempt);
      }
    }
    handOver();
  }

  #takeControl(frame: Incoming, attempt: number): void {
    if (attempt !== this.#state.attempt) return;
    if (frame.kind === "hello") {
      this.#sink.hello(frame.value);
      this.put({ type: "hello", attempt, log: frame.value.log });
    } else if (frame.kind === "gap") {
      this.put({ type: "lost", attempt });
    } else if (frame.kind === "reset") {
      this.put({ type: "reset", attempt, retryMs: frame.value.retry_ms });
    } else if (frame.kind === "broken") {
      this.broken += 1;
    }
  }
}

function cutOfHead(response: Response): Cut | undefined {
  if (response.ok) {
    const failure = foreignAnswer(response);
    return failure && { kind: "foreign", failure };
  }
  const { status } = response;
  const contract = response.headers.get(CONTRACT_HEADER);
  return { kind: "status", status, contract, retryAfterMs: retryAfterMs(response) };
}

function cutOf(error: unknown): Cut {
  if (!(error instanceof ApiFault) || error.status === 0) return { kind: "network" };
  const { code, status, afterMs } = error;
  if (code === "contract_unavailable" || code === "version_mismatch") {
    return { kind: "foreign", failure: code };
  }
  const contract = code === "http" ? null : "1";
  return { kind: "status", status, contract, retryAfterMs: afterMs };
}
