// rules: C5.16 C7.1

import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { learn } from "../src/platform/api.ts";
import { access } from "../src/state/account.ts";
import { BEACON_MS, beginPresence } from "../src/state/presence.ts";
import { json } from "./fake_server.ts";

let told: boolean[] = [];
let seen = "visible";

function turn(state: "visible" | "hidden"): void {
  seen = state;
  document.dispatchEvent(new Event("visibilitychange"));
}

beforeEach(async () => {
  await learn();
  vi.useFakeTimers();
  told = [];
  seen = "visible";
  vi.spyOn(document, "visibilityState", "get").mockImplementation(() => seen as never);
  vi.stubGlobal("fetch", async (address: string, init: RequestInit) => {
    if (String(address) !== "/api/presence") return json({}, 404);
    told.push((JSON.parse(String(init.body)) as { visible: boolean }).visible);
    return new Response(null, { status: 204, headers: { "towline-contract": "1" } });
  });
});

afterEach(() => {
  access.value = "out";
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
  vi.useRealTimers();
});

test("it is told while the page is seen and somebody is signed in, and its end at once", async () => {
  beginPresence();
  beginPresence();
  await vi.advanceTimersByTimeAsync(BEACON_MS);
  expect(told).toEqual([]);
  access.value = "in";
  await vi.advanceTimersByTimeAsync(2 * BEACON_MS);
  expect(told).toEqual([true, true, true]);
  turn("hidden");
  await vi.advanceTimersByTimeAsync(5 * BEACON_MS);
  expect(told).toEqual([true, true, true, false]);
  turn("visible");
  await vi.advanceTimersByTimeAsync(0);
  dispatchEvent(new Event("pagehide"));
  await vi.advanceTimersByTimeAsync(0);
  expect(told.slice(4)).toEqual([true, false]);
  access.value = "out";
  await vi.advanceTimersByTimeAsync(5 * BEACON_MS);
  expect(told).toHaveLength(6);
});
