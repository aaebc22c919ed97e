/** What a stream says, frame by frame. */

import { addShapes, Mismatch, own, readStruct } from "./events.ts";
import { STRUCTS, UNIONS } from "./later.gen.ts";
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

addShapes(STRUCTS, UNIONS);

const CONTROLS = {
  gap: "Gap",
  hello: "Hello",
  partial: "Partial",
  reset: "Reset",
  session: "SessionChanged",
  session_removed: "SessionRemoved",
  sessions: "SessionRows",
} as const;

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
