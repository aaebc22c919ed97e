import type { DetachedWindowAPI } from "happy-dom";
import { render } from "preact";
import { afterEach, beforeEach, expect, vi } from "vitest";
import { emptyView } from "../src/core/empty_view.ts";
import { reduceAll } from "../src/core/reducer.ts";
import type { Event, PermissionRequested, SessionView } from "../src/protocol/types.gen.ts";
import { Chat } from "../src/state/chat.ts";
import { drafts, outbox } from "../src/state/outbox.ts";
import { ChatPage, QueueBar, Requests } from "../src/ui/chat/ChatPage.tsx";
import { QueueMenu } from "../src/ui/chat/Composer.tsx";
import { preloadStreamer } from "../src/ui/chat/Markdown.tsx";
import { TurnFailure } from "../src/ui/chat/Message.tsx";
import { Pending, WorkingLine } from "../src/ui/chat/MessageList.tsx";
import { WorkingMore, WorkingWords } from "../src/ui/chat/Steps.tsx";
import { SessionList } from "../src/ui/shell/AppShell.tsx";
import { ToolBody } from "../src/ui/tools/ToolCard.tsx";
import { FakeServer } from "./fake_server.ts";

export const SESSION = "ses_a";
export const TIME = "2026-01-31T09:00:00.000Z";

/** A request whose command is far longer than a phone is high. */
export const REQUEST: PermissionRequested = {
  type: "permission_requested",
  permission: "prm_1",
  call: "call_1",
  tool: "run_program",
  title: "Run rm",
  preview: { kind: "command", text: `rm -rf ${"very/long/path/".repeat(300)}end` },
  digest: "d".repeat(64),
  options: [
    { id: "allow_once", label: "Allow once" },
    { id: "allow_always", label: "Always allow", rule: "run_program rm" },
    { id: "deny", label: "Deny" },
  ],
  expires_at: "2999-01-01T00:00:00.000Z",
};

/** Makes the window a phone's, or a desk's. */
export function setWidth(width: number): void {
  (window as unknown as { happyDOM: DetachedWindowAPI }).happyDOM.setViewport({ width });
}

/** One chat on a page of its own, with a server and a clock that a test moves. */
export class ChatScreen {
  readonly server = new FakeServer();
  readonly chat = new Chat(SESSION, "page");
  readonly place = document.createElement("div");
  #seq = 0;

  constructor() {
    document.body.append(this.place);
  }

  /** Lets effects, timers that are due and answers run. */
  async settle(ms = 50): Promise<void> {
    await vi.advanceTimersByTimeAsync(ms);
  }

  async show(view: Partial<SessionView> = {}): Promise<void> {
    this.#seq = view.seq ?? 0;
    this.chat.view({ ...emptyView(), session: SESSION, ...view });
    render(<ChatPage chat={this.chat} />, this.place);
    await this.settle();
  }

  /** Leaves the page, as a reload does. */
  leave(): void {
    render(null, this.place);
  }

  /** Something happens in the session; a delta is not stored. */
  async happen(event: Event, stored = true): Promise<void> {
    if (stored) this.#seq += 1;
    const seq = stored ? this.#seq : null;
    const value = { seq, session: SESSION, turn: "trn_1", time: TIME, event };
    this.chat.frames([{ kind: "envelope", value }], reduceAll);
    await this.settle(100);
  }

  async startTurn(): Promise<void> {
    await this.happen({ type: "turn_started", prompt: "pmt_1", model: "m", limits: {} });
  }

  button(name: string, inside: ParentNode = this.place): HTMLButtonElement {
    const found = [...inside.querySelectorAll("button")].find(
      (one) => one.textContent?.startsWith(name) || one.getAttribute("aria-label") === name,
    );
    expect(found, `a button ${name}`).toBeDefined();
    return found as HTMLButtonElement;
  }

  async press(name: string, inside?: ParentNode): Promise<void> {
    this.button(name, inside).click();
    await this.settle();
  }

  get field(): HTMLTextAreaElement {
    return this.place.querySelector("textarea") as HTMLTextAreaElement;
  }

  async type(text: string): Promise<void> {
    this.field.value = text;
    this.field.dispatchEvent(new InputEvent("input", { bubbles: true }));
    await this.settle(400);
  }

  /** The text of the first element that fits. */
  text(selector: string): string | undefined {
    return this.place.querySelector(selector)?.textContent;
  }
}

/** A new screen for each test of the file. */
export function useChatScreen(): { readonly screen: ChatScreen } {
  const holder = {} as { screen: ChatScreen };
  beforeEach(async () => {
    await Promise.all([
      preloadStreamer(),
      Requests.preload(),
      Pending.preload(),
      WorkingLine.preload(),
      WorkingWords.preload(),
      WorkingMore.preload(),
      ToolBody.preload(),
      SessionList.preload(),
      QueueBar.preload(),
      QueueMenu.preload(),
      TurnFailure.preload(),
    ]);
    vi.useFakeTimers({
      toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval", "Date", "performance"],
    });
    localStorage.clear();
    for (const place of [SESSION, `${SESSION}.qst_1`, null]) drafts.write(place, "");
    outbox.value = [];
    setWidth(390);
    holder.screen = new ChatScreen();
  });
  afterEach(() => {
    holder.screen.leave();
    holder.screen.place.remove();
    setWidth(1_024);
    vi.useRealTimers();
    vi.unstubAllGlobals();
  });
  return holder;
}
