import { render } from "preact";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { chooseWords } from "../src/core/i18n.ts";
import { learn } from "../src/platform/api.ts";
import { outbox, wish } from "../src/state/outbox.ts";
import { models as modelList } from "../src/state/providers.ts";
import { go, route } from "../src/state/router.ts";
import { sessions } from "../src/state/sessions.ts";
import { start, startComplaint } from "../src/state/start.ts";
import { ComposerTools } from "../src/ui/chat/Composer.tsx";
import { editing } from "../src/ui/chat/editing.ts";
import { NewChatPage, StartChips, Suggestions } from "../src/ui/chat/NewChatPage.tsx";
import { ChipsSheet } from "../src/ui/dock/Chips.tsx";
import { chipsOpen } from "../src/ui/dock/chips_open.ts";
import { FakeServer, json, problem } from "./fake_server.ts";

const ROOT = "/home/ada/notes";
const OTHER = "/srv/site";
const command = (name: string, operation: string) => ({ name, about: `${name}s`, operation });
const START = {
  folder: ROOT,
  roots: [ROOT, OTHER],
  model: "acme/one",
  mode: "ask",
  suggestions: ["Tell me what is in this folder and how it hangs together.", "/init"],
  commands: [
    command("init", "run_command"),
    command("mode", "update_session"),
    command("fork", "fork_session"),
  ],
};
const MADE = {
  id: "ses_new",
  agent: "helper",
  model: "acme/one",
  mode: "ask",
  live: true,
  created: "2026-01-31T09:00:00.000Z",
  updated: "2026-01-31T09:00:00.000Z",
  last_seq: 1,
};

let server: FakeServer;
const place = document.createElement("div");

const settle = (ms = 200) => vi.advanceTimersByTimeAsync(ms);

async function press(name: string): Promise<void> {
  const found = [...place.querySelectorAll<HTMLElement>("button, label")].find((one) =>
    one.textContent?.includes(name),
  );
  expect(found, name).toBeDefined();
  found?.click();
  await settle();
}

async function type(text: string): Promise<void> {
  const field = place.querySelector("textarea") as HTMLTextAreaElement;
  field.value = text;
  field.setSelectionRange(text.length, text.length);
  field.dispatchEvent(new Event("input", { bubbles: true }));
  await settle();
}

async function send(text: string): Promise<void> {
  await type(text);
  place.querySelector("form.composer")?.dispatchEvent(new Event("submit", { cancelable: true }));
  await settle();
}

beforeEach(async () => {
  await Promise.all([
    learn(),
    ...[ComposerTools, StartChips, Suggestions, ChipsSheet].map((one) => one.preload()),
  ]);
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval"] });
  HTMLDialogElement.prototype.showModal = () => undefined;
  localStorage.clear();
  [outbox.value, wish.value, start.value, startComplaint.value] = [[], {}, null, null];
  [sessions.value, chipsOpen.value] = [[], false];
  modelList.value = { state: "loading" };
  go({ page: "new" });
  server = new FakeServer()
    .on("GET /api/start", ({ path }) =>
      json(path.includes("site") ? { ...START, folder: OTHER, mode: "plan" } : START),
    )
    .on("GET /api/models", () => json({ default: "acme/one", models: [], faults: {} }))
    .on("GET /api/capabilities", () => problem(503, "draining"))
    .on("GET /api/start/paths", () => json({ paths: ["src/app.py"] }))
    .on("POST /api/sessions", () => json(MADE));
  document.body.append(place);
  render(<NewChatPage />, place);
  await settle();
});

