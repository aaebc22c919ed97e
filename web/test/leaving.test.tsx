import { render } from "preact";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { learn } from "../src/platform/api.ts";
import { access } from "../src/state/account.ts";
import { leaveFault, leaveSession, leaving, sessions } from "../src/state/sessions.ts";
import { leave } from "../src/state/sign_in.ts";
import { SessionList } from "../src/ui/sessions/SessionList.tsx";
import { FakeServer, json, problem } from "./fake_server.ts";

const ROWS = ["ses_a", "ses_b"].map((id, at) => ({
  id,
  title: id,
  agent: "helper",
  model: "m",
  mode: "ask",
  live: false,
  last_seq: 1,
  created: "2026-01-31T09:00:00.000Z",
  updated: `2026-01-31T09:00:00.00${9 - at}Z`,
}));

let place: HTMLElement;
let server: FakeServer;
let asked: RequestInit[];
let gone: Set<string>;

const settle = (ms = 20): Promise<unknown> => vi.advanceTimersByTimeAsync(ms);
const deletedAs = (session: string) => ({ session, until: "2026-03-02T09:00:00.000Z" });
const deleted = (): string[] =>
  server.seen.filter(({ method }) => method === "DELETE").map(({ path }) => path.slice(-5));
const shown = (): (string | null)[] =>
  [...place.querySelectorAll(".session-title")].map(({ textContent }) => textContent);
const undo = (): HTMLButtonElement | null => place.querySelector(".snackbar button");

beforeEach(async () => {
  await learn();
  vi.useFakeTimers();
  gone = new Set();
  server = new FakeServer().on("GET /api/sessions", () =>
    json({ sessions: ROWS.filter(({ id }) => !gone.has(id)), next: null }),
  );
  for (const { id } of ROWS) {
    server.on(`DELETE /api/sessions/${id}`, () => {
      gone.add(id);
      return json(deletedAs(id));
    });
  }
  asked = [];
  const served = fetch;
  vi.stubGlobal("fetch", (input: string, init: RequestInit) => {
    asked.push(init);
    return served(input, init);
  });
  leaving.value = new Map();
  leaveFault.value = "";
  sessions.value = ROWS;
  place = document.createElement("div");
  document.body.append(place);
  render(<SessionList onPick={() => undefined} />, place);
  await settle();
});

afterEach(() => {
  render(null, place);
  place.remove();
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

test("an archive with nothing in it says so, and a search in it that nothing fits", async () => {
  server.on("GET /api/sessions", () => json({ sessions: [], next: null }));
  const link = [...place.querySelectorAll("button")].find((one) => one.textContent === "Archived");
  link?.click();
  await settle();
  await settle(300);
  await settle(300);
  expect(place.querySelector(".sessions-scroll > p")?.textContent).toBe("Nothing is archived.");
  const field = place.querySelector("input") as HTMLInputElement;
  expect(field.placeholder).toBe("Search titles, first messages");
  field.value = "rope";
  field.dispatchEvent(new InputEvent("input", { bubbles: true }));
  await settle(300);
  await settle(300);
  expect(place.querySelector(".sessions-scroll > p")?.textContent).toBe("Nothing fits.");
});

test("a deleted session is gone at once, and for good when six seconds are over", async () => {
  leaveSession("ses_a");
  await settle(5_900);
  expect(shown()).toEqual(["ses_b"]);
  expect(deleted()).toEqual([]);
  await settle(100);
  expect(deleted()).toEqual(["ses_a"]);
  expect(undo()).toBeNull();
});

test("what is taken back stays, whatever becomes of the page", async () => {
  leaveSession("ses_a");
  await settle();
  undo()?.click();
  dispatchEvent(new Event("pagehide"));
  await settle(10_000);
  expect(shown()).toEqual(["ses_a", "ses_b"]);
  expect(deleted()).toEqual([]);
});

test.each(["pagehide", "visibilitychange"])(
  "a page that goes by %s takes all that waits along, in requests that outlive it",
  async (event) => {
    leaveSession("ses_a");
    leaveSession("ses_b");
    document.dispatchEvent(new Event(event, { bubbles: event === "pagehide" }));
    // What is asked later than in this very moment is never sent.
    expect(deleted()).toEqual(["ses_a", "ses_b"]);
    expect(asked.map(({ keepalive }) => keepalive)).toEqual([true, true]);
    await settle();
    expect(shown()).toEqual([]);
  },
);

test("a page that comes back deletes nothing twice, and offers no way back any more", async () => {
  let answer = (): void => undefined;
  server.on(
    "DELETE /api/sessions/ses_a",
    () =>
      new Promise((resolve) => {
        answer = () => resolve(json(deletedAs("ses_a")));
      }),
  );
  leaveSession("ses_a");
  await settle();
  expect(undo()).not.toBeNull();
  dispatchEvent(new Event("pagehide"));
  document.dispatchEvent(new Event("visibilitychange"));
  dispatchEvent(new Event("pageshow"));
  document.dispatchEvent(new Event("visibilitychange"));
  await settle(10_000);
  expect(deleted()).toEqual(["ses_a"]);
  expect([shown(), undo()]).toEqual([["ses_b"], null]);
  gone.add("ses_a");
  answer();
  await settle();
  expect([shown(), leaving.value.size]).toEqual([["ses_b"], 0]);
});

test.each([undefined, "gone", "not_found"])(
  "what is deleted (%s) stays away when the list cannot be read right then",
  async (code) => {
    const taken = () => (code ? problem(410, code) : json(deletedAs("ses_a")));
    server.on("DELETE /api/sessions/ses_a", taken);
    server.on("GET /api/sessions", () => problem(503, "capacity_exceeded"));
    leaveSession("ses_a");
    dispatchEvent(new Event("pagehide"));
    await settle();
    expect([shown(), leaving.value.size, leaveFault.value]).toEqual([["ses_b"], 0, ""]);
  },
);

test("one that could not be deleted comes back with the reason", async () => {
  server.on("DELETE /api/sessions/ses_a", () => problem(503, "capacity_exceeded"));
  leaveSession("ses_a");
  dispatchEvent(new Event("pagehide"));
  await settle();
  expect(shown()).toEqual(["ses_a", "ses_b"]);
  expect(place.querySelector(".snackbar")?.textContent).toContain("The server is full");
});

test("who signs out has deleted it before", async () => {
  access.value = "in";
  server.on("POST /api/auth/logout", () => new Response(null, { status: 204 }));
  leaveSession("ses_a");
  await leave();
  const told = server.seen.filter(({ method }) => method !== "GET").map(({ path }) => path);
  expect(told).toEqual(["/api/sessions/ses_a", "/api/auth/logout"]);
});

test("who signs out waits for no list, and not long for a server that does not answer", async () => {
  access.value = "in";
  server.on("POST /api/auth/logout", () => new Response(null, { status: 204 }));
  server.on("GET /api/sessions", () => new Promise(() => undefined));
  leaveSession("ses_a");
  await settle();
  void leave();
  await settle();
  expect(access.value).toBe("out");
  access.value = "in";
  server.on("DELETE /api/sessions/ses_b", () => new Promise(() => undefined));
  leaveSession("ses_b");
  void leave();
  await settle(2_900);
  expect([deleted(), access.value]).toEqual([["ses_a", "ses_b"], "in"]);
  await settle(200);
  expect(access.value).toBe("out");
});
