/** One open session: its view, its connection, and what a person does with it. */

import { batch, computed, type ReadonlySignal, signal } from "@preact/signals";
import { emptyView } from "../core/empty_view.ts";
import { IDLE, type LinkState } from "../core/link.ts";
import type { reduceAll } from "../core/reducer.ts";
import { ApiFault } from "../platform/api.ts";
import { Live, type LiveSink } from "../platform/live.ts";
import type { Incoming } from "../protocol/frames.ts";
import type {
  AnswerQuestion,
  CallView,
  Fault,
  Hello,
  PermissionRequested,
  SessionView,
} from "../protocol/types.gen.ts";
import { signOut } from "./account.ts";
import { noteLink } from "./connection_log.ts";
import { deliver, hurryOutbox, newKey, settleOutbox } from "./outbox.ts";

/** The build that the server holds, once it is known. */
export const serverBuild = signal<string | null>(null);

/** Item id to the options that were chosen, and own words. */
type Answers = AnswerQuestion["answers"];

/** A session that is shown. */
export class Chat implements LiveSink {
  readonly session: string;
  /** The view as it stands; empty until `loaded`. */
  readonly current = signal<SessionView>(emptyView());
  /** Whether a view has come, or a copy of one. */
  readonly loaded = signal(false);
  /** Milliseconds since 1970 of the moment that a copy shows; nothing when a server said it. */
  readonly copied = signal<number | null>(null);
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
  /** Hears what comes, before it is shown. */
  overhear?: (frames: readonly Incoming[]) => void;
  readonly #live: Live;
  /** The view without what this page itself has to say of the connection. */
  #told = emptyView();

  constructor(session: string, reader: string) {
    this.session = session;
    this.#live = new Live(session, reader, this);
  }

  /** One tool call; nothing when the view does not hold it. */
  call(id: string): ReadonlySignal<CallView | undefined> {
    return computed(() => this.#calls.value.get(id));
  }

  /** Connects, also after a failure. */
  start(): void {
    if (this.state.peek().phase === "failed") this.current.value = this.#told;
    this.#live.start(this.#told.turn !== null);
  }

  /** Leaves the connection, since `agoMs` milliseconds; nothing of the session is lost. */
  stop(agoMs = 0): void {
    this.#live.stop(agoMs);
  }

  /** Waits no longer: a person asks, or the device has a network again. */
  retryNow(): void {
    if (this.state.peek().phase === "failed") this.start();
    else this.#live.retryNow();
    hurryOutbox();
  }

  view(view: SessionView): void {
    this.copied.value = null;
    this.#show(view);
  }

  /** Shows what was read before, until a server says more. */
  showCopy(view: SessionView, at: number): void {
    this.copied.value = at;
    this.current.value = view;
    this.loaded.value = true;
  }

  frames(frames: readonly Incoming[], fold: typeof reduceAll): { lost: boolean } {
    this.overhear?.(frames);
    const next = fold(this.#told, frames);
    this.#show(next);
    return { lost: next.lost };
  }

  hello(hello: Hello): void {
    this.overhear?.([{ kind: "hello", value: hello }]);
    this.clockAheadMs.value = Date.parse(hello.now) - Date.now();
    serverBuild.value = hello.web_build ?? null;
  }

  link(state: LinkState): void {
    this.state.value = state;
    noteLink(this.session, state, Date.now());
    if (state.failed === "unauthorized") signOut(true);
  }

  gaveUp(fault: Fault): void {
    this.current.value = { ...this.#told, fault };
  }

  /** Asks the server to stop the running turn; the turn ends when its last event says so. */
  async interrupt(): Promise<void> {
    const turn = this.turn.peek();
    if (!turn) return;
    this.stopping.value = turn.id;
    this.complaint.value = null;
    const path = { session: this.session };
    const complaint = await complaintOf(
      deliver("interrupt", { path, key: newKey(), body: { turn: turn.id } }),
    );
    // What came to its end meanwhile needs no stop any more.
    if (complaint === null || this.stopping.peek() !== turn.id) return;
    this.complaint.value = complaint;
    this.stopping.value = null;
  }

  /** Answers a permission request; tells what was wrong when the answer was not taken. */
  async answer(request: PermissionRequested, option: string, key: string): Promise<string | null> {
    const { permission, digest } = request;
    const path = { session: this.session, permission };
    return complaintOf(deliver("answer_permission", { path, key, body: { option, digest } }));
  }

  /** Answers all items of a question; tells what was wrong when the answers were not taken. */
  async answerQuestion(question: string, answers: Answers, key: string): Promise<string | null> {
    const path = { session: this.session, question };
    return complaintOf(deliver("answer_question", { path, key, body: { answers } }));
  }

  #show(view: SessionView): void {
    this.#told = view;
    batch(() => {
      this.current.value = view;
      this.loaded.value = true;
      if (view.turn?.id !== this.stopping.peek()) this.stopping.value = null;
      settleOutbox(view);
    });
  }
}

/** Why a command was not done; nothing when it was. */
async function complaintOf(command: Promise<unknown>): Promise<string | null> {
  try {
    await command;
    return null;
  } catch (error) {
    if (!(error instanceof ApiFault)) throw error;
    return error.message;
  }
}

/** The session that is shown. */
export const chat = signal<Chat | null>(null);
