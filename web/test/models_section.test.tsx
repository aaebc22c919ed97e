import { expect, test } from "vitest";
import { access } from "../src/state/account.ts";
import { models, providers } from "../src/state/providers.ts";
import { ModelsSection } from "../src/ui/settings/ModelsSection.tsx";
import { json, problem } from "./fake_server.ts";
import { useSettingsScreen } from "./settings_screen.tsx";

const on = useSettingsScreen();

const ACME = {
  provider: "acme",
  title: "Acme",
  state: "ready",
  found: "keyring",
  key: "…1234",
  backup_keys: ["…5678"],
  base_url: "https://acme.example",
  can_move: true,
};
const BARE = { provider: "bare", title: "Bare", state: "missing" };
const MODELS = {
  default: "acme/one",
  models: [{ model: "acme/one" }, { model: "bare/two" }],
  faults: {},
};
const CHANGE = "PUT /api/providers/acme";

async function show(rows: object[] = [ACME, BARE]): Promise<void> {
  models.value = { state: "loading" };
  providers.value = { state: "loading" };
  on.screen.server
    .on("GET /api/models", () => json(MODELS))
    .on("GET /api/providers", () => json({ providers: rows }));
  await on.screen.show(ModelsSection);
}

const bodies = (): unknown[] => on.screen.server.to("/api/providers/acme").map(({ body }) => body);

test("keys are shown by their ends, and those in use come before the others", async () => {
  await show([BARE, ACME]);
  const lists = [...on.screen.place.querySelectorAll(".setting-rows")].map(
    (one) => one.textContent,
  );
  expect(lists[0]).toContain("Acme");
  expect(lists[0]).toContain("…1234 and 1 more");
  expect(lists[1]).toContain("BareNo key");
});

test("a key is sent as it was typed, and nothing of it stays in the page", async () => {
  await show([BARE]);
  on.screen.server.on("PUT /api/providers/bare", () =>
    json({ ...BARE, state: "ready", found: "file", key: "…9999" }),
  );
  await on.screen.unfold();
  await on.screen.type("#key-bare", " sk-secret-9999 ");
  await on.screen.submit("form");
  expect(on.screen.server.to("/api/providers/bare")[0]?.body).toEqual({ key: "sk-secret-9999" });
  expect(on.screen.text).toContain("…9999");
  expect(on.screen.place.outerHTML).not.toContain("secret");
  expect(JSON.stringify(localStorage)).not.toContain("secret");
});

test("a backup is added behind those that are kept, and each is removed by itself", async () => {
  await show();
  on.screen.server.on(CHANGE, () => json({ ...ACME, backup_keys: ["…5678", "…4444"] }));
  await on.screen.unfold();
  await on.screen.type("#key-acme", "sk-4444");
  await on.screen.press("Add as backup");
  await on.screen.press("Remove backup key …5678");
  expect(bodies()).toEqual([{ backup_keys: ["…5678", "sk-4444"] }, { backup_keys: ["…4444"] }]);
});

test("a refused change says why and keeps what was typed", async () => {
  await show();
  on.screen.server.on(CHANGE, () => problem(400, "rejected", { detail: "That is no key." }));
  await on.screen.unfold();
  await on.screen.type("#key-acme", "sk bad");
  await on.screen.press("Replace the first");
  await on.screen.submit(".provider-body form");
  expect(on.screen.find('[role="alert"]').textContent).toBe("That is no key.");
  expect(on.screen.find<HTMLInputElement>("#key-acme").value).toBe("sk bad");
});

test("all keys of a provider are removed after a second tap only", async () => {
  await show();
  const bare = { ...ACME, state: "missing", key: null, backup_keys: [] };
  on.screen.server.on("DELETE /api/providers/acme", () => json(bare));
  await on.screen.unfold();
  await on.screen.press("Remove all keys");
  expect(on.screen.text).toContain("The server forgets the keys and the address of Acme.");
  expect(bodies()).toEqual([]);
  await on.screen.press("Remove all keys");
  expect(on.screen.text).toContain("AcmeNo key");
});

