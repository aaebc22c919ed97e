/** Wire JSON to values. What this reader does not know is kept as `unknown`, never guessed. */

import { STRUCTS, UNIONS } from "./shapes.gen.ts";

type Json = Record<string, unknown>;

/** A value that does not have the shape it should have. */
export class Mismatch extends Error {}

function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A row of a table, and never what the table inherits. */
export function own<T>(table: Record<string, T>, key: unknown): T | undefined {
  return typeof key === "string" && Object.hasOwn(table, key) ? table[key] : undefined;
}

const PLAIN: Record<string, (value: unknown) => boolean> = {
  a: () => true,
  b: (value) => typeof value === "boolean",
  i: (value) => Number.isSafeInteger(value),
  n: (value) => typeof value === "number",
  "": (value) => typeof value === "string",
};

/** A struct as its row says: its tag, and its fields with whether they must be there. */
interface StructShape {
  tag: [field: string, value: string] | undefined;
  fields: [name: string, shape: string, needed: boolean][];
}

/** The rows that were read so far. */
const known = new Map<string, StructShape>();

/** Takes more rows, such as those of `later.gen.ts`. */
export function addShapes(structs: Record<string, string>, unions: Record<string, string>): void {
  Object.assign(STRUCTS, structs);
  Object.assign(UNIONS, unions);
}

function shapeOf(name: string): StructShape {
  let found = known.get(name);
  if (found) return found;
  const row = own(STRUCTS, name);
  if (row === undefined) throw new Mismatch();
  found = { tag: undefined, fields: [] };
  for (const word of row.split(" ")) {
    const [, field = "", mark, rest = ""] = /^(\w+)(=|\?)?:?(.*)$/.exec(word) ?? [];
    if (mark === "=") found.tag = [field, rest];
    else if (field) found.fields.push([field, rest, mark !== "?"]);
  }
  known.set(name, found);
  return found;
}

function readValue(shape: string, value: unknown): unknown {
  const plain = own(PLAIN, shape);
  if (plain) {
    if (!plain(value)) throw new Mismatch();
    return value;
  }
  if (shape.endsWith("|")) return value === null ? null : readValue(shape.slice(0, -1), value);
  const inner = shape.slice(0, -2);
  if (shape.endsWith("[]")) {
    if (!Array.isArray(value)) throw new Mismatch();
    return value.map((item) => readValue(inner, item));
  }
  if (shape.endsWith("{}")) {
    if (!isObject(value)) throw new Mismatch();
    return Object.fromEntries(
      Object.entries(value).map(([key, item]) => [key, readValue(inner, item)]),
    );
  }
  return Object.hasOwn(UNIONS, shape) ? readUnion(shape, value) : readStruct(shape, value);
}

/** The known fields of a struct; unknown ones are left out. */
export function readStruct(name: string, value: unknown): Json {
  const { tag, fields } = shapeOf(name);
  if (!isObject(value)) throw new Mismatch();
  const made: Json = tag ? { [tag[0]]: tag[1] } : {};
  for (const [field, shape, needed] of fields) {
    if (needed || value[field] !== undefined) made[field] = readValue(shape, value[field]);
  }
  return made;
}

/** One member of a union, or `unknown` with all that came. */
function readUnion(name: string, value: unknown): Json {
  const members = (own(UNIONS, name) ?? "").split(" ");
  const find = (tag: unknown) => members.find((member) => shapeOf(member).tag?.[1] === tag);
  const tag = shapeOf(members[0] ?? "").tag?.[0] ?? "";
  const kind = isObject(value) ? value[tag] : undefined;
  try {
    return readStruct(find(kind) ?? "", value);
  } catch (error) {
    if (!(error instanceof Mismatch) || !find("unknown")) throw error;
    const raw = isObject(value) ? value : { value };
    return { [tag]: "unknown", name: typeof kind === "string" ? kind : "", raw };
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
