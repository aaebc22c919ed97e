import { beforeEach, describe, expect, test } from "vitest";
import { learn } from "../src/platform/api.ts";
import type { CallView, FileChange, MessageView } from "../src/protocol/types.gen.ts";
import { route } from "../src/state/router.ts";
import { MessageFooter } from "../src/ui/chat/Message.tsx";
import { TurnSheet } from "../src/ui/turn/MessageFooter.tsx";
import { SESSION, TIME, useChatScreen } from "./chat_screen.tsx";
import { json, problem } from "./fake_server.ts";

const on = useChatScreen();

const DIFF = "--- a/app.py\n+++ b/app.py\n@@ -1 +1,2 @@\n-a\n+b\n+c\n";
const CHANGE: FileChange = { path: "app.py", kind: "changed", before: "1", after: "2", diff: DIFF };
const CALL = {
  call: "call_1",
  turn: "trn_1",
  changes: [CHANGE, { path: "new.bin", kind: "created", after: "3", diff: null }, CHANGE],
} as unknown as CallView;
const ANSWER: MessageView = {
  seq: 3,
  role: "assistant",
  id: "msg_1",
  turn: "trn_1",
  time: TIME,
  content: [{ type: "text", text: "Done." }],
  cut: null,
  key: null,
  mark: null,
  undone: false,
};
const TURN = `/api/sessions/${SESSION}/turns/trn_1`;

beforeEach(async () => {
  await Promise.all([MessageFooter.preload(), TurnSheet.preload(), learn()]);
});

async function open(): Promise<HTMLElement> {
  on.screen.server.on(`GET ${TURN}/diff`, () => json({ turn: "trn_1", changes: [CHANGE] }));
  await on.screen.show({ seq: 3, messages: [ANSWER], calls: [CALL] });
  await on.screen.press("2 files changed");
  await on.screen.settle();
  return on.screen.place.querySelector("dialog") as HTMLElement;
}

describe("under an answer", () => {
  test("stands how many files its turn changed, and a tap shows each line of it", async () => {
    const sheet = await open();
    expect(on.screen.text(".files-button .counts")).toBe("+4 −2");
    expect(sheet.querySelector(".change-path")?.textContent).toBe("app.py");
    expect(sheet.querySelector(".counts")?.textContent).toBe("+2 −1");
    const rows = [...sheet.querySelectorAll(".diff .row")].map((row) => row.textContent);
    expect(rows.slice(-3)).toEqual(["1−a", "1+b", "2+c"]);
  });

  test("a turn that changed nothing says so, and one that cannot be read offers to try again", async () => {
    let answers = 0;
    on.screen.server.on(`GET ${TURN}/diff`, () => {
      answers += 1;
      return answers === 1 ? problem(503, "store_full") : json({ turn: "trn_1", changes: [] });
    });
    await on.screen.show({ seq: 3, messages: [ANSWER] });
    expect(on.screen.place.querySelector(".files-button")).toBeNull();
    await on.screen.press("More on this answer");
    await on.screen.settle();
    const sheet = on.screen.place.querySelector("dialog") as HTMLElement;
    expect(sheet.querySelector("[role=alert]")?.textContent).toContain("could not be loaded");
    await on.screen.press("Retry", sheet);
    await on.screen.settle();
    expect(sheet.textContent).toContain("No file was changed.");
  });

  // rules: A5.75
  test("undo asks once more, and puts back nothing that somebody changed since", async () => {
    const conflict = { path: "app.py", what: "changed since" };
    on.screen.server.on(`POST ${TURN}/revert`, ({ body }) =>
      (body as { skip_conflicts: boolean }).skip_conflicts
        ? json({ turn: "trn_1", reverted: ["new.bin"], conflicts: [conflict] })
        : json({ turn: "trn_1", conflicts: [conflict] }),
    );
    const sheet = await open();
    await on.screen.press("Undo…", sheet);
    expect(on.screen.server.to(`${TURN}/revert`)).toEqual([]);
    await on.screen.press("Undo", sheet);
    await on.screen.settle();
    expect(sheet.querySelector(".undo")?.textContent).toContain("Nothing was put back");
    await on.screen.press("Put the others back", sheet);
    await on.screen.settle();
    expect(sheet.querySelector(".undo")?.textContent).toContain("1 put back.");
    const [first, second] = on.screen.server.to(`${TURN}/revert`);
    expect(first?.body).toEqual({ conversation: true, skip_conflicts: false });
    expect(second?.body).toEqual({ conversation: true, skip_conflicts: true });
    expect(second?.headers.get("idempotency-key")).not.toBe(first?.headers.get("idempotency-key"));
    await on.screen.press("Close", sheet.querySelector(".undo") as HTMLElement);
    expect(sheet.isConnected).toBe(false); // not back to the offer of what is done
  });

  test("an undo that is refused says why, and can be left", async () => {
    on.screen.server.on(`POST ${TURN}/revert`, () => problem(409, "conflict"));
    const sheet = await open();
    await on.screen.press("Undo…", sheet);
    await on.screen.press("Undo", sheet);
    await on.screen.settle();
    expect(sheet.querySelector("[role=alert]")?.textContent).toContain("Somebody was quicker");
    await on.screen.press("Back", sheet);
    expect(sheet.querySelector(".undo")).toBeNull();
  });

  test("an undo whose answer a crash cut off is done, as the talk tells", async () => {
    const sheet = await open();
    await on.screen.press("Undo…", sheet);
    on.screen.server.on(`POST ${TURN}/revert`, () =>
      problem(422, "rejected", { reason: "turn_gone" }),
    );
    await on.screen.press("Undo", sheet);
    await on.screen.settle();
    expect(sheet.querySelector(".undo [role=alert]")?.textContent).toContain("It is gone");
    await on.screen.happen({ type: "reverted", to_turn: "trn_1" });
    await on.screen.happen({ type: "files_reverted", turn: "trn_1", files: ["app.py", "new.bin"] });
    expect(sheet.querySelector(".undo [role=alert]")).toBeNull();
    expect(sheet.querySelector(".undo")?.textContent).toContain("2 put back.");
  });

  test("a branch goes to the new session", async () => {
    const made = { id: "ses_b", agent: "a", model: "m", mode: "ask", live: false, last_seq: 1 };
    const times = { created: TIME, updated: TIME };
    on.screen.server.on(`POST /api/sessions/${SESSION}/fork`, () =>
      json({ ...made, ...times }, 201),
    );
    const sheet = await open();
    await on.screen.press("Branch from here", sheet);
    await on.screen.settle();
    expect(on.screen.server.to(`/api/sessions/${SESSION}/fork`)[0]?.body).toEqual({
      turn: "trn_1",
    });
    expect(route.value).toEqual({ page: "chat", session: "ses_b" });
  });
});
