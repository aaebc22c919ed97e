import { render } from "preact";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { learn } from "../src/platform/api.ts";
import { codeIn, scanObstacle } from "../src/platform/scanner.ts";
import { access, ended, signOut } from "../src/state/account.ts";
import { parseRoute, takeCode } from "../src/state/router.ts";
import { cleanCode, leave } from "../src/state/sign_in.ts";
import { Gate } from "../src/ui/gate/Gate.tsx";
import { FakeServer, json, problem } from "./fake_server.ts";

let place: HTMLElement;
let server: FakeServer;

const settle = (): Promise<unknown> => vi.advanceTimersByTimeAsync(20);
const me = (): Response => json({ user: "ada", server_name: "Desk" });

beforeEach(async () => {
  await learn();
  vi.useFakeTimers({
    toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval", "Date"],
  });
  server = new FakeServer();
  access.value = "out";
  ended.value = false;
  localStorage.clear();
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
  await type("#code", code);
  await send();
}

async function type(selector: string, text: string): Promise<void> {
  const field = place.querySelector(selector) as HTMLInputElement;
  field.value = text;
  field.dispatchEvent(new InputEvent("input", { bubbles: true }));
  await settle();
}

async function send(): Promise<void> {
  place.querySelector("form")?.dispatchEvent(new Event("submit", { cancelable: true }));
  await settle();
}

async function choosePassword(): Promise<void> {
  (place.querySelectorAll('[name="way"]')[1] as HTMLInputElement).click();
  await settle();
}

const note = (): string | undefined => place.querySelector(".note")?.textContent;
const mainButton = () => place.querySelector("button.main") as HTMLButtonElement;

const complaint = (): string | undefined => place.querySelector('[role="alert"]')?.textContent;

test("a code in the address signs in by itself, asking for a cookie", async () => {
  server.on("POST /api/auth/claim", () => json({ user: "ada" })).on("GET /api/auth/me", me);
  render(<Gate code="abcd-2345" />, place);
  await settle();
  expect(server.to("/api/auth/claim")[0]?.body).toMatchObject({ code: "ABCD2345", cookie: true });
  expect(access.value).toBe("in");
});

test("a browser that keeps no cookies is told so, and not that its code is wrong", async () => {
  server
    .on("POST /api/auth/claim", () => json({ user: "ada" }))
    .on("GET /api/auth/me", () => problem(401, "unauthorized", { reason: "missing" }));
  render(<Gate code="abcd-2345" />, place);
  await settle();
  expect(access.value).toBe("out");
  expect(complaint()).toContain("keeps no cookies");
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
  expect(mainButton().disabled).toBe(false);
});

test("after too many tries the seconds are counted down, and then one may try again", async () => {
  server.on("POST /api/auth/claim", () =>
    problem(429, "rate_limited", { retry: "same_request", retry_after_s: 12.5 }),
  );
  render(<Gate code={undefined} />, place);
  await submit("ABCD2345");
  expect(complaint()).toBe("Too many tries. Try again in 13 s.");
  await vi.advanceTimersByTimeAsync(5_000);
  expect(complaint()).toBe("Too many tries. Try again in 8 s.");
  await submit("ABCD2345");
  expect(server.to("/api/auth/claim").length).toBe(1);
  expect(mainButton().disabled).toBe(true);
  await vi.advanceTimersByTimeAsync(9_000);
  expect(complaint()).toBeUndefined();
  expect(mainButton().disabled).toBe(false);
});

test("a missing server is told as such", async () => {
  server.on("POST /api/auth/claim", () => Promise.reject(new TypeError("Load failed")));
  render(<Gate code={undefined} />, place);
  await submit("ABCD2345");
  expect(complaint()).toContain("does not answer");
});

test("a password signs in, and the name is there the next time", async () => {
  const answer = { user: "ada", expires_at: "2030-01-01T00:00:00.000Z" };
  server.on("POST /api/auth/login", () => json(answer));
  render(<Gate code={undefined} />, place);
  await choosePassword();
  expect((place.querySelector("#user") as HTMLInputElement).value).toBe("owner");
  await send();
  expect(complaint()).toBe("Type the password.");
  server.on("GET /api/auth/me", me);
  await type("#user", " ada ");
  await type("#password", "correct horse");
  await send();
  const sent = { user: "ada", password: "correct horse", cookie: true };
  expect(server.to("/api/auth/login")[0]?.body).toMatchObject(sent);
  expect(access.value).toBe("in");
  render(null, place);
  access.value = "out";
  render(<Gate code={undefined} />, place);
  await settle();
  expect((place.querySelector("#user") as HTMLInputElement).value).toBe("ada");
  expect(place.querySelector("h1")?.textContent).toBe("Desk");
  expect(JSON.stringify(localStorage)).not.toContain("horse");
});

test("a wrong password is said to be wrong beside its field", async () => {
  server.on("POST /api/auth/login", () => problem(401, "unauthorized"));
  render(<Gate code={undefined} />, place);
  await choosePassword();
  await type("#password", "wrong");
  await send();
  const field = place.querySelector("#password");
  expect(field?.getAttribute("aria-invalid")).toBe("true");
  expect(field?.getAttribute("aria-describedby")).toContain("complaint");
  expect(complaint()).toBe("The name or the password is wrong.");
});

test("half a code never reaches the server", async () => {
  render(<Gate code={undefined} />, place);
  await submit("ABC");
  expect(complaint()).toContain("8 letters");
  expect(server.to("/api/auth/claim")).toEqual([]);
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

// rules: W30
test.each([
  ["unknown_token", "Signed out on another device"],
  ["missing", "Session expired"],
])("who is out because of %s reads: %s", async (reason, said) => {
  localStorage.setItem("towline.server_name", "Desk");
  server.on("GET /api/auth/me", () => problem(401, "unauthorized", { reason }));
  access.value = "in";
  signOut(true);
  render(<Gate code={undefined} />, place);
  await settle();
  expect(note()).toContain(said);
});

test("who was never in, or has left by themselves, is told no reason", async () => {
  server
    .on("GET /api/auth/me", () => problem(401, "unauthorized", { reason: "missing" }))
    .on("POST /api/auth/logout", () => new Response(null, { status: 204 }));
  render(<Gate code={undefined} />, place);
  await settle();
  expect(note()).toBeUndefined();
  render(null, place);
  localStorage.setItem("towline.server_name", "Desk");
  access.value = "in";
  await leave();
  render(<Gate code={undefined} />, place);
  await settle();
  expect(note()).toBeUndefined();
});

test("a square code gives the code in it, and no other text does", () => {
  expect(codeIn("http://192.168.1.5:4747/#code=ABCD-2345")).toBe("ABCD-2345");
  expect(codeIn("abcd-2345")).toBe("abcd-2345");
  expect(codeIn("https://example.com/menu")).toBeUndefined();
});

test("where no browser reads codes, the sheet says what does", () => {
  vi.stubGlobal("isSecureContext", false);
  expect(scanObstacle()).toBe("insecure");
  vi.stubGlobal("isSecureContext", true);
  expect(scanObstacle()).toBe("unable");
});
