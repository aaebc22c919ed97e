/** What tests of steps make conversations of. */

import type { Block, CallView, MessageView } from "../src/protocol/types.gen.ts";
import { TIME } from "./chat_screen.tsx";

export const thought = (text: string): Block => ({ type: "thinking", text });
export const words = (text: string): Block => ({ type: "text", text });
export const asks = (id: string): Block => ({
  type: "tool_call",
  id,
  name: "look",
  arguments: "{}",
});

export function message(seq: number, role: string, content: Block[]): MessageView {
  const id = `msg_${seq}`;
  const rest = { cut: null, key: null, mark: null, undone: false };
  return { seq, role, id, turn: "trn_1", time: TIME, content, ...rest };
}

const START = Date.parse(TIME);

export function call(id: string, more: Partial<CallView> = {}): CallView {
  const at = Number(id.slice(-1));
  return {
    call: id,
    tool: "look",
    title: `Look ${id}`,
    effect: "read",
    arguments: "{}",
    status: "completed",
    preview: null,
    turn: "trn_1",
    started: new Date(START + at * 1_000).toISOString(),
    progress: null,
    fraction: null,
    output: "",
    output_at: 0,
    content: [],
    is_error: false,
    duration_ms: 500,
    artifacts: [],
    changes: [],
    changes_truncated: false,
    decision: null,
    expires_at: null,
    claimed_by: null,
    arguments_file: null,
    files: [],
    child: null,
    ...more,
  };
}
