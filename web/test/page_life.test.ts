import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { nowMs } from "../src/platform/clock.ts";
import { watchPageLife } from "../src/platform/page_life.ts";

let told: string[];
let stop: () => void;
let visibility: DocumentVisibilityState;

beforeEach(() => {
  vi.useFakeTimers();
  visibility = "visible";
  vi.spyOn(document, "visibilityState", "get").mockImplementation(() => visibility);
  told = [];
  stop = watchPageLife({
    hidden: (awayMs) => told.push(`hidden ${awayMs}`),
    woken: (awayMs) => told.push(`woken ${awayMs}`),
    online: () => told.push("online"),
  });
});

afterEach(() => {
  stop();
  vi.useRealTimers();
  vi.restoreAllMocks();
});

function turn(to: DocumentVisibilityState): void {
  visibility = to;
  document.dispatchEvent(new Event("visibilitychange"));
}

// rules: W03
test("a moment out of sight is none", () => {
  turn("hidden");
  vi.advanceTimersByTime(4_999);
  turn("visible");
  vi.advanceTimersByTime(60_000);
  expect(told).toEqual([]);
});

// rules: W03
test("longer than that the page is told to leave, and on its return how long it was away", () => {
  turn("hidden");
  vi.advanceTimersByTime(90_000);
  turn("visible");
  expect(told).toEqual(["hidden 5000", "woken 90000"]);
});

// rules: W03
test("a page that was frozen before it could leave is told so too", () => {
  turn("hidden");
  vi.setSystemTime(Date.now() + 3_600_000);
  document.dispatchEvent(new Event("resume"));
  expect(told).toEqual(["woken 3600000"]);
  const shown = new Event("pageshow");
  dispatchEvent(Object.assign(shown, { persisted: true }));
  dispatchEvent(new Event("online"));
  expect(told.slice(1)).toEqual(["woken 0", "online"]);
});

// rules: W03 W21
test("a page that nobody has seen yet is told to leave as well, and wakes when it is seen", () => {
  stop();
  visibility = "hidden";
  stop = watchPageLife({
    hidden: (awayMs) => told.push(`hidden ${awayMs}`),
    woken: (awayMs) => told.push(`woken ${awayMs}`),
    online: () => told.push("online"),
  });
  vi.advanceTimersByTime(7_000);
  turn("visible");
  expect(told).toEqual(["hidden 5000", "woken 7000"]);
});

test("once nobody listens nothing is told", () => {
  turn("hidden");
  stop();
  vi.advanceTimersByTime(60_000);
  turn("visible");
  expect(told).toEqual([]);
});

test("the clock counts the time that the device slept, and never goes back", () => {
  const before = nowMs();
  vi.advanceTimersByTime(1_000);
  expect(nowMs() - before).toBe(1_000);
  vi.setSystemTime(Date.now() + 3_600_000);
  expect(nowMs() - before).toBe(3_601_000);
  vi.setSystemTime(Date.now() - 7_200_000);
  expect(nowMs() - before).toBe(3_601_000);
  vi.advanceTimersByTime(5);
  expect(nowMs() - before).toBe(3_601_005);
});
