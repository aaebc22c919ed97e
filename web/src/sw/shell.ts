/**
 * The page's files on this device: what the worker keeps of a build, and what it answers with.
 *
 * It never answers for `/api`, and it takes nothing over by itself: a new build waits until somebody
 * taps, or until no window of the old one is left.
 */

/** What a build is made of; written into the worker when it is built. */
export interface ShellFiles {
  /** The build's stamp, as its document holds it. */
  readonly build: string;
  /** Paths of all its files but the document. */
  readonly files: readonly string[];
}

/** What the worker does it with. */
export interface ShellTools {
  readonly caches: CacheStorage;
  readonly fetch: typeof fetch;
  readonly origin: string;
}

/** How long a start waits for the network before it takes the kept document, in milliseconds. */
export const DOCUMENT_MS = 4_000;
/** The same for its few small files whose names never change. */
export const SMALL_MS = 1_000;

const PREFIX = "towline-shell-";
const DOCUMENT = "/";
/** Builds that are kept: a window of the one before may still ask for its parts. */
const KEPT = 2;

const TYPES: Readonly<Record<string, string>> = {
  js: "text/javascript",
  css: "text/css",
  svg: "image/svg+xml",
  png: "image/png",
  webmanifest: "application/manifest+json",
};

/** Whether an answer is what its path says: a sign-in page of a network must never be kept. */
export function isRight(path: string, response: Response): boolean {
  if (!response.ok || response.redirected) return false;
  const kind = path === DOCUMENT ? "text/html" : TYPES[path.split(".").at(-1) ?? ""];
  const given = response.headers.get("content-type")?.split(";")[0]?.trim().toLowerCase();
  return kind !== undefined && given === kind;
}

/** A device that is full or keeps nothing is no reason to show nothing: the network may answer. */
export function orNothing<Value>(asked: Promise<Value>): Promise<Value | undefined> {
  return asked.catch(() => undefined);
}

/** The kept files of one build. */
export class Shell {
  readonly #shell: ShellFiles;
  readonly #tools: ShellTools;
  readonly #name: string;

  constructor(shell: ShellFiles, tools: ShellTools) {
    this.#shell = shell;
    this.#tools = tools;
    this.#name = PREFIX + shell.build;
  }

  /**
   * Fetches the whole build.
   *
   * @throws Error when a part of it cannot be had, or the server holds another build by now
   */
  async fill(): Promise<void> {
    const isNew = !(await this.#tools.caches.has(this.#name));
    const cache = await this.#tools.caches.open(this.#name);
    try {
      await Promise.all([DOCUMENT, ...this.#shell.files].map((path) => this.#keep(cache, path)));
    } catch (error) {
      // A half build would count as one, and push out a whole one that a window still needs.
      if (isNew) await this.#tools.caches.delete(this.#name);
      throw error;
    }
  }

  async #keep(cache: Cache, path: string): Promise<void> {
    // What is named by its hash may come out of the browser's own cache.
    const mode = path.startsWith("/assets/") ? "default" : "no-cache";
    const response = await this.#tools.fetch(path, { cache: mode });
    if (!isRight(path, response)) throw new Error(`${path} cannot be kept`);
    if (path === DOCUMENT && !(await response.clone().text()).includes(this.#shell.build)) {
      throw new Error("the server holds another build");
    }
    await cache.put(path, response);
  }

  /** Lets go of the builds that no window can still need. */
  async clear(): Promise<void> {
    const names = await this.#tools.caches.keys();
    const others = names.filter((name) => name.startsWith(PREFIX) && name !== this.#name);
    const gone = others.slice(0, Math.max(0, others.length - (KEPT - 1)));
    await Promise.all(gone.map((name) => this.#tools.caches.delete(name)));
  }

  /** The answer to a request; nothing when the browser is to ask the server itself. */
  answer(request: Request): Promise<Response> | undefined {
    const { origin, pathname } = new URL(request.url);
    if (request.method !== "GET" || origin !== this.#tools.origin) return undefined;
    if (pathname.startsWith("/assets/")) return this.#keptFirst(request, pathname);
    if (request.mode === "navigate") {
      return pathname === DOCUMENT ? this.#networkFirst(request, DOCUMENT, DOCUMENT_MS) : undefined;
    }
    if (!this.#shell.files.includes(pathname)) return undefined;
    return this.#networkFirst(request, pathname, SMALL_MS);
  }

  async #keptFirst(request: Request, path: string): Promise<Response> {
    const { caches, fetch } = this.#tools;
    const kept = await orNothing(caches.match(path, { ignoreSearch: true, ignoreVary: true }));
    if (kept) return kept;
    const response = await fetch(request);
    if (isRight(path, response)) {
      const copy = response.clone();
      await orNothing(caches.open(this.#name).then((cache) => cache.put(path, copy)));
    }
    return response;
  }

  /** The network's answer, or what is kept when none comes in time or a gateway says that it is down. */
  async #networkFirst(request: Request, path: string, limitMs: number): Promise<Response> {
    const asked = this.#tools.fetch(request);
    // The kept one may have been answered with when it fails.
    void orNothing(asked);
    const cache = await orNothing(this.#tools.caches.open(this.#name));
    const kept = cache && (await orNothing(cache.match(path, { ignoreVary: true })));
    if (!kept) return asked;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<undefined>((resolve) => {
      timer = setTimeout(() => resolve(undefined), limitMs);
    });
    const answer = await Promise.race([orNothing(asked), late]);
    clearTimeout(timer);
    return answer && answer.status < 500 ? answer : kept;
  }
}
