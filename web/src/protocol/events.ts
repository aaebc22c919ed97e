/** Wire JSON to values. What this reader does not know is kept as `unknown`, never guessed. */

import { type Shape, STRUCTS, UNIONS } from "./shapes.gen.ts";
import type {
  Envelope,
  Gap,
  Hello,
  Partial,
  Reset,
  SessionChanged,
  SessionRemoved,
  SessionRows,
} from "./types.gen.ts";

/** What one SSE event says. A broken one is counted and passed over. */
export type Incoming =
  | { kind: "envelope"; value: Envelope }
  | { kind: "hello"; value: Hello }
  | { kind: "partial"; value: Partial }
  | { kind: "gap"; value: Gap }
  | { kind: "reset"; value: Reset }
  | { kind: "sessions"; value: SessionRows }
  | { kind: "session"; value: SessionChanged }
  | { kind: "session_removed"; value: SessionRemoved }
  | { kind: "broken"; reason: string };

type Json = Record<string, unknown>;

const CONTROLS = {
  gap: "Gap",
  hello: "Hello",
  partial: "Partial",
  reset: "Reset",
  session: "SessionChanged",
  session_removed: "SessionRemoved",
  sessions: "SessionRows",
} as const;

/** A value that does not have the shape it should have. */
class Mismatch extends Error {}

function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function own<T>(table: Record<string, T>, key: unknown): T | undefined {
  return typeof key === "string" && Object.hasOwn(table, key) ? table[key] : undefined;
}

const PLAIN = {
  any: () => true,
  boolean: (value: unknown) => typeof value === "boolean",
  integer: (value: unknown) => Number.isSafeInteger(value),
  number: (value: unknown) => typeof value === "number",
  string: (value: unknown) => typeof value === "string",
};

function readValue(shape: Shape, value: unknown): unknown {
  if (typeof shape === "string") {
    if (!PLAIN[shape](value)) throw new Mismatch();
    return value;
  }
  if ("struct" in shape) return readStruct(shape.struct, value);
  if ("union" in shape) return readUnion(shape.union, value);
  if ("nullable" in shape) return value === null ? null : readValue(shape.nullable, value);
  if ("list" in shape) {
    if (!Array.isArray(value)) throw new Mismatch();
    return value.map((item) => readValue(shape.list, item));
  }
  if (!isObject(value)) throw new Mismatch();
  const { map } = shape;
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [key, readValue(map, item)]),
  );
}

/** The known fields of a struct; unknown ones are left out. */
function readStruct(name: string, value: unknown): Json {
  const struct = own(STRUCTS, name);
  if (!struct || !isObject(value)) throw new Mismatch();
  const made: Json = struct.tag ? { [struct.tag[0]]: struct.tag[1] } : {};
  for (const [field, shape] of Object.entries(struct.required)) {
    made[field] = readValue(shape, value[field]);
  }
  for (const [field, shape] of Object.entries(struct.optional)) {
    if (value[field] !== undefined) made[field] = readValue(shape, value[field]);
  }
  return made;
}

/** One member of a union, or `unknown` with all that came. */
function readUnion(name: string, value: unknown): Json {
  const members = own(UNIONS, name) ?? {};
  const unknown = own(STRUCTS, own(members, "unknown"))?.tag?.[0];
  if (!isObject(value)) {
    if (!unknown) throw new Mismatch();
    return { [unknown]: "unknown", name: "", raw: { value } };
  }
  const tag = unknown ?? "type";
  const kind = value[tag];
  try {
    return readStruct(own(members, kind) ?? "", value);
  } catch (error) {
    if (!(error instanceof Mismatch) || !unknown) throw error;
    return { [unknown]: "unknown", name: typeof kind === "string" ? kind : "", raw: value };
  }
}

/** A value as a struct of the protocol; nothing when it has another shape. */
export function readAs<T>(name: string, value: unknown): T | undefined {
  try {
    return readStruct(name, value) as T;
  } catch (error) {
    if (error instanceof Mismatch) return undefined;
    throw error;
  }
}

/** One SSE event as a frame; never throws. */
export function decodeFrame(event: string, data: string): Incoming {
  const control = own(CONTROLS, event);
  if (!control && event !== "" && event !== "message") {
    return { kind: "broken", reason: "unknown control frame" };
  }
  try {
    const value = readStruct(control ?? "Envelope", JSON.parse(data)) as unknown;
    return { kind: control ? event : "envelope", value } as Incoming;
  } catch (error) {
    return { kind: "broken", reason: error instanceof Mismatch ? "wrong shape" : "not JSON" };
  }
}
