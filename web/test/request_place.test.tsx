// rules: C7.1 W06

import { afterEach, expect, test } from "vitest";
import { route } from "../src/state/router.ts";
import { REQUEST, SESSION, useChatScreen } from "./chat_screen.tsx";

const on = useChatScreen();

afterEach(() => {
  route.value = { page: "new" };
});

test("a notification leads to its own request among others, whole and undecided", async () => {
  route.value = { page: "chat", session: SESSION, request: "prm_2" };
  const second = { ...REQUEST, permission: "prm_2", preview: { kind: "command", text: "ls -l" } };
  await on.screen.show({ permissions: [REQUEST, second] });
  await on.screen.settle(1_000);
  const sheet = on.screen.place.querySelector("dialog");
  expect(sheet?.querySelector("pre")?.textContent).toBe("ls -l");
  expect(on.screen.server.to(`/api/sessions/${SESSION}/permissions/prm_2`)).toEqual([]);
});

test("a request that nobody came for waits folded", async () => {
  route.value = { page: "chat", session: SESSION };
  await on.screen.show({ permissions: [REQUEST] });
  await on.screen.settle(1_000);
  expect(on.screen.text(".request h2")).toBeDefined();
  expect(on.screen.place.querySelector("dialog")).toBeNull();
});
