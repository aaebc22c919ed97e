import { render } from "preact";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { access, ended, signOut } from "../src/state/account.ts";
import { parseRoute, takeCode } from "../src/state/router.ts";
import { cleanCode } from "../src/state/sign_in.ts";
import { Gate } from "../src/ui/gate/Gate.tsx";
import { FakeServer, json, problem } from "./fake_server.ts";

let place: HTMLElement;
let server: FakeServer;

const settle = (): Promise<unknown> => vi.advanceTimersByTimeAsync(20);
const me = (): Response => json({ user: "ada", server_name: "Desk" });

beforeEach(async () => {
  // Fetched by the first request that needs it, in a time that no fake clock moves.
  await import("../src/protocol/later.gen.ts");
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  server = new FakeServer();
  access.value = "out";
  ended.value = false;
  place = document.createElement("div");
  document.body.append(place);
});

afterEach(() => {
  render(null, place);
  place.remove();
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

async function submit(code: string): Promise<void> {
  const field = place.querySelector("input") as HTMLInputElement;
  field.value = code;
  field.dispatchEvent(new InputEvent("input", { bubbles: true }));
  await settle();
  place.querySelector("form")?.dispatchEvent(new Event("submit", { cancelable: true }));
  await settle();
}

const complaint = (): string | undefined => place.querySelector('[role="alert"]')?.textContent;

test("a code in the address signs in by itself, asking for a cookie", async () => {
  server.on("POST /api/auth/claim", () => json({ user: "ada" })).on("GET /api/auth/me", me);
  render(<Gate code="abcd-2345" />, place);
  await settle();
  expect(server.to("/api/auth/claim")[0]?.body).toMatchObject({ code: "ABCD2345", cookie: true });
  expect(access.value).toBe("in");
});

test("a code is taken out of the address, and only a code that stood there at the start", () => {
  history.replaceState(null, "", "/#code=ABCD-2345");
  expect(takeCode()).toBe("ABCD-2345");
  expect(location.href).not.toContain("ABCD");
  expect(takeCode()).toBeUndefined();
  history.replaceState(null, "", "/#/s/ses_1");
  expect(takeCode()).toBeUndefined();
  expect(parseRoute(location.hash)).toEqual({ page: "chat", session: "ses_1" });
  expect(parseRoute("#/s/../x")).toEqual({ page: "new" });
});

test("a used code in the address does no harm where the browser is signed in already", async () => {
  server.on("POST /api/auth/claim", () => problem(401, "unauthorized")).on("GET /api/auth/me", me);
  render(<Gate code="ABCD-2345" />, place);
  await settle();
  expect(access.value).toBe("in");
});

test("a wrong code is said to be wrong, and may be tried again", async () => {
  server
    .on("POST /api/auth/claim", () => problem(401, "unauthorized"))
    .on("GET /api/auth/me", () => problem(401, "unauthorized"));
  render(<Gate code={undefined} />, place);
  await submit("abcd 2345");
  expect(complaint()).toContain("That code is wrong");
  expect(place.querySelector("button")?.disabled).toBe(false);
});

test("too many tries and a missing server are told apart", async () => {
  server.on("POST /api/auth/claim", () =>
    problem(429, "rate_limited", { retry: "same_request", retry_after_s: 12.5 }),
  );
  render(<Gate code={undefined} />, place);
  await submit("ABCD2345");
  expect(complaint()).toBe("Too many tries. Try again in 13 s.");
  server.on("POST /api/auth/claim", () => Promise.reject(new TypeError("Load failed")));
  await submit("ABCD2345");
  expect(complaint()).toContain("does not answer");
});

test("half a code never reaches the server", async () => {
  render(<Gate code={undefined} />, place);
  await submit("ABC");
  expect(complaint()).toContain("8 letters");
  expect(server.seen).toEqual([]);
  expect(cleanCode(" ab-cd 23.45 ")).toBe("ABCD2345");
});

// rules: W30
test("who was signed out unasked is told so, once", () => {
  access.value = "in";
  signOut(true);
  signOut(false);
  render(<Gate code={undefined} />, place);
  expect(place.querySelector(".note")?.textContent).toContain("You were signed out");
});
