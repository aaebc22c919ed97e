/** One open session: its view, its connection, and what a person does with it. */

import { batch, computed, type ReadonlySignal, signal } from "@preact/signals";
import { IDLE, type LinkState } from "../core/link.ts";
import { emptyView, reduceAll } from "../core/reducer.ts";
import { ApiFault, call } from "../platform/api.ts";
import { Live, type LiveSink } from "../platform/live.ts";
import type { Incoming } from "../protocol/events.ts";
import type {
  AnswerQuestion,
  CallView,
  Hello,
  PermissionRequested,
  SessionView,
} from "../protocol/types.gen.ts";
import { signOut } from "./account.ts";
import { settleOutbox } from "./outbox.ts";

/** The build that the server holds, once it is known. */
export const serverBuild = signal<string | null>(null);

/** Item id to the options that were chosen, and own words. */
type Answers = AnswerQuestion["answers"];

/** A session that is shown. */
export class Chat implements LiveSink {
  readonly session: string;
  /** The view as it stands; empty until `loaded`. */
  readonly current = signal<SessionView>(emptyView());
  /** Whether a view has come. */
  readonly loaded = signal(false);
  /** The connection. */
  readonly state = signal<LinkState>(IDLE);
  /** The turn that was asked to stop and has not ended. */
  readonly stopping = signal<string | null>(null);
  /** Why the last thing asked of the server was not done. */
  readonly complaint = signal<string | null>(null);
  /** How many prompts were sent from this page. */
  readonly sentCount = signal(0);
  /** Milliseconds that the server's clock is ahead of this device's. */
  readonly clockAheadMs = signal(0);

  readonly messages = computed(() => this.current.value.messages);
  readonly openMessages = computed(() => this.current.value.open_messages);
  readonly permissions = computed(() => this.current.value.permissions);
  readonly questions = computed(() => this.current.value.questions);
  readonly queue = computed(() => this.current.value.queue);
  readonly turn = computed(() => this.current.value.turn);
  readonly title = computed(() => this.current.value.title);

  readonly #calls = computed(() => {
    const { calls, open_calls } = this.current.value;
    return new Map([...calls, ...open_calls].map((entry) => [entry.call, entry]));
  });
  readonly #live: Live;

  constructor(session: string, reader: string) {
    this.session = session;
    this.#live = new Live(session, reader, this);
  }

  /** One tool call; nothing when the view does not hold it. */
  call(id: string): ReadonlySignal<CallView | undefined> {
    return computed(() => this.#calls.value.get(id));
  }

  /** Connects; with `fresh` from the view. */
  start(fresh = false): void {
    this.#live.put({ type: "start", fresh });
  }

  /** Leaves the connection; nothing of the session is lost. */
  stop(): void {
    this.#live.put({ type: "stop" });
  }

  retryNow(): void {
    const { phase } = this.state.peek();
    this.#live.put({ type: phase === "failed" ? "start" : "retry_now" });
  }

  view(view: SessionView): void {
    this.#show(view);
  }

  frames(frames: readonly Incoming[]): { seq: number; lost: boolean } {
    const next = reduceAll(this.current.peek(), frames);
    this.#show(next);
    return { seq: next.seq, lost: next.lost };
  }

  hello(hello: Hello): void {
    this.clockAheadMs.value = Date.parse(hello.now) - Date.now();
    serverBuild.value = hello.web_build ?? null;
  }

  link(state: LinkState): void {
    this.state.value = state;
    if (state.failure === "unauthorized") signOut(true);
    // A closed session replays and ends: there is nothing to come back for.
    if (state.phase === "retrying" && this.current.peek().closed !== null) {
      this.#live.put({ type: "close" });
    }
  }

  /** Asks the server to stop the running turn; the turn ends when its last event says so. */
  async interrupt(): Promise<void> {
    const turn = this.turn.peek();
    if (!turn) return;
    this.stopping.value = turn.id;
    const done = await this.#ask(() =>
      call("interrupt", { path: { session: this.session }, body: { turn: turn.id } }),
    );
    if (!done) this.stopping.value = null;
  }

  /** Answers a permission request; tells what was wrong when the answer was not taken. */
  async answer(request: PermissionRequested, option: string, key: string): Promise<string | null> {
    const { permission, digest } = request;
    const path = { session: this.session, permission };
    return this.#answer(() => call("answer_permission", { path, key, body: { option, digest } }));
  }

  /** Answers all items of a question; tells what was wrong when the answers were not taken. */
  async answerQuestion(question: string, answers: Answers, key: string): Promise<string | null> {
    const path = { session: this.session, question };
    return this.#answer(() => call("answer_question", { path, key, body: { answers } }));
  }

  async #answer(request: () => Promise<unknown>): Promise<string | null> {
    try {
      await request();
      return null;
    } catch (error) {
      if (!(error instanceof ApiFault)) throw error;
      if (error.code === "unauthorized") signOut(true);
      return error.message;
    }
  }

  async #ask(request: () => Promise<unknown>): Promise<boolean> {
    this.complaint.value = null;
    try {
      await request();
      return true;
    } catch (error) {
      if (!(error instanceof ApiFault)) throw error;
      if (error.code === "unauthorized") signOut(true);
      else this.complaint.value = error.message;
      return false;
    }
  }

  #show(view: SessionView): void {
    batch(() => {
      this.current.value = view;
      this.loaded.value = true;
      if (view.turn?.id !== this.stopping.peek()) this.stopping.value = null;
      settleOutbox(view);
    });
  }
}

/** The session that is shown. */
export const chat = signal<Chat | null>(null);
