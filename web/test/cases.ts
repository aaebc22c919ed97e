import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import {
  IDLE,
  LINK_POLICY,
  type LinkEffect,
  type LinkInput,
  type LinkState,
} from "../src/core/link.ts";
import { type Entry, makeEntry, type TryOutcome } from "../src/core/outbox.ts";
import type { Fault } from "../src/protocol/types.gen.ts";

const VECTORS = join(import.meta.dirname, "../../packages/protocol/vectors");

/** Fields that differ from their defaults; `null` stands for the default. */
export type Patch = Readonly<Record<string, unknown>>;

export interface LinkCase {
  name: string;
  state?: Patch;
  steps: { input: Patch; state: Patch; effects?: readonly Patch[] }[];
}

/** What is done to an entry; the names as in the cases. */
export type Deed =
  | { type: "send" | "tick"; now_ms?: number }
  | { type: "try"; attempt: number; outcome: TryOutcome; now_ms?: number }
  | { type: "settle"; queued?: string[]; delivered?: string[] };

export interface OutboxCase {
  name: string;
  entry?: Patch;
  steps: { do: Deed; entry: Patch }[];
  fault?: Fault;
}

/** All cases of a folder of the vectors, named by their file too. */
export function readCases<Case extends { name: string }>(folder: string): Case[] {
  const place = join(VECTORS, folder);
  const files = readdirSync(place).filter((name) => name.endsWith(".json"));
  return files.sort().flatMap((file) => {
    const cases: Case[] = JSON.parse(readFileSync(join(place, file), "utf8"));
    return cases.map((one) => ({ ...one, name: `${file.slice(0, -5)}: ${one.name}` }));
  });
}

/** Two patches in one; a `null` takes the field out. */
export function patched(fields: Patch, patch: Patch): Patch {
  return Object.fromEntries(
    Object.entries({ ...fields, ...patch }).filter(([, value]) => value !== null),
  );
}

export function linkState(fields: Patch): LinkState {
  const policy = { ...LINK_POLICY, ...(fields.policy as Patch | undefined) };
  return { ...IDLE, ...fields, policy } as LinkState;
}

const INPUT = {
  now_ms: 0,
  random: 0,
};
const INPUTS: Readonly<Record<string, Patch>> = {
  start: { turn_running: false },
  stored: { ends: false },
  loaded: { ends: false },
  refused: { contract: true, retry_after_ms: 0 },
};

export function linkInput(fields: Patch): LinkInput {
  return { ...INPUT, ...INPUTS[String(fields.type)], ...fields } as LinkInput;
}

export function linkEffect(fields: Patch): LinkEffect {
  const more = fields.type === "give_up" ? { attempts: 0 } : {};
  return { ...more, ...fields } as LinkEffect;
}

export function outboxEntry(fields: Patch): Entry {
  return { ...makeEntry("k"), ...fields } as Entry;
}
