import { afterEach, describe, expect, test, vi } from "vitest";
import "../src/core/words.later.ts";
import { ApiFault, call } from "../src/platform/api.ts";
import { FakeServer, json, problem } from "./fake_server.ts";

afterEach(() => vi.unstubAllGlobals());

const INFO = {
  id: "ses_a",
  agent: "helper",
  model: "scripted/one",
  mode: "ask",
  live: false,
  last_seq: 3,
  created: "2026-01-31T09:00:00.000Z",
  updated: "2026-01-31T09:00:00.000Z",
};

async function faultOf(request: Promise<unknown>): Promise<ApiFault> {
  const fault: unknown = await request.then(
    () => undefined,
    (error) => error,
  );
  expect(fault).toBeInstanceOf(ApiFault);
  return fault as ApiFault;
}

test("a write carries JSON, its key and the contract, and no credential of its own", async () => {
  const server = new FakeServer().on("POST /api/sessions", () => json(INFO, 201));
  const made = await call("create_session", { key: "key-1", body: { title: "Hi" } });
  expect(made.id).toBe("ses_a");
  const [seen] = server.seen;
  expect(seen?.body).toEqual({ title: "Hi" });
  expect(Object.fromEntries(seen?.headers ?? [])).toEqual({
    accept: "application/json",
    "content-type": "application/json",
    "idempotency-key": "key-1",
    "towline-contract": "1",
  });
});

test("a change of what is there carries its body too, and a removal none", async () => {
  const server = new FakeServer()
    .on("PATCH /api/sessions/ses_a", () => json(INFO))
    .on("DELETE /api/sessions/ses_a", () => json({ session: "ses_a", until: INFO.updated }));
  const path = { session: "ses_a" };
  await call("update_session", { path, key: "key-1", body: { title: "Hi" } });
  expect(server.seen[0]?.body).toEqual({ title: "Hi" });
  expect((await call("delete_session", { path, key: "key-2" })).session).toBe("ses_a");
  expect(server.seen[1]?.headers.has("content-type")).toBe(false);
});

test("an operation that the first screen does without can be called as well", async () => {
  const models = { default: "scripted/one", models: [{ model: "scripted/one" }], faults: {} };
  new FakeServer().on("GET /api/models", () => json(models));
  expect(await call("list_models")).toEqual(models);
});

test("path and query are filled in and escaped", async () => {
  const server = new FakeServer().on("GET /api/sessions", () => json({ sessions: [INFO] }));
  await call("list_sessions", { query: { limit: 5, after: "a&b" } });
  expect(server.seen[0]?.path).toBe("/api/sessions?limit=5&after=a%26b");
  await faultOf(call("get_session", { path: { session: "../x" } }));
  expect(server.seen[1]?.path).toBe("/api/sessions/..%2Fx");
});

// rules: C2.1
describe("an answer of success that is not ours is no success", () => {
  test.each([
    [
      "without the header",
      json({ user: "ada", server_name: "s" }, 200, {}),
      "contract_unavailable",
    ],
    ["with a bad header", json({}, 200, { "towline-contract": "x" }), "contract_unavailable"],
    [
      "that is no JSON",
      new Response("<p>", { headers: { "towline-contract": "1" } }),
      "contract_unavailable",
    ],
    ["of another shape", json({ name: "ada" }), "contract_unavailable"],
    ["of another major version", json({}, 200, { "towline-contract": "2" }), "version_mismatch"],
  ])("%s", async (_name, response, code) => {
    new FakeServer().on("GET /api/auth/me", () => response);
    const fault = await faultOf(call("me"));
    expect([fault.code, fault.again]).toEqual([code, false]);
  });
});

// rules: C2.2 C2.4
test("a problem gives its code, whether to try again, and when", async () => {
  new FakeServer()
    .on("GET /api/sessions", () =>
      problem(503, "draining", { retry: "same_request", retry_after_s: 2 }),
    )
    .on("GET /api/sessions/ses_x", () => problem(404, "not_found"));
  expect(await faultOf(call("list_sessions"))).toMatchObject({ again: true, afterMs: 2_000 });
  const missing = await faultOf(call("get_session", { path: { session: "ses_x" } }));
  expect(missing).toMatchObject({ code: "not_found", again: false, message: "That is not here." });
});

test("a code without words here is told in the server's own", async () => {
  new FakeServer().on("GET /api/sessions", () => problem(422, "rejected", { detail: "Say less." }));
  expect((await faultOf(call("list_sessions"))).message).toBe("Say less.");
});

// rules: W30
test("401 and an empty 444 both mean: sign in", async () => {
  const server = new FakeServer().on("GET /api/auth/me", () => new Response(null, { status: 401 }));
  expect((await faultOf(call("me"))).code).toBe("unauthorized");
  server.on("GET /api/auth/me", () => new Response("", { status: 444 }));
  expect((await faultOf(call("me"))).code).toBe("unauthorized");
});

test("a proxy's error page may pass, a network that is gone too", async () => {
  const server = new FakeServer().on(
    "GET /api/auth/me",
    () => new Response("Bad", { status: 502 }),
  );
  const fault = await faultOf(call("me"));
  expect(fault).toMatchObject({ code: "http", again: true });
  expect(fault.message).toBe(`The server answered ${fault.status}.`);
  server.on("GET /api/auth/me", () => Promise.reject(new TypeError("Load failed")));
  expect(await faultOf(call("me"))).toMatchObject({ code: "network", status: 0, again: true });
});
