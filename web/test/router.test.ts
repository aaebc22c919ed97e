import { expect, test } from "vitest";
import { formatRoute, parseRoute, type Route } from "../src/state/router.ts";

test("every place has an address of its own, and the address leads back to it", () => {
  const places: [Route, string][] = [
    [{ page: "new" }, "#/"],
    [{ page: "chat", session: "ses_1" }, "#/s/ses_1"],
    [{ page: "settings" }, "#/settings"],
    [{ page: "settings", part: "look" }, "#/settings/look"],
  ];
  for (const [place, address] of places) {
    expect(formatRoute(place)).toBe(address);
    expect(parseRoute(address)).toEqual(place);
  }
});

test("the address of a request leads to its session, and names it", () => {
  const place = { page: "chat", session: "ses_1", request: "prm_1" };
  expect(parseRoute("#/s/ses_1?request=prm_1")).toEqual(place);
  expect(parseRoute("#/s/ses_1?request=")).toEqual({ page: "new" });
  expect(formatRoute(place as Route)).toBe("#/s/ses_1");
});

test("an address that names no place leads to the start", () => {
  for (const address of ["", "#", "#/s", "#/s/", "#/nowhere", "#/settings/", "#/settings/../x"]) {
    expect(parseRoute(address)).toEqual({ page: "new" });
  }
});
