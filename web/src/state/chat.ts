/** One open session: its view, its connection, and what a person does with it. */

import { batch, computed, type ReadonlySignal, signal } from "@preact/signals";
import { emptyView } from "../core/empty_view.ts";
import { IDLE, type LinkState } from "../core/link.ts";
import type { reduceAll } from "../core/reducer.ts";
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
import { complaintOf, deliver, hurryOutbox, newKey, settleOutbox } from "./outbox.ts";

/** The build that the server holds, once it is known. */
export const serverBuild = signal<string | null>(null);

/** A part of the conversation. */
type Before = Pick<SessionView, "messages" | "calls" | "notices">;
const NONE_BEFORE: Before = { messages: [], calls: [], notices: [] };

/** Item id to the options that were chosen, and own words. */
type Answers = AnswerQuestion["answers"];

function partsOf(view: ReadonlySignal<SessionView>): SessionView {
  const parts = emptyView();
  for (const name of Object.keys(parts) as (keyof SessionView)[]) {
    const part = computed(() => view.value[name]);
    Object.defineProperty(parts, name, { get: () => part.value });
  }
  return parts;
}

/** Those that came after one event and before another. */
function between<T extends { seq: number }>(all: readonly T[], last: number, first: number): T[] {
  return all.filter(({ seq }) => seq > last && seq < first);
}

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
  /** Whether of the last stream that was asked for not a word came. */
  readonly silent = signal(false);
  /** The turn that was asked to stop and has not ended. */
  readonly stopping = signal<string | null>(null);
  /** Why the last thing asked of the server was not done. */
  readonly complaint = signal<string | null>(null);
  /** How many prompts were sent from this page. */
  readonly sentCount = signal(0);
  /** Milliseconds that the server's clock is ahead of this device's. */
  readonly clockAheadMs = signal(0);
  /** The last event that was read when the reader came, or came back; nothing for all. */
  readonly newAfter = signal<number | null>(null);
  /** Whether one more press of Escape stops the turn. */
  readonly escaped = signal(false);
  /** What was read of before the view, oldest first. */
  readonly before = signal<Before>(NONE_BEFORE);

  /** Each field of the view by itself: who reads one hears of no other. */
  readonly parts = partsOf(this.current);
  readonly messages = computed(() => {
    const { messages } = this.before.value;
    const { messages: held } = this.parts;
    return messages.length > 0 ? [...messages, ...held] : held;
  });
  readonly notices = computed(() => [...this.before.value.notices, ...this.parts.notices]);
  readonly openMessages = computed(() => this.parts.open_messages);
  readonly permissions = computed(() => this.parts.permissions);
  readonly questions = computed(() => this.parts.questions);
  readonly queue = computed(() => this.parts.queue);
  readonly turn = computed(() => this.parts.turn);
  readonly title = computed(() => this.parts.title);

  /** All calls that are held, by their ids. */
  readonly calls = computed(() => {
    const { calls, open_calls } = this.parts;
    const all = [...this.before.value.calls, ...calls, ...open_calls];
    return new Map(all.map((entry) => [entry.call, entry]));
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
    return computed(() => this.calls.value.get(id));
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
    const last = this.#told.messages.at(-1)?.seq ?? 0;
    if ((view.messages[0]?.seq ?? 0) > last) this.before.value = NONE_BEFORE;
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
  async answer(
    request: PermissionRequested,
    option: string,
    key: string,
    note = "",
  ): Promise<string | null> {
    const { permission, digest } = request;
    const path = { session: this.session, permission };
    const body = { option, digest, ...(note && { note }) };
    return complaintOf(deliver("answer_permission", { path, key, body }));
  }

  /** Answers all items of a question; tells what was wrong when the answers were not taken. */
  async answerQuestion(question: string, answers: Answers, key: string): Promise<string | null> {
    const path = { session: this.session, question };
    return complaintOf(deliver("answer_question", { path, key, body: { answers } }));
  }

  /** What the view lets go of is kept behind what was read of before it. */
  #keepBefore(view: SessionView): void {
    const { messages, calls, notices } = this.before.peek();
    const first = view.messages[0]?.seq ?? 0;
    const gone = between(this.#told.messages, messages.at(-1)?.seq ?? first, first);
    // What is left of these comes with no page of older messages.
    const noted = between(this.#told.notices, notices.at(-1)?.seq ?? 0, view.notices[0]?.seq ?? 0);
    if (gone.length + noted.length === 0) return;
    // Each of them once: a long talk lets go of very many messages.
    const all = gone.length > 0 ? new Set([...calls, ...this.#told.calls]) : calls;
    this.before.value = {
      messages: [...messages, ...gone],
      calls: [...all],
      notices: [...notices, ...noted],
    };
  }

  #show(view: SessionView): void {
    this.#keepBefore(view);
    this.#told = view;
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
