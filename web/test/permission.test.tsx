import { describe, expect, test } from "vitest";
import type { PermissionRequested } from "../src/protocol/types.gen.ts";
import { REQUEST, SESSION, useChatScreen } from "./chat_screen.tsx";
import { json, problem } from "./fake_server.ts";

const PERMISSION = `/api/sessions/${SESSION}/permissions/prm_1`;

const on = useChatScreen();

// rules: W07
describe("a permission", () => {
  async function ask(request: PermissionRequested = REQUEST): Promise<void> {
    await on.screen.show();
    await on.screen.startTurn();
    await on.screen.happen(request);
    await on.screen.settle();
  }

  const dialog = (): HTMLDialogElement =>
    on.screen.place.querySelector("dialog") as HTMLDialogElement;

  test("takes no tap in its first 400 ms", async () => {
    on.screen.server.on(`POST ${PERMISSION}`, () => json({ option: "deny" }));
    await ask();
    expect(on.screen.button("Deny").disabled).toBe(true);
    expect(on.screen.button("Review").disabled).toBe(true);
    await on.screen.settle(400);
    expect(on.screen.button("Deny").disabled).toBe(false);
  });

  test("shows all of a long command, and recites the digest with the answer", async () => {
    on.screen.server.on(`POST ${PERMISSION}`, () => json({ option: "allow_once" }));
    await ask();
    await on.screen.settle(400);
    await on.screen.press("Review");
    expect(dialog().querySelector("pre")?.textContent).toBe(REQUEST.preview.text);
    on.screen.button("Allow once", dialog()).click();
    await on.screen.press("Allow once", dialog());
    const sent = on.screen.server.to(PERMISSION);
    expect(sent.map(({ body }) => body)).toEqual([
      { option: "allow_once", digest: REQUEST.digest },
    ]);
    expect(sent[0]?.headers.get("idempotency-key")).toHaveLength(32);
    await on.screen.happen({
      type: "permission_resolved",
      permission: "prm_1",
      option: "allow_once",
      by: "ada",
    });
    await on.screen.settle();
    expect(dialog()).toBeNull();
    expect(on.screen.place.querySelector(".request")).toBeNull();
  });

  // rules: W25
  test.each([
    ["command", "pre.whole"],
    ["diff", ".diff .row"],
    ["new_kind", "pre.whole"],
  ])("shows what hides in a %s, its title and its rule", async (kind, place) => {
    const hidden = "rm \u202egpj.x\u2066 \u200b\u00ad\ufe0f\u{e0041}\u001b[2K";
    const shown = "rm ⟨U+202E⟩gpj.x⟨U+2066⟩ ⟨U+200B⟩⟨U+00AD⟩⟨U+FE0F⟩⟨U+E0041⟩⟨U+001B⟩[2K";
    await ask({
      ...REQUEST,
      tool: hidden,
      title: hidden,
      reason: hidden,
      preview: { kind, text: hidden },
      options: [
        { id: "allow_session", label: "Allow", rule: hidden },
        { id: "other", label: hidden },
      ],
    });
    await on.screen.settle(400);
    expect(on.screen.text(".request-peek")).toBe(shown);
    await on.screen.press("Review");
    expect(dialog().querySelector(place)?.textContent?.trimEnd()).toBe(shown);
    expect(dialog().querySelector(".chip")?.textContent).toBe(shown);
    expect(dialog().querySelector("small")?.textContent).toContain(shown);
    expect(on.screen.button(shown, dialog())).toBeDefined();
    expect(dialog().textContent).not.toMatch(/(?!\n)[\p{Cc}\p{DI}]/u);
    if (kind === "new_kind") expect(dialog().getAttribute("aria-label")).toBe(`Allow “${shown}”?`);
  });

  test.each([
    ["--- a/p.sql\n+++ b/p.sql\n@@ -3,3 +3,3 @@\n one\n--- two\n+-- 2\n", "p.sql\n--- two\n+-- 2"],
    ["--- a/p.sql\n+++ /dev/null\n@@ -1 +0,0 @@\n-one\n", "p.sql\n-one"],
    ["old mode 100644\nnew mode 100755", "old mode 100644\nnew mode 100755"],
  ])("shows what an edit changes before it is reviewed", async (text, shown) => {
    await ask({ ...REQUEST, preview: { kind: "diff", text } });
    expect(on.screen.text(".request-peek")).toBe(shown);
  });

  test("that cannot be read whole can only be denied", async () => {
    await ask({ ...REQUEST, preview: { ...REQUEST.preview, truncated: true } });
    await on.screen.settle(400);
    await on.screen.press("Review");
    expect(on.screen.button("Allow once", dialog()).disabled).toBe(true);
    expect(on.screen.button("Always allow", dialog()).disabled).toBe(true);
    expect(on.screen.button("Deny", dialog()).disabled).toBe(false);
  });

  test("allows for always behind the dots only, and on a second tap that tells the rule", async () => {
    on.screen.server.on(`POST ${PERMISSION}`, () => json({ option: "allow_always" }));
    await ask();
    await on.screen.settle(400);
    await on.screen.press("Review");
    const menu = dialog().querySelector("[popover]") as HTMLElement;
    const dots = on.screen.button("More", dialog());
    expect(dots.getAttribute("popovertarget")).toBe(menu.id);
    expect(dialog().querySelector(".sheet-scroll")?.contains(menu)).toBe(false);
    const always = on.screen.button("Always allow", menu);
    const outside = [...dialog().querySelectorAll("button")].filter((one) => one !== always);
    expect(outside.map(({ textContent }) => textContent).join()).not.toContain("Always");
    expect(always.textContent).toBe("Always allow…");
    always.click();
    await on.screen.settle(300);
    expect(always.textContent).toBe("Always allowMakes the rule: run_program rm");
    expect(always.isConnected).toBe(true); // the focus stays on it
    always.click(); // the second half of one double tap
    await on.screen.settle();
    expect(on.screen.server.to(PERMISSION)).toHaveLength(0);
    await on.screen.settle(100);
    always.click();
    await on.screen.settle();
    expect(on.screen.server.to(PERMISSION).map(({ body }) => body)).toEqual([
      { option: "allow_always", digest: REQUEST.digest },
    ]);
  });

  test("tells the rule of always anew when its menu is opened again", async () => {
    await ask();
    await on.screen.settle(400);
    await on.screen.press("Review");
    await on.screen.press("Always allow", dialog());
    await on.screen.press("More", dialog());
    expect(on.screen.button("Always allow", dialog()).textContent).toBe("Always allow…");
  });

  test("asks for the reason to deny above Deny, which has the focus", async () => {
    await ask();
    await on.screen.settle(400);
    await on.screen.press("Review");
    const ways = [...dialog().querySelectorAll(".answers :is(input, .danger, .main)")];
    expect(ways.map(({ localName }) => localName)).toEqual(["input", "button", "button"]);
    expect(document.activeElement).toBe(on.screen.button("Deny", dialog()));
  });

  test("offers no dots where nothing lasts", async () => {
    const options = REQUEST.options.filter(({ id }) => id !== "allow_always");
    await ask({ ...REQUEST, options });
    await on.screen.settle(400);
    await on.screen.press("Review");
    expect(dialog().querySelector("[popover], [aria-label=More]")).toBeNull();
  });

  test("says why an answer was not taken, and takes another", async () => {
    on.screen.server.on(`POST ${PERMISSION}`, () =>
      problem(422, "rejected", { detail: "Wrong digest." }),
    );
    await ask();
    await on.screen.settle(400);
    await on.screen.press("Deny");
    expect(on.screen.place.querySelector(".request .complaint")?.textContent).toContain(
      "Wrong digest.",
    );
    expect(on.screen.button("Deny").disabled).toBe(false);
  });

  // rules: W06
  test("that somebody else answered says so for a moment", async () => {
    await ask();
    expect(document.title).toBe("(1) New chat · towline");
    await on.screen.happen({
      type: "permission_resolved",
      permission: "prm_1",
      option: "deny",
      by: "Pixel 8",
    });
    await on.screen.settle();
    expect(on.screen.place.querySelector(".request")?.textContent).toContain("Already answered");
    await on.screen.settle(5_000);
    expect(on.screen.place.querySelector(".request")).toBeNull();
  });
});
