import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { receiveShare, SHARED_START } from "../src/sw/share.ts";
import { DOCUMENT_MS, isRight, Shell, SMALL_MS } from "../src/sw/shell.ts";

const ORIGIN = "https://desk.example.org";
const BUILD = "0123456789ab";
const FILES = ["/assets/a-1.js", "/icon.svg", "/theme-boot.js"];
const KINDS: Record<string, string> = {
  js: "text/javascript; charset=utf-8",
  svg: "image/svg+xml",
  "/": "text/html; charset=utf-8",
};

/** As much of a browser's caches as the worker uses. */
class Caches {
  readonly made = new Map<string, Map<string, Response>>();

  /** What a full or forbidden storage says to this. */
  refuses: "" | "put" | "open" = "";

  async open(name: string) {
    if (this.refuses === "open") throw new DOMException("no", "SecurityError");
    const kept = this.made.get(name) ?? new Map<string, Response>();
    this.made.set(name, kept);
    return {
      put: async (path: string, response: Response) => {
        if (this.refuses === "put") throw new DOMException("full", "QuotaExceededError");
        kept.set(path, response);
      },
      match: async (path: string) => kept.get(path)?.clone(),
    };
  }

  async match(path: string) {
    if (this.refuses === "open") throw new DOMException("no", "SecurityError");
    for (const kept of this.made.values()) if (kept.has(path)) return kept.get(path)?.clone();
    return undefined;
  }

  has = async (name: string) => this.made.has(name);
  keys = async () => [...this.made.keys()];
  delete = async (name: string) => this.made.delete(name);
}

type Network = (path: string) => Promise<Response>;

function kindOf(path: string): string {
  return KINDS[path] ?? KINDS[path.split(".").at(-1) ?? ""] ?? "text/plain";
}

function reply(path: string, status = 200, kind = kindOf(path)): Response {
  return new Response(`${path} ${BUILD}`, { status, headers: { "content-type": kind } });
}

let caches: Caches;
let network: Network;
let asked: string[];

beforeEach(() => {
  vi.useFakeTimers();
  caches = new Caches();
  network = async (path) => reply(path);
  asked = [];
});

afterEach(() => {
  vi.useRealTimers();
});

function makeShell(build = BUILD): Shell {
  const fetch = (input: RequestInfo | URL) => {
    const address = typeof input === "object" && "url" in input ? input.url : input;
    const path = new URL(address, ORIGIN).pathname;
    asked.push(path);
    return network(path);
  };
  const tools = { caches: caches as unknown as CacheStorage, fetch, origin: ORIGIN };
  return new Shell({ build, files: FILES }, tools as never);
}

function ask(path: string, mode = "cors", method = "GET"): Request {
  return { url: `${ORIGIN}${path}`, mode, method } as Request;
}

const down: Network = () => Promise.reject(new TypeError("Failed to fetch"));
const silent: Network = () => new Promise(() => undefined);

// rules: W18
test("what is not what its name says is never kept", () => {
  expect(isRight("/assets/a-1.js", reply("/assets/a-1.js"))).toBe(true);
  expect(isRight("/", reply("/"))).toBe(true);
  expect(isRight("/assets/a-1.js", reply("/assets/a-1.js", 404))).toBe(false);
  expect(isRight("/assets/a-1.js", reply("/assets/a-1.js", 200, "text/html"))).toBe(false);
  expect(isRight("/assets/a-1", reply("/assets/a-1"))).toBe(false);
  const moved = reply("/");
  Object.defineProperty(moved, "redirected", { value: true });
  expect(isRight("/", moved)).toBe(false);
});

// rules: W18
test("a build is kept as a whole or not at all, and not under the stamp of another", async () => {
  await makeShell().fill();
  expect([...(caches.made.get(`towline-shell-${BUILD}`)?.keys() ?? [])].sort()).toEqual([
    "/",
    ...FILES,
  ]);
  network = async (path) => reply(path, path === "/icon.svg" ? 404 : 200);
  await expect(makeShell().fill()).rejects.toThrow("/icon.svg");
  network = async (path) => reply(path);
  await expect(makeShell("ffffffffffff").fill()).rejects.toThrow("another build");
});

// rules: W18
test("a build of which a part cannot be had leaves nothing behind, and a whole one stays", async () => {
  network = async (path) => reply(path, path === "/icon.svg" ? 404 : 200);
  await expect(makeShell().fill()).rejects.toThrow("/icon.svg");
  expect(await caches.keys()).toEqual([]);
  network = async (path) => reply(path);
  await makeShell().fill();
  network = down;
  await expect(makeShell().fill()).rejects.toThrow("Failed to fetch");
  expect((await makeShell().answer(ask("/icon.svg")))?.status).toBe(200);
});

// rules: W18
test.each(["put", "open"] as const)(
  "a device that refuses to %s still gets what the network has",
  async (refuses) => {
    caches.refuses = refuses;
    const shell = makeShell();
    expect((await shell.answer(ask("/assets/a-1.js")))?.status).toBe(200);
    expect((await shell.answer(ask("/", "navigate")))?.status).toBe(200);
    expect((await shell.answer(ask("/icon.svg")))?.status).toBe(200);
  },
);

test("the build before stays, for windows that are still open; older ones go", async () => {
  for (const name of ["towline-shell-1", "towline-shell-2", "other", `towline-shell-${BUILD}`]) {
    await caches.open(name);
  }
  await makeShell().clear();
  expect(await caches.keys()).toEqual(["towline-shell-2", "other", `towline-shell-${BUILD}`]);
});

