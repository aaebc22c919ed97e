import { vi } from "vitest";

/** One request as a test sees it. */
export interface Seen {
  method: string;
  path: string;
  headers: Headers;
  body: unknown;
  signal: AbortSignal | undefined;
}

type Answer = (seen: Seen) => Response | Promise<Response>;

const CONTRACT = { "towline-contract": "1" };

/** A good answer. */
export function json(value: unknown, status = 200, headers: HeadersInit = CONTRACT): Response {
  return new Response(JSON.stringify(value), { status, headers });
}

/** An error answer of the contract. */
export function problem(status: number, code: string, more: object = {}): Response {
  const body = { title: code, status, detail: `Refused as ${code}.`, code, retry: "none", ...more };
  return json(body, status);
}

/** An event stream that a test writes to. */
export class FakeStream {
  readonly response: Response;
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined;

  constructor(headers: HeadersInit = CONTRACT) {
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        this.#controller = controller;
      },
    });
    this.response = new Response(body, { headers });
  }

  write(text: string): void {
    this.#controller?.enqueue(new TextEncoder().encode(text));
  }

  /** One frame; a stored event gets its `id:`. */
  send(data: Record<string, unknown>, event = ""): void {
    const head = event
      ? `event: ${event}\n`
      : typeof data.seq === "number"
        ? `id: ${data.seq}\n`
        : "";
    this.write(`${head}data: ${JSON.stringify(data)}\n\n`);
  }

  end(): void {
    this.#controller?.close();
  }

  break(): void {
    this.#controller?.error(new TypeError("Load failed"));
  }
}

/** Takes the place of `fetch`; routes are `METHOD /path` to what they answer. */
export class FakeServer {
  readonly seen: Seen[] = [];
  readonly #routes = new Map<string, Answer>();

  constructor() {
    vi.stubGlobal("fetch", (input: string, init: RequestInit = {}) => this.#serve(input, init));
  }

  on(route: string, answer: Answer): this {
    this.#routes.set(route, answer);
    return this;
  }

  /** The requests to a path. */
  to(path: string): Seen[] {
    return this.seen.filter((seen) => seen.path.split("?")[0] === path);
  }

  async #serve(input: string, init: RequestInit): Promise<Response> {
    const method = init.method ?? "GET";
    const seen: Seen = {
      method,
      path: input,
      headers: new Headers(init.headers),
      body: typeof init.body === "string" ? JSON.parse(init.body) : undefined,
      signal: init.signal ?? undefined,
    };
    this.seen.push(seen);
    const answer = this.#routes.get(`${method} ${input.split("?")[0]}`);
    if (!answer) throw new TypeError("Failed to fetch");
    return await answer(seen);
  }
}