afterEach(async () => {
  render(null, place);
  place.remove();
  await chooseWords("en");
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

test("a new chat shows its folder, model and mode, and proposes what the server does", async () => {
  expect(place.querySelector(".chip-button")?.textContent).toBe("Model and mode: one·Ask· notes");
  expect(place.querySelector(".welcome")?.textContent).toContain(
    "The agent asks before it changes anything.",
  );
  await press("Tell me what is in this folder");
  expect(server.to("/api/sessions")[0]?.body).toMatchObject({
    prompt: [{ type: "text", text: START.suggestions[0] }],
  });
  expect(route.value).toEqual({ page: "chat", session: "ses_new" });
});

test("another folder is chosen among the roots, and the chat begins there", async () => {
  await press("one·Ask");
  await press(OTHER);
  expect(server.to("/api/start").at(-1)?.path).toBe(
    `/api/start?folder=${encodeURIComponent(OTHER)}`,
  );
  expect(place.querySelector(".chip-button")?.textContent).toBe("Model and mode: one·Plan· site");
  await type("see @sr");
  expect(server.to("/api/start/paths")[0]?.path).toContain(`folder=${encodeURIComponent(OTHER)}`);
  expect(place.querySelector(".palette")?.textContent).toContain("@src/app.py");
  await send("Hello");
  expect(server.to("/api/sessions")[0]?.body).toMatchObject({ cwd: OTHER });
});

test("an answer about the folder before comes too late to be shown", async () => {
  let answer = (_late: Response): void => undefined;
  server.on("GET /api/start", ({ path }) =>
    path.includes("site")
      ? json({ ...START, folder: OTHER, mode: "plan" })
      : new Promise<Response>((resolve) => {
          answer = resolve;
        }),
  );
  dispatchEvent(new Event("focus"));
  await press("one·Ask");
  await press(OTHER);
  answer(json(START));
  await settle();
  expect(place.querySelector(".chip-button")?.textContent).toBe("Model and mode: one·Plan· site");
});

test("a folder that the server may not work in is refused at its place and not taken", async () => {
  await press("one·Ask");
  server.on("GET /api/start", () => problem(403, "forbidden", { reason: "outside_roots" }));
  const field = place.querySelector(".folder-other input") as HTMLInputElement;
  field.value = "/etc";
  field.dispatchEvent(new Event("input", { bubbles: true }));
  await settle();
  place.querySelector(".folder-other")?.dispatchEvent(new Event("submit", { cancelable: true }));
  await settle();
  expect(place.querySelector("dialog [role=alert]")?.textContent).toContain("towline up --root");
  expect(wish.value.cwd).toBeUndefined();
});

test("commands work before there is a session: those that can", async () => {
  await type("/");
  const offered = [...place.querySelectorAll(".palette-name")].map((one) => one.textContent);
  expect(offered).toEqual(["/init", "/mode"]);
  await send("/mode auto");
  expect(wish.value.mode).toBe("auto");
  server.on("POST /api/sessions/ses_new/commands/init", () =>
    json({ prompt: "prm_1", when: "auto" }, 202),
  );
  await send("/init in German");
  expect(server.to("/api/sessions")[0]?.body).toEqual({ mode: "auto" });
  expect(server.to("/api/sessions/ses_new/commands/init")[0]?.body).toMatchObject({
    arguments: "in German",
  });
  expect(route.value).toEqual({ page: "chat", session: "ses_new" });
});

test("a command that is not there is told, and its text comes back", async () => {
  await send("/nothing");
  expect(place.querySelector(".dock [role=alert]")?.textContent).toContain("/nothing");
  expect(place.querySelector("textarea")?.value).toBe("/nothing");
});

test("what the server says is Chinese on a Chinese page, and so is what is sent", async () => {
  await chooseWords("zh");
  render(null, place);
  render(<NewChatPage />, place);
  await settle();
  await press("说说这个文件夹里有什么");
  expect(server.to("/api/sessions")[0]?.body).toMatchObject({
    prompt: [{ type: "text", text: "说说这个文件夹里有什么、如何组织。" }],
  });
});

test("a model that is on its way is told in percent and megabytes, and a failure with its way out", async () => {
  let state: object = { state: "fetching", done_bytes: 275e6, total_bytes: 640e6, source: "hub" };
  server
    .on("GET /api/start", () => json({ ...START, model: "local/qwen" }))
    .on("GET /api/local-model", () => json(state));
  render(null, place);
  render(<NewChatPage />, place);
  await settle(2000);
  expect(place.querySelector(".activity")?.textContent).toBe(
    "Fetching the model: 42 % (275 of 640 MB)",
  );
  state = { state: "loading" };
  await settle(2000);
  expect(place.querySelector(".activity")?.textContent).toBe("Loading the model");
  state = { state: "failed", message: "Free some space." };
  await settle(2000);
  expect(place.querySelector(".dock [role=alert]")?.textContent).toBe(
    "Free some space. The next message tries again.",
  );
  state = { state: "ready" };
  await settle(2000);
  expect(place.querySelector(".dock [role=alert], .activity")).toBeNull();
});

test("a picture for a model that sees none is warned of, and goes all the same", async () => {
  const models = [{ model: "acme/one", images: false }, { model: "acme/two" }];
  server.on("GET /api/models", () => json({ default: "acme/one", models, faults: {} }));
  editing.value = {
    session: null,
    text: "What is this?",
    blocks: [{ type: "image", media_type: "image/png", file: "f".repeat(64) }],
  };
  await settle();
  expect(place.querySelector(".dock [role=status]")?.textContent).toContain("one sees no pictures");
  wish.value = { model: "acme/two" };
  await settle();
  expect(place.querySelector(".dock [role=status]")).toBeNull();
  place.querySelector("form.composer")?.dispatchEvent(new Event("submit", { cancelable: true }));
  await settle();
  expect(server.to("/api/sessions")[0]?.body).toMatchObject({
    model: "acme/two",
    prompt: [{ type: "text" }, { type: "image" }],
  });
});
