// Made from the Python types by `make types`; do not edit.

import type { Places } from "./types.gen.ts";

/** More of the table of the same name in `shapes.gen.ts`. */
export const STRUCTS: Record<string, string> = {
  AgentOffer: "name models:[]",
  Capabilities: "server_version contract areas:[] agents:AgentOffer[] modes:[] limits:ClientLimits",
  Checkpoint: "turn time files:i unkept?:[]",
  CheckpointList: "checkpoints:Checkpoint[] next?:|",
  ClientCall: "call tool arguments by expires_at",
  ClientCallEnded: "call status",
  ClientLimits: "body_bytes:i large_body_bytes:i prompt_blocks:i prompt_bytes:i inbox_prompts:i live_sessions:i session_readers:i timeout_s:i",
  FileInfo: "file media_type size:i name?",
  Health: "status server_version pid:i",
  KeyTest: "key found works:b message",
  Manifest: "contract schema_sha256 operations:ManifestRow[]",
  ManifestRow: "name area method path summary request?:| answer?:| status:i query?:[] faults?:[] idempotent?:b stream?:b open?:b admin?:b large?:b media?:|",
  ModelInfo: "model live?:b window?:i| output_cap?:i| thinking? refuses?:[] fast?:b price_input?:n| price_output?:n| price_cache_read?:n| price_cache_write?:n| dearer_from?:i|",
  ModelList: "default models:ModelInfo[] faults:Fault{} prices_date?",
  ProviderInfo: "provider title state found?:| setting?:| key?:| backup_keys?:[] signed_in?:b can_sign_in?:b signing_in?:b base_url? own_url?:b can_move?:b ca_file?:| model?:| problem?:|",
  ProviderList: "providers:ProviderInfo[]",
  ProviderTest: "provider models?:[] keys?:KeyTest[] fault?:Fault|",
  SignInStarted: "url expires_at",
  ToolsDeclared: "reader tools:[]",
  TurnDiff: "turn changes:FileChange[] next?:|",
  TurnReverted: "turn reverted?:[] conflicts?:FileConflict[] unkept?:[] conversation?:b",
  UsageReport: "by first last rows:UsageRow[] total:UsageRow today_cost:n daily_cost?:n|",
  UsageRow: "name title?:| requests:i usage:Usage cost?:n| unpriced?:i",
};

/** More of the table of the same name in `types.gen.ts`. */
export const OPERATIONS: Places = {
  health: ["GET", "/healthz", "Health"],
  ready: ["GET", "/readyz", "Health"],
  openapi: ["GET", "/openapi.json"],
  docs: ["GET", "/docs"],
  manifest: ["GET", "/api/manifest", "Manifest"],
  capabilities: ["GET", "/api/capabilities", "Capabilities"],
  declare_tools: ["PUT", "/api/sessions/{session}/tools", "ToolsDeclared"],
  claim_call: ["POST", "/api/sessions/{session}/calls/{call}/claim", "ClientCall"],
  report_progress: ["POST", "/api/sessions/{session}/calls/{call}/progress"],
  send_result: ["POST", "/api/sessions/{session}/calls/{call}/result", "ClientCallEnded"],
  upload_file: ["POST", "/api/files", "FileInfo"],
  download_file: ["GET", "/api/files/{file}"],
  list_checkpoints: ["GET", "/api/sessions/{session}/checkpoints", "CheckpointList"],
  get_diff: ["GET", "/api/sessions/{session}/turns/{turn}/diff", "TurnDiff"],
  revert_turn: ["POST", "/api/sessions/{session}/turns/{turn}/revert", "TurnReverted"],
  list_models: ["GET", "/api/models", "ModelList"],
  list_providers: ["GET", "/api/providers", "ProviderList"],
  change_provider: ["PUT", "/api/providers/{provider}", "ProviderInfo"],
  remove_provider: ["DELETE", "/api/providers/{provider}", "ProviderInfo"],
  test_provider: ["POST", "/api/providers/{provider}/test", "ProviderTest"],
  start_sign_in: ["POST", "/api/providers/{provider}/sign-in", "SignInStarted"],
  finish_sign_in: ["POST", "/api/providers/{provider}/sign-in/finish", "ProviderInfo"],
  cancel_sign_in: ["POST", "/api/providers/{provider}/sign-in/cancel"],
  get_usage: ["GET", "/api/usage", "UsageReport"],
};