test("what the worker has no part in goes to the server as it is", () => {
  const shell = makeShell();
  expect(shell.answer(ask("/api/sessions"))).toBeUndefined();
  expect(shell.answer(ask("/api/auth/login", "cors", "POST"))).toBeUndefined();
  expect(shell.answer(ask("/assets/a-1.js", "cors", "POST"))).toBeUndefined();
  expect(shell.answer(ask("/docs", "navigate"))).toBeUndefined();
  expect(shell.answer(ask("/unknown.png"))).toBeUndefined();
  const foreign = { url: "https://elsewhere.example/assets/a.js", method: "GET" } as Request;
  expect(shell.answer(foreign)).toBeUndefined();
  expect(asked).toEqual([]);
});

test("a start takes the server's document, and the kept one when none comes in time", async () => {
  const shell = makeShell();
  await shell.fill();
  network = async () => new Response("new", { headers: { "content-type": "text/html" } });
  expect(await (await shell.answer(ask("/?src=pwa", "navigate")))?.text()).toBe("new");
  network = down;
  expect(await (await shell.answer(ask("/", "navigate")))?.text()).toBe(`/ ${BUILD}`);
  network = async (path) => reply(path, 502);
  expect((await shell.answer(ask("/", "navigate")))?.status).toBe(200);
  network = silent;
  let came: Response | undefined;
  void shell.answer(ask("/", "navigate"))?.then((answer) => {
    came = answer;
  });
  await vi.advanceTimersByTimeAsync(DOCUMENT_MS - 1);
  expect(came).toBeUndefined();
  await vi.advanceTimersByTimeAsync(1);
  expect(came?.status).toBe(200);
});

test("small files with fixed names wait for less, and come from nowhere when none was kept", async () => {
  const shell = makeShell();
  network = down;
  await expect(shell.answer(ask("/icon.svg"))).rejects.toThrow("Failed to fetch");
  network = async (path) => reply(path);
  await shell.fill();
  network = silent;
  let came: Response | undefined;
  void shell.answer(ask("/theme-boot.js"))?.then((answer) => {
    came = answer;
  });
  await vi.advanceTimersByTimeAsync(SMALL_MS);
  expect(came?.status).toBe(200);
});

// rules: W18
test("what is named by its hash is asked for once, and what is missing is not kept", async () => {
  const shell = makeShell();
  await shell.fill();
  asked = [];
  expect((await shell.answer(ask("/assets/a-1.js")))?.status).toBe(200);
  expect(asked).toEqual([]);
  await shell.answer(ask("/assets/b-2.js"));
  await shell.answer(ask("/assets/b-2.js"));
  expect(asked).toEqual(["/assets/b-2.js"]);
  network = async (path) => reply(path, 404, "text/plain");
  expect((await shell.answer(ask("/assets/c-3.js")))?.status).toBe(404);
  network = async (path) => reply(path, 200, "text/html");
  await shell.answer(ask("/assets/c-3.js"));
  expect(await caches.match("/assets/c-3.js")).toBeUndefined();
});

test("what another app shares is kept until the page takes it", async () => {
  const form = new FormData();
  form.set("title", "A page");
  form.set("text", "Look at this");
  form.set("url", "");
  form.append("images", new File([], ""));
  form.append("images", new File(["png"], "a b.png", { type: "image/png" }));
  const tools = { caches: caches as unknown as CacheStorage, origin: ORIGIN };
  const shared = { ...ask("/share", "navigate", "POST"), formData: async () => form };
  const answer = await receiveShare(shared as Request, tools);
  expect(answer?.headers.get("location")).toBe(`${ORIGIN}${SHARED_START}`);
  const kept = caches.made.get("towline-shared");
  expect(await kept?.get("/shared/text")?.text()).toBe("A page\nLook at this");
  expect(kept?.get("/shared/0")?.headers.get("x-name")).toBe("a%20b.png");
  expect(receiveShare(ask("/share"), tools)).toBeUndefined();
  expect(receiveShare(ask("/api/share", "cors", "POST"), tools)).toBeUndefined();
});

test("of what is shared no more is kept than one large file may have", async () => {
  const tools = { caches: caches as unknown as CacheStorage, origin: ORIGIN };
  const files = [30_000_000, 30_000_000, 10_000_000].map((size, at) => {
    const file = new File(["x"], `${at}.png`, { type: "image/png" });
    Object.defineProperty(file, "size", { value: size });
    return file;
  });
  const form = { get: () => null, getAll: () => files } as unknown as FormData;
  const shared = { ...ask("/share", "navigate", "POST"), formData: async () => form };
  await receiveShare(shared as Request, tools);
  const kept = caches.made.get("towline-shared");
  expect(kept?.get("/shared/0")?.headers.get("x-name")).toBe("0.png");
  expect(kept?.get("/shared/1")?.headers.get("x-name")).toBe("2.png");
});

test("a share that cannot be read or kept still leads to the page, and a draft has its bounds", async () => {
  const tools = { caches: caches as unknown as CacheStorage, origin: ORIGIN };
  const form = new FormData();
  form.set("text", "x".repeat(10_000_000));
  const share = (formData: () => Promise<FormData>) =>
    receiveShare({ ...ask("/share", "navigate", "POST"), formData } as Request, tools);
  await share(async () => form);
  const kept = await caches.made.get("towline-shared")?.get("/shared/text")?.text();
  expect(kept?.length).toBe(100_000);
  caches.refuses = "put";
  const answers = [
    await share(async () => form),
    await share(() => Promise.reject(new TypeError("no form"))),
  ];
  for (const answer of answers) {
    expect(answer?.headers.get("location")).toBe(`${ORIGIN}${SHARED_START}`);
  }
});
