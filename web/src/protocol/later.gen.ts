// Made from the Python types by `make types`; do not edit.

import type { Places } from "./types.gen.ts";

/** More of the table of the same name in `shapes.gen.ts`. */
export const STRUCTS: Record<string, string> = {
  AgentOffer: "name:string models:string[]",
  Capabilities: "server_version:string contract:string areas:string[] agents:AgentOffer[] modes:string[] limits:ClientLimits",
  ClientCall: "call:string tool:string arguments:string by:string expires_at:string",
  ClientCallEnded: "call:string status:string",
  ClientLimits: "body_bytes:integer large_body_bytes:integer prompt_blocks:integer prompt_bytes:integer inbox_prompts:integer live_sessions:integer session_readers:integer timeout_s:integer",
  FileInfo: "file:string media_type:string size:integer name?:string",
  Health: "status:string server_version:string pid:integer",
  KeyTest: "key:string found:string works:boolean message:string",
  Manifest: "contract:string schema_sha256:string operations:ManifestRow[]",
  ManifestRow: "name:string area:string method:string path:string summary:string request?:string|null answer?:string|null status:integer query?:string[] faults?:string[] idempotent?:boolean stream?:boolean open?:boolean admin?:boolean large?:boolean media?:string|null",
  ModelInfo: "model:string live?:boolean window?:integer|null output_cap?:integer|null thinking?:string refuses?:string[] fast?:boolean price_input?:number|null price_output?:number|null price_cache_read?:number|null price_cache_write?:number|null dearer_from?:integer|null",
  ModelList: "default:string models:ModelInfo[] faults:Fault{} prices_date?:string",
  ProviderInfo: "provider:string title:string state:string found?:string|null setting?:string|null key?:string|null backup_keys?:string[] signed_in?:boolean can_sign_in?:boolean signing_in?:boolean base_url?:string own_url?:boolean can_move?:boolean ca_file?:string|null model?:string|null problem?:string|null",
  ProviderList: "providers:ProviderInfo[]",
  ProviderTest: "provider:string models?:string[] keys?:KeyTest[] fault?:Fault|null",
  SignInStarted: "url:string expires_at:string",
  ToolsDeclared: "reader:string tools:string[]",
  UsageReport: "by:string first:string last:string rows:UsageRow[] total:UsageRow today_cost:number daily_cost?:number|null",
  UsageRow: "name:string title?:string|null requests:integer usage:Usage cost?:number|null unpriced?:integer",
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
