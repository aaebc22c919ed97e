/** Requests to the server: one call for each operation of the contract. */

import { said, t, tMaybe } from "../core/i18n.ts";
import { addShapes, readAs } from "../protocol/events.ts";
import {
  CONTRACT_HEADER,
  CONTRACT_VERSION,
  OPERATIONS,
  type Operations,
  type Problem,
} from "../protocol/types.gen.ts";

/** The longest that an ordinary request may take, in milliseconds. */
const REQUEST_MS = 30_000;

/** The name of an operation. */
export type OperationName = keyof Operations;

/** Why a request has no good answer. */
export class ApiFault extends Error {
  /** A code of the contract, or `network`, `timeout`, `contract_unavailable`, `version_mismatch`. */
  readonly code: string;
  /** The HTTP status; 0 when no answer came. */
  readonly status: number;
  /** Whether the same request may be sent again. */
  readonly again: boolean;
  /** Milliseconds until that can help. */
  readonly afterMs: number;
  /** A finer word of the server's; empty when it gave none. */
  readonly reason: string;
  /** Whether a towline server said so, and not a proxy or a network's sign-in page (C4.7). */
  readonly ours: boolean;

  constructor(code: string, message: string, more: Partial<FaultFacts> = {}) {
    super(message);
    this.name = "ApiFault";
    this.code = code;
    this.status = more.status ?? 0;
    this.again = more.again ?? false;
    this.afterMs = more.afterMs ?? 0;
    this.ours = more.ours ?? false;
    this.reason = more.reason ?? "";
  }
}

type FaultFacts = Pick<ApiFault, "status" | "again" | "afterMs" | "ours" | "reason">;

/** What a call may be given. */
export interface CallOptions<Name extends OperationName> {
  path?: Record<string, string>;
  query?: Record<string, string | number>;
  body?: Operations[Name]["request"];
  key?: string;
  signal?: AbortSignal;
}

/** Fetches what is known of operations that the first screen does without. */
export async function learn(): Promise<void> {
  const later = await import("../protocol/later.gen.ts");
  addShapes(later.STRUCTS, later.UNIONS);
  Object.assign(OPERATIONS, later.OPERATIONS);
}

/** The address of an operation that the first screen knows, or that was called before. */
export function addressOf(
  name: OperationName,
  path: Record<string, string> = {},
  query: Record<string, string | number> = {},
): string {
  const [, place = ""] = OPERATIONS[name] ?? [];
  const filled = place.replace(/\{(\w+)\}/g, (_whole, part: string) =>
    encodeURIComponent(path[part] ?? ""),
  );
  const search = new URLSearchParams(
    Object.entries(query).map(([key, value]): [string, string] => [key, String(value)]),
  ).toString();
  return search ? `${filled}?${search}` : filled;
}

/** Whole seconds of a `Retry-After` as milliseconds; 0 when there is none. */
function retryAfterMs(response: Response): number {
  const seconds = Number(response.headers.get("retry-after"));
  return Number.isFinite(seconds) && seconds > 0 ? seconds * 1000 : 0;
}

/** Why an answer of success is not one of ours; nothing when it is. */
function foreignAnswer(
  response: Response,
): "contract_unavailable" | "version_mismatch" | undefined {
  const contract = response.headers.get(CONTRACT_HEADER);
  if (contract === null || !/^\d+/.test(contract)) return "contract_unavailable";
  return contract.split(".")[0] === CONTRACT_VERSION ? undefined : "version_mismatch";
}

async function send(name: OperationName, options: CallOptions<OperationName>): Promise<Response> {
  const headers = new Headers({ accept: "application/json", [CONTRACT_HEADER]: CONTRACT_VERSION });
  if (options.key) headers.set("idempotency-key", options.key);
  const [method = ""] = OPERATIONS[name] ?? [];
  const init: RequestInit = { method, headers, credentials: "same-origin", cache: "no-store" };
  // Whoever deletes something and closes the page has deleted it.
  init.keepalive = method === "DELETE";
  if (method !== "GET" && method !== "DELETE") {
    headers.set("content-type", "application/json");
    init.body = JSON.stringify(options.body ?? {});
  }
  const limit = AbortSignal.timeout(REQUEST_MS);
  init.signal = options.signal ? AbortSignal.any([options.signal, limit]) : limit;
  try {
    return await fetch(addressOf(name, options.path, options.query), init);
  } catch (error) {
    options.signal?.throwIfAborted();
    const slow = error instanceof DOMException && error.name === "TimeoutError";
    const code = slow ? "timeout" : "network";
    throw new ApiFault(code, t(`error.${code}`), { again: true });
  }
}

/** Why an answer is no good one. */
async function readProblem(response: Response): Promise<ApiFault> {
  const { status } = response;
  const ours = response.headers.has(CONTRACT_HEADER) || status === 444;
  const raw: unknown = await response.json().catch(() => undefined);
  const problem = readAs<Problem>("Problem", raw);
  // An empty 444 is how a server with silent errors says 401.
  const code = problem?.code ?? (status === 401 || status === 444 ? "unauthorized" : "http");
  const message =
    said(problem) ??
    tMaybe(`error.${code}`, { status }) ??
    problem?.detail ??
    t("error.http", { status });
  const again = problem ? problem.retry === "same_request" : !ours || status >= 500;
  const afterMs = Math.max(retryAfterMs(response), (problem?.retry_after_s ?? 0) * 1000);
  const reason = problem?.reason ?? "";
  return new ApiFault(code, message, { status, again, afterMs, ours, reason });
}

/** The fault of an answer that is not for this page, or not ours. */
export function makeForeign(
  code: "contract_unavailable" | "version_mismatch",
  status: number,
): ApiFault {
  const word = code === "version_mismatch" ? "link.version" : "link.unavailable";
  return new ApiFault(code, t(word), { status });
}

/**
 * Lets a good answer pass.
 *
 * @throws ApiFault when it is none
 */
export async function checkAnswer(response: Response): Promise<void> {
  if (!response.ok) throw await readProblem(response);
  const foreign = foreignAnswer(response);
  if (!foreign) return;
  await response.body?.cancel();
  throw makeForeign(foreign, response.status);
}

/**
 * Does one operation.
 *
 * @throws ApiFault when there is no good answer
 */
export async function call<Name extends OperationName>(
  name: Name,
  options: CallOptions<Name> = {},
): Promise<Operations[Name]["answer"]> {
  if (!OPERATIONS[name]) {
    await learn().catch(() => {
      throw new ApiFault("network", t("error.network"), { again: true });
    });
  }
  const response = await send(name, options);
  await checkAnswer(response);
  const shape = OPERATIONS[name]?.[2];
  if (!shape) return null as Operations[Name]["answer"];
  const raw: unknown = await response.json().catch(() => undefined);
  const answer = readAs<Operations[Name]["answer"]>(shape, raw);
  if (answer) return answer;
  throw makeForeign("contract_unavailable", response.status);
}
