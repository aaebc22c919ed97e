import { describe, expect, test } from "vitest";
import { emptyView } from "../src/core/empty_view.ts";
import type { CallView, SessionView } from "../src/protocol/types.gen.ts";
import { useChatScreen } from "./chat_screen.tsx";
import { json, problem } from "./fake_server.ts";
import { asks, call, message, words } from "./steps.ts";

const on = useChatScreen();
const ASKED = message(1, "user", [words("Go")]);

describe("a sub-agent", () => {
  const CHILD = "ses_child";
  const VIEW = `/api/sessions/${CHILD}/view`;
  const child = (...calls: CallView[]): SessionView => ({
    ...emptyView(),
    session: CHILD,
    messages: [
      message(
        1,
        "assistant",
        calls.map((one) => asks(one.call)),
      ),
    ],
    calls,
  });
  const give = (view: SessionView): void => {
    on.screen.server.on(`GET ${VIEW}`, () => json({ log: "log", seq: 1, view }));
  };
  const spawn = (more: Partial<CallView> = {}): CallView =>
    call("c1", { title: "Explore", child: CHILD, ...more });
  const show = (one: CallView, open = false): Promise<void> =>
    on.screen.show({
      messages: [ASKED, message(2, "assistant", [asks("c1"), words("Found.")])],
      [open ? "open_calls" : "calls"]: [one],
    });

  async function openCard(): Promise<void> {
    const card = on.screen.place.querySelector("details.tool") as HTMLDetailsElement;
    card.open = true;
    card.dispatchEvent(new Event("toggle"));
    await on.screen.settle();
    await on.screen.settle();
  }
  const rows = (): (string | null)[] =>
    [...on.screen.place.querySelectorAll(".tool-body .tool-title")].map((one) => one.textContent);

  test("its card holds what it did, asked for only when it is opened, and leads to its session", async () => {
    give(child(call("d1"), call("d2", { status: "failed" })));
    await show(spawn());
    expect(on.screen.server.to(VIEW)).toHaveLength(0);
    await openCard();
    expect(rows()).toEqual(["Look d1", "Look d2"]);
    await on.screen.press("Open the sub-agent's session");
    expect(location.hash).toContain(CHILD);
  });

  test("is read again when its call has news", async () => {
    give(child(call("d1")));
    await show(spawn({ status: "in_progress" }), true);
    await openCard();
    expect(rows()).toEqual(["Look d1"]);
    give(child(call("d1"), call("d2")));
    await on.screen.happen({ type: "tool_progress", call: "c1", text: "explorer: Look d2" });
    await on.screen.settle(600);
    expect(rows()).toEqual(["Look d1", "Look d2"]);
  });

  const news = (text: string): Promise<void> =>
    on.screen.happen({ type: "tool_progress", call: "c1", text });

  test("what it does is seen to end", async () => {
    const states = (): (string | undefined)[] =>
      [...on.screen.place.querySelectorAll<HTMLElement>(".tool-body .tool")].map(
        (one) => one.dataset.status,
      );
    give({ ...child(call("d1")), calls: [], open_calls: [call("d1", { status: "in_progress" })] });
    await show(spawn({ status: "in_progress" }), true);
    await openCard();
    expect(states()).toEqual(["in_progress"]);
    give(child(call("d1")));
    await news("explorer: done");
    await on.screen.settle(600);
    expect(states()).toEqual(["completed"]);
  });

  test("is read to the end however fast news come, and no more when nobody sees it", async () => {
    let [asked, answered] = [0, 0];
    on.screen.server.on(
      `GET ${VIEW}`,
      ({ signal }) =>
        new Promise((resolve, reject) => {
          asked += 1;
          signal?.addEventListener("abort", () => reject(signal.reason));
          setTimeout(() => {
            answered += 1;
            resolve(json({ log: "log", seq: 1, view: child(call(`d${answered}`)) }));
          }, 1_000);
        }),
    );
    await show(spawn({ status: "in_progress" }), true);
    await openCard();
    for (let at = 0; at < 20; at += 1) await news(`explorer: ${at}`);
    expect([rows(), asked]).toEqual([["Look d1"], 2]);
    await on.screen.settle(5_000);
    expect([rows(), asked, answered]).toEqual([["Look d3"], 3, 3]);
    await news("explorer: more");
    on.screen.leave();
    await on.screen.settle(5_000);
    expect(on.screen.server.to(VIEW).map(({ signal }) => signal?.aborted)).toContain(true);
  });

  test("says when it has done nothing, and when that cannot be told", async () => {
    give(child());
    await show(spawn());
    await openCard();
    expect(on.screen.text(".tool-body")).toContain("Nothing yet");
    on.screen.leave();
    on.screen.server.on(`GET ${VIEW}`, () => problem(404, "not_found"));
    await show(spawn());
    await openCard();
    expect(on.screen.text(".tool-body .complaint")).toBe("That is not here.");
    on.screen.button("Open the sub-agent's session");
  });

  test("is read again after a read that failed, though its call has no more news", async () => {
    on.screen.server.on(`GET ${VIEW}`, () => problem(503, "draining"));
    await show(spawn());
    await openCard();
    expect(on.screen.text(".tool-body .complaint")).not.toBe("");
    give(child(call("d1")));
    await on.screen.settle(5_100);
    await on.screen.settle();
    expect(rows()).toEqual(["Look d1"]);
  });
});
