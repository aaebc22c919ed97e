/** One session's stream: does what the link machine says and hands on what comes. */

import {
  type Failure,
  type Happening,
  IDLE,
  LINK_POLICY,
  type LinkEffect,
  type LinkState,
  step,
} from "../core/link.ts";
import type { reduceAll } from "../core/reducer.ts";
import type { Incoming } from "../protocol/frames.ts";
import type { Fault, Hello, SessionView } from "../protocol/types.gen.ts";
import { ApiFault, addressOf, call, checkAnswer, makeForeign } from "./api.ts";
import { nowMs } from "./clock.ts";

type StreamParts = typeof import("./stream_parts.ts");

let parts: StreamParts | undefined;

/** Fetches what reads a stream: the first view is shown without it. */
export async function preloadParts(): Promise<void> {
  parts ??= await import("./stream_parts.ts");
}

const NEVER = Number.POSITIVE_INFINITY;

/** Pieces of an answer wait so long for more, in milliseconds: ten frames a second read as continuous. */
export const GATHER_MS = 100;

/** A view that was asked for before anybody could follow its session. */
let early: { session: string; answer: ReturnType<typeof askView> } | undefined;

function askView(session: string, signal?: AbortSignal) {
  return call("get_view", { path: { session }, ...(signal && { signal }) });
}

/** Asks for a view at once: who is signed in is asked meanwhile. */
export function askEarly(session: string): void {
  early = { session, answer: askView(session) };
  early.answer.catch(() => {
    early = undefined;
  });
}

/** Who takes what the stream brings. */
export interface LiveSink {
  /** A view that replaces what there was. */
  view(view: SessionView): void;
  /**
   * Frames in order, doubles left out; tells whether something was missed in them.
   *
   * @param fold makes the next view of them
   */
  frames(frames: readonly Incoming[], fold: typeof reduceAll): { lost: boolean };
  /** The first frame of a connection. */
  hello(hello: Hello): void;
  /** The connection's state, each time that it shows. */
  link(state: LinkState): void;
  /** Whether the last stream said not a word in all the time that it had for it. */
  readonly silent: { value: boolean };
  /** Nothing more is tried until `start`. */
  gaveUp(fault: Fault): void;
}

/** Follows one session. */
export class Live {
  /** Frames that could not be read. */
  broken = 0;

  readonly #session: string;
  readonly #reader: string;
  readonly #sink: LiveSink;
  #state: LinkState;
  #request: AbortController | undefined;
  #fetched: SessionView | undefined;
  #complaint = "";
  /** Words that have come and were not handed over yet. */
  #words: { attempt: number; frames: Incoming[] } = { attempt: 0, frames: [] };
  #timer: ReturnType<typeof setTimeout> | undefined;
  #timerMs = NEVER;

  /**
   * @param reader this page's own name: a new connection of it replaces the old one (C3.9)
   */
  constructor(session: string, reader: string, sink: LiveSink, policy = LINK_POLICY) {
    this.#session = session;
    this.#reader = reader;
    this.#sink = sink;
    this.#state = { ...IDLE, policy };
  }

  /** Wants the line. */
  start(turnRunning: boolean): void {
    this.#put({ type: "start", turn_running: turnRunning });
  }

  /** Does without the line for a while, since `agoMs` milliseconds. */
  stop(agoMs = 0): void {
    this.#put({ type: "stop" }, agoMs);
  }

  /** Ends the line for good. */
  close(): void {
    this.#put({ type: "close" });
  }

  /** Waits no longer for the next try. */
  retryNow(): void {
    this.#put({ type: "retry_now" });
  }