test("a test tells of each key whether it works, and why not", async () => {
  await show();
  const tested = {
    provider: "acme",
    models: ["one", "two"],
    keys: [
      { key: "…1234", found: "keyring", works: true, message: "It names 2 models." },
      { key: "…5678", found: "keyring", works: false, message: "It was revoked." },
    ],
  };
  on.screen.server.on("POST /api/providers/acme/test", () => json(tested));
  await on.screen.unfold();
  await on.screen.press("Test");
  const said = [...on.screen.place.querySelectorAll(".verdict")].map((one) => one.textContent);
  expect(said).toEqual([
    "…1234 · Works. It names 2 models.",
    "…5678 · Fails. It was revoked.",
    "Works. It offers 2 models.",
  ]);
  on.screen.server.on("POST /api/providers/acme/test", () =>
    json({ provider: "acme", fault: { code: "provider_unavailable", message: "No answer." } }),
  );
  await on.screen.press("Test");
  expect(on.screen.find(".verdicts").textContent).toBe("Fails. No answer.");
});

test("who may not see keys sees the model of new chats and cannot change it", async () => {
  on.screen.server.on("GET /api/providers", () => problem(403, "forbidden"));
  on.screen.server.on("GET /api/models", () => json(MODELS));
  await on.screen.show(ModelsSection);
  expect(on.screen.text).toContain("Only an admin of this server can see and change keys.");
  expect(on.screen.place.querySelectorAll("option").length).toBe(3);
  expect(on.screen.find<HTMLSelectElement>("select").disabled).toBe(true);
});

test("what cannot be loaded is asked for again by a tap", async () => {
  on.screen.server.on("GET /api/models", () => problem(503, "store_full"));
  on.screen.server.on("GET /api/providers", () => problem(503, "store_full"));
  await on.screen.show(ModelsSection);
  expect(on.screen.text).toContain("disk is full");
  on.screen.server.on("GET /api/models", () => json(MODELS));
  on.screen.server.on("GET /api/providers", () => json({ providers: [ACME] }));
  await on.screen.press("Retry");
  expect(on.screen.text).toContain("Acme");
});

test("the model of new chats is chosen on the server, for all devices", async () => {
  await show();
  on.screen.server.on("PUT /api/models/default", ({ body }) => {
    on.screen.server.on("GET /api/models", () => json({ ...MODELS, default: "bare/two" }));
    return json(body);
  });
  await on.screen.choose("select", "bare/two");
  expect(on.screen.server.to("/api/models/default")[0]?.body).toEqual({ model: "bare/two" });
  expect(on.screen.find<HTMLSelectElement>("select").value).toBe("bare/two");
  on.screen.server.on("PUT /api/models/default", () =>
    problem(422, "rejected", { detail: "Change it in config.toml." }),
  );
  await on.screen.choose("select", "");
  expect(on.screen.server.to("/api/models/default")[1]?.body).toEqual({ model: null });
  expect(on.screen.find("[role=alert]").textContent).toBe("Change it in config.toml.");
});

test("a sign-in opens a page, and ends with the address that is pasted", async () => {
  const able = { ...ACME, can_sign_in: true };
  on.screen.server
    .on("GET /api/models", () => json(MODELS))
    .on("GET /api/providers", () => json({ providers: [able] }))
    .on("POST /api/providers/acme/sign-in", () =>
      json({ url: "https://acme.example/consent", expires_at: "2999-01-01T00:00:00.000Z" }),
    );
  await on.screen.show(ModelsSection);
  await on.screen.unfold();
  await on.screen.press("Begin");
  expect(on.screen.server.to("/api/providers/acme/sign-in")[0]?.body).toEqual({
    client_id: null,
    client_secret: null,
    project: null,
  });
  expect(on.screen.find<HTMLAnchorElement>("a.button").href).toBe("https://acme.example/consent");
  on.screen.server.on("POST /api/providers/acme/sign-in/finish", () =>
    problem(409, "conflict", { detail: "Nobody has consented so far." }),
  );
  await on.screen.press("Finish");
  expect(on.screen.find("[role=alert]").textContent).toContain("changed");
  on.screen.server.on("POST /api/providers/acme/sign-in/finish", () =>
    json({ ...able, signed_in: true }),
  );
  await on.screen.press("Finish");
  expect(on.screen.text).not.toContain("Sign in at");
  expect(on.screen.text).toContain("Signed in");
});

// rules: W30
test("who is signed out meanwhile is led to the gate", async () => {
  access.value = "in";
  on.screen.server.on("GET /api/models", () => problem(401, "unauthorized"));
  on.screen.server.on("GET /api/providers", () => problem(401, "unauthorized"));
  await on.screen.show(ModelsSection);
  expect(access.value).toBe("out");
});
