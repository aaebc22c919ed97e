import { render } from "preact";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { devices, pairing } from "../src/state/devices.ts";
import { DevicesSection } from "../src/ui/settings/DevicesSection.tsx";
import { FakeServer, json, problem } from "./fake_server.ts";

const TOKENS = "GET /api/auth/tokens";

let place: HTMLElement;
let server: FakeServer;

const settle = (ms = 30): Promise<unknown> => vi.advanceTimersByTimeAsync(ms);

function token(id: string, name: string, more: object = {}): object {
  const times = { created: "2026-01-01T00:00:00.000Z", last_used: "2026-01-02T00:00:00.000Z" };
  return { id, name, kind: "device", expires_at: "2026-07-01T00:00:00.000Z", ...times, ...more };
}

beforeEach(async () => {
  // Fetched by the first request that needs it, in a time that no fake clock moves.
  await import("../src/protocol/later.gen.ts");
  vi.useFakeTimers();
  HTMLDialogElement.prototype.showModal ??= () => undefined;
  server = new FakeServer();
  devices.value = { state: "loading" };
  pairing.value = null;
  place = document.createElement("div");
  document.body.append(place);
});

afterEach(() => {
  render(null, place);
  place.remove();
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

async function show(): Promise<void> {
  render(<DevicesSection />, place);
  await settle();
}

async function press(name: string): Promise<void> {
  const found = [...place.querySelectorAll("button")].find((one) => one.textContent === name);
  if (!found) throw new Error(`no button says ${name}`);
  found.click();
  await settle();
}

test("devices are listed, and one is let go only after a second tap", async () => {
  const tokens = [token("tok_a", "Android", { current: true }), token("tok_b", "Mac")];
  server.on(TOKENS, () => json({ tokens }));
  server.on("DELETE /api/auth/tokens/tok_b", () => {
    tokens.pop();
    return new Response(null, { status: 204, headers: { "towline-contract": "1" } });
  });
  await show();
  expect(
    [...place.querySelectorAll("article")].map((one) => one.getAttribute("aria-label")),
  ).toEqual(["Android", "Mac"]);
  expect(place.querySelectorAll("article button")).toHaveLength(1);
  await press("Sign out");
  await press("Keep");
  expect(server.to("/api/auth/tokens/tok_b")).toHaveLength(0);
  await press("Sign out");
  await press("Sign it out");
  expect(server.to("/api/auth/tokens/tok_b")).toHaveLength(1);
  expect(place.querySelectorAll("article")).toHaveLength(1);
});

test("a list that cannot be loaded says why, and is asked for again", async () => {
  server.on(TOKENS, () => problem(503, "draining"));
  await show();
  expect(place.querySelector('[role="alert"]')?.textContent).toContain("could not be loaded");
  server.on(TOKENS, () => json({ tokens: [] }));
  await press("Retry");
  expect(place.textContent).toContain("Nothing is paired yet");
});

test("a code for another device is drawn, counted down, and made anew", async () => {
  const pair = (url: string): void => {
    const expires_at = new Date(Date.now() + 600_000).toISOString();
    const made = { code: "ABCD-2345", url: `${url}/#code=ABCD-2345`, qr: "<svg/>", expires_at };
    server.on("POST /api/auth/pair", () => json(made));
  };
  server.on(TOKENS, () => json({ tokens: [] }));
  pair("https://desk.example.org");
  await show();
  await press("Pair a device");
  expect(place.querySelector(".pairing-code")?.textContent).toBe("ABCD-2345");
  expect(place.querySelector("img")?.getAttribute("src")).toBe("data:image/svg+xml,%3Csvg%2F%3E");
  expect(place.textContent).toContain("Works once, for 9:59 more");
  await settle(600_000);
  expect(place.textContent).toContain("That code has run out");
  expect(place.querySelector("img")).toBeNull();
  pair("http://127.0.0.1:4747");
  await press("Make a new one");
  expect(place.querySelector("img")).toBeNull();
  expect(place.textContent).toContain("on its own machine alone");
});

test("a code that was used closes its sheet, and the list shows who came in", async () => {
  const tokens = [token("tok_a", "Linux", { current: true })];
  server.on(TOKENS, () => json({ tokens }));
  const expires_at = new Date(Date.now() + 600_000).toISOString();
  const made = { code: "ABCD-2345", url: "https://desk.example.org/#code=ABCD-2345", expires_at };
  server.on("POST /api/auth/pair", () => json(made));
  await show();
  await press("Pair a device");
  await settle(7_000);
  expect(place.querySelector(".pairing-code")).not.toBeNull();
  tokens.push(token("tok_b", "Android"));
  await settle(3_000);
  expect(place.querySelector("dialog")).toBeNull();
  expect(place.querySelectorAll("article")).toHaveLength(2);
});

test("the list is read again when the page comes back", async () => {
  const tokens = [token("tok_a", "Android", { current: true }), token("tok_b", "Mac")];
  server.on(TOKENS, () => json({ tokens }));
  await show();
  expect(place.querySelectorAll("article")).toHaveLength(2);
  tokens.pop();
  dispatchEvent(new Event("focus"));
  await settle();
  expect(place.querySelectorAll("article")).toHaveLength(1);
});