  /** Tells the machine something; says whether it was a stored event that counts. */
  #put(happening: Happening, agoMs = 0): boolean {
    const before = this.#state;
    const moment = { now_ms: nowMs() - agoMs, random: Math.random() };
    const [state, effects] = step(before, { ...happening, ...moment });
    this.#state = state;
    for (const effect of effects) this.#perform(effect);
    this.#arm();
    const isNews =
      state.phase !== before.phase ||
      state.doing !== before.doing ||
      state.attempt !== before.attempt;
    if (isNews) this.#sink.link(this.#state);
    // What was waited for has come, or has failed, or its time is over.
    const isSettled = before.doing === "stream" && before.live_ms === null && state !== before;
    if (isSettled) this.#sink.silent.value = happening.type === "tick";
    return effects.some(({ type }) => type === "deliver");
  }

  #perform(effect: LinkEffect): void {
    switch (effect.type) {
      case "drop":
        this.#request?.abort();
        break;
      case "load_view":
        void this.#fetchView(effect.attempt);
        break;
      case "connect":
        void this.#follow(effect.attempt, effect.after);
        break;
      case "adopt":
        if (this.#fetched) this.#sink.view(this.#fetched);
        this.#fetched = undefined;
        break;
      case "give_up":
        this.#sink.gaveUp(faultOf(effect.reason, effect.attempts, this.#complaint));
        break;
      case "deliver":
        break;
    }
  }

  /**
   * One timer for the moment that the machine waits for. That moves with each byte, so the timer is
   * left to ring too early, which does no harm, and set anew only when it would ring too late.
   */
  #arm(): void {
    const wakeMs = this.#state.wake_ms ?? NEVER;
    if (wakeMs !== NEVER && wakeMs >= this.#timerMs) return;
    clearTimeout(this.#timer);
    this.#timerMs = wakeMs;
    if (wakeMs !== NEVER) this.#timer = setTimeout(() => this.#ring(), wakeMs - nowMs());
  }

  #ring(): void {
    this.#timerMs = NEVER;
    this.#put({ type: "tick" });
  }

  #signal(): AbortSignal {
    this.#request = new AbortController();
    return this.#request.signal;
  }

  async #fetchView(attempt: number): Promise<void> {
    try {
      const session = this.#session;
      const answer = early?.session === session ? early.answer : askView(session, this.#signal());
      early = undefined;
      const { log, seq, view } = await answer;
      if (attempt !== this.#state.attempt) return;
      this.#fetched = view;
      const ends = view.closed !== null;
      this.#put({ type: "loaded", attempt, log, seq, ends });
    } catch (error) {
      this.#end(error, attempt);
    }
  }

  async #follow(attempt: number, after: number): Promise<void> {
    const address = addressOf("follow", { session: this.#session }, { reader: this.#reader });
    const preloading = preloadParts().catch(() => undefined);
    try {
      const response = await fetch(address, {
        headers: { accept: "text/event-stream", "last-event-id": String(after) },
        credentials: "same-origin",
        cache: "no-store",
        signal: this.#signal(),
      });
      await checkAnswer(response);
      this.#put({ type: "heard", attempt });
      await preloading;
      // The server answers and does not have them any more: it holds another build of the page.
      if (!parts) throw makeForeign("version_mismatch", response.status);
      await this.#pump(response, parts, attempt);
      this.#put({ type: "cut", attempt });
    } catch (error) {
      this.#end(error, attempt);
    }
  }

  /** Tells the machine how a request ended; what is no answer at all is a cut, whatever it is called. */
  #end(error: unknown, attempt: number): void {
    if (attempt !== this.#state.attempt) return;
    this.#complaint = error instanceof ApiFault ? error.message : "";
    this.#put(endingOf(error, attempt));
  }

  async #pump(response: Response, parts: StreamParts, attempt: number): Promise<void> {
    const { SseDecoder, decodeFrame, reduceAll } = parts;
    const decoder = new SseDecoder();
    const reader = response.body?.getReader();
    let told: number | undefined;
    while (reader && this.#reads(attempt)) {
      const { done, value } = await reader.read();
      if (done) {
        this.#flush(reduceAll);
        return;
      }
      this.#put({ type: "heard", attempt });
      const frames = decoder.feed(value).map(({ event, data }) => decodeFrame(event, data));
      await this.#gather(frames, reduceAll, attempt);
      if (decoder.retry === undefined || decoder.retry === told) continue;
      told = decoder.retry;
      this.#put({ type: "retry", attempt, retry_ms: told });
    }
  }

  /** Whether the stream of this attempt is still the one that counts. */
  #reads(attempt: number): boolean {
    return attempt === this.#state.attempt && this.#state.doing === "stream";
  }

  /**
   * Words wait a moment for more words: the screen shows them no sooner. Nothing is read meanwhile,
   * for each reading costs more than its few words. All else goes at once.
   */
  async #gather(frames: Incoming[], fold: typeof reduceAll, attempt: number): Promise<void> {
    if (this.#words.attempt !== attempt) this.#words = { attempt, frames: [] };
    const { frames: held } = this.#words;
    held.push(...frames);
    if (!frames.every(isWord)) this.#flush(fold);
    else if (frames.length > 0 && held.length === frames.length) {
      await new Promise((resolve) => setTimeout(resolve, GATHER_MS));
      // After what has come meanwhile, which is read in one go.
      setTimeout(() => this.#flush(fold));
    }
  }

  #flush(fold: typeof reduceAll): void {
    const { attempt, frames } = this.#words;
    if (frames.length > 0) this.#take(frames.splice(0), fold, attempt);
  }

  /** Control frames go to the machine, the rest to the sink, in order. */
  #take(frames: Incoming[], fold: typeof reduceAll, attempt: number): void {
    let batch: Incoming[] = [];
    const handOver = (): void => {
      const isLost = batch.length > 0 && this.#sink.frames(batch, fold).lost;
      batch = [];
      if (isLost) this.#put({ type: "lost", attempt });
    };
    for (const frame of frames) {
      if (!this.#reads(attempt)) break;
      if (frame.kind !== "envelope" && frame.kind !== "partial") {
        handOver();
        this.#takeControl(frame, attempt);
      } else if (this.#counts(frame, attempt)) batch.push(frame);
    }
    handOver();
  }

  /** Whether a frame is new: deltas and partials are, a stored event when the machine says so. */
  #counts(frame: Incoming, attempt: number): boolean {
    if (frame.kind !== "envelope" || typeof frame.value.seq !== "number") return true;
    const { seq, event } = frame.value;
    return this.#put({ type: "stored", attempt, seq, ends: event.type === "session_closed" });
  }

  #takeControl(frame: Incoming, attempt: number): void {
    if (frame.kind === "hello") {
      this.#sink.hello(frame.value);
      this.#put({ type: "hello", attempt, log: frame.value.log });
    } else if (frame.kind === "gap") {
      this.#put({ type: "gap", attempt });
    } else if (frame.kind === "reset") {
      this.#put({ type: "reset", attempt, retry_ms: frame.value.retry_ms });
    } else if (frame.kind === "broken") {
      this.broken += 1;
    }
  }
}

/** Whether a frame is a piece of something that is still being made: nothing that is kept. */
function isWord(frame: Incoming): boolean {
  return frame.kind === "envelope" && typeof frame.value.seq !== "number";
}

function endingOf(error: unknown, attempt: number): Happening {
  if (!(error instanceof ApiFault)) return { type: "cut", attempt };
  const { code, ours: contract, afterMs: retry_after_ms } = error;
  if (code === "contract_unavailable" || code === "version_mismatch") {
    return { type: "misfit", attempt, reason: code };
  }
  if (error.status === 0) return { type: "cut", attempt };
  const status = code === "unauthorized" ? 401 : error.status;
  return { type: "refused", attempt, status, contract, retry_after_ms };
}

/** Why nothing more is tried, as the contract's faults say it (C4.6). */
function faultOf(reason: Failure, attempts: number, message: string): Fault {
  const code = reason === "contract_unavailable" ? "capability_unavailable" : reason;
  if (reason !== "unauthorized") return { code, message };
  return { code, message, scope: "client.auth", details: { attempts } };
}
