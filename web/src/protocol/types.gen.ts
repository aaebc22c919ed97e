// Made from the Python types by `make types`; do not edit.

export const CONTRACT_HEADER = "towline-contract";
export const CONTRACT_VERSION = "1";
export const REDUCER_VERSION = 4;

export type FaultCode =
  | "invalid_request"
  | "version_mismatch"
  | "unauthorized"
  | "forbidden"
  | "not_found"
  | "capability_unavailable"
  | "method_not_allowed"
  | "conflict"
  | "idempotency_conflict"
  | "gone"
  | "precondition_failed"
  | "payload_too_large"
  | "unsupported_media"
  | "rejected"
  | "capacity_exceeded"
  | "rate_limited"
  | "internal_error"
  | "upstream_unavailable"
  | "draining"
  | "store_full"
  | "deadline_exceeded";

export type Artifact =
  | ImageArtifact
  | SearchArtifact
  | PageArtifact
  | HttpArtifact
  | CommandArtifact
  | AudioArtifact
  | TranscriptArtifact
  | UnknownArtifact;

export type Block = Text | Thinking | Image | File | ToolCall | ToolResult | Opaque | Unknown;

export type ClientBlock = Text | Image;

export type Control = Hello | Partial | Gap | Reset | SessionRows | SessionChanged | SessionRemoved;

export type Delta = TextDelta | ThinkingDelta | ToolCallDelta | ToolProgress | ToolOutputDelta;

export type Event =
  | SessionCreated
  | SessionUpdated
  | SessionClosed
  | Compacted
  | Reverted
  | FilesReverted
  | PromptAdmitted
  | PromptDelivered
  | PromptWithdrawn
  | TurnStarted
  | TurnResumed
  | TurnCompleted
  | TurnFailed
  | TurnCancelled
  | StepStarted
  | StepEnded
  | Waiting
  | Fallback
  | MessageStarted
  | MessageEnded
  | MessageDiscarded
  | ToolProposed
  | ToolStarted
  | ToolEnded
  | ClientCallOffered
  | ClientCallClaimed
  | PermissionRequested
  | PermissionResolved
  | QuestionAsked
  | QuestionResolved
  | TodosUpdated
  | FilesChanged
  | Notice
  | Unknown
  | TextDelta
  | ThinkingDelta
  | ToolCallDelta
  | ToolProgress
  | ToolOutputDelta;

export type Frame =
  | Envelope
  | Hello
  | Partial
  | Gap
  | Reset
  | SessionRows
  | SessionChanged
  | SessionRemoved;

export type PromptBlock = Text | Image | File;

export type ResultBlock = Text | Image | File | Unknown;

export type StoredEvent =
  | SessionCreated
  | SessionUpdated
  | SessionClosed
  | Compacted
  | Reverted
  | FilesReverted
  | PromptAdmitted
  | PromptDelivered
  | PromptWithdrawn
  | TurnStarted
  | TurnResumed
  | TurnCompleted
  | TurnFailed
  | TurnCancelled
  | StepStarted
  | StepEnded
  | Waiting
  | Fallback
  | MessageStarted
  | MessageEnded
  | MessageDiscarded
  | ToolProposed
  | ToolStarted
  | ToolEnded
  | ClientCallOffered
  | ClientCallClaimed
  | PermissionRequested
  | PermissionResolved
  | QuestionAsked
  | QuestionResolved
  | TodosUpdated
  | FilesChanged
  | Notice
  | Unknown;

/** A new user. */
export interface AddUser {
  /** Lower-case letters, digits, `.`, `_` and `-`, at most 64. */
  readonly name: string;
  /** What they log in with; 8 characters at least. */
  readonly password: string;
  /** Whether they may change what concerns everybody. */
  readonly admin?: boolean;
  /** Whether a removed user of this name comes back, with the sessions that are still stored. */
  readonly restore?: boolean;
}

/** An agent that a session can have. */
export interface AgentOffer {
  /** Its name. */
  readonly name: string;
  /** `provider/model`: the one of a session that names none, then those that stand in for it. */
  readonly models: readonly string[];
}

/** A person's decision. */
export interface AnswerPermission {
  /** The id of one offered option. */
  readonly option: string;
  /** The request's digest, recited. */
  readonly digest: string;
  /** Words for the model. */
  readonly note?: string | null;
}

/** A person's answers, to all items at once. */
export interface AnswerQuestion {
  /**
   * Item id to what was chosen: ids of its options, and own words where it takes them. None at all
   * leaves the whole question to the agent.
   */
  readonly answers: Readonly<Record<string, readonly string[]>>;
}

/** A sound. */
export interface AudioArtifact {
  readonly kind: "audio";
  /** Why there is no result; with it the other fields mean nothing. */
  readonly error_code?: string | null;
  /** The content hash of its bytes. */
  readonly file: string;
  /** Its length in milliseconds. */
  readonly duration_ms: number;
}

/** One tool call. */
export interface CallView {
  /** Its id. */
  readonly call: string;
  /** The tool's name. */
  readonly tool: string;
  /** One line. */
  readonly title: string;
  /** What kind of thing it does. */
  readonly effect: string;
  /** JSON text as the model wrote it; of a long one the ends, with a mark (C1.10). */
  readonly arguments: string;
  /** `pending`, `in_progress`, `completed`, `failed`, `denied`, `cancelled` or `unknown`. */
  readonly status: string;
  /** What it would do. */
  readonly preview: Preview | null;
  /** The turn it belongs to. */
  readonly turn: string | null;
  /** RFC 3339 time of its start. */
  readonly started: string | null;
  /** The last progress line, while it runs. */
  readonly progress: string | null;
  /** How far it is, from 0 to 1, while it runs; `None` when unknown. */
  readonly fraction: number | null;
  /** The tail of its output, while it runs. */
  readonly output: string;
  /** Code points of the output that `output` no longer holds. */
  readonly output_at: number;
  /** What the model was told. */
  readonly content: readonly ResultBlock[];
  /** Whether it was told as an error. */
  readonly is_error: boolean;
  /** Milliseconds it took. */
  readonly duration_ms: number;
  /** What it made or found. */
  readonly artifacts: readonly Artifact[];
  /** Files it changed, with the heads of their diffs. */
  readonly changes: readonly FileChange[];
  /** Whether it changed more files than these. */
  readonly changes_truncated: boolean;
  /** How its permission request was resolved. */
  readonly decision: Decision | null;
  /** When a client must have answered it, RFC 3339; `None` for what the server runs itself. */
  readonly expires_at: string | null;
  /** The client that took it. */
  readonly claimed_by: string | null;
  /** The content hash of the whole arguments, when they are too long for an event. */
  readonly arguments_file: string | null;
  /** Content hashes of files it left, its whole output among them when that is long. */
  readonly files: readonly string[];
  /** The session of the sub-agent that does it: what a link leads to (D5). */
  readonly child: string | null;
}

/** What this server offers a client. */
export interface Capabilities {
  /** Its version. */
  readonly server_version: string;
  /** The contract's major version. */
  readonly contract: string;
  /**
   * The parts of the contract that are served. `auth` is missing where another program says who is
   * who, `model` where no keys are kept, and `push` where its library is not installed; `me`,
   * `get_usage` and `note_presence` are there all the same.
   */
  readonly areas: readonly string[];
  /** The agents; the first one is that of a session that names none. */
  readonly agents: readonly AgentOffer[];
  /** The modes that a session can have. */
  readonly modes: readonly string[];
  /** What a client must keep to. */
  readonly limits: ClientLimits;
}

/** A new password. It ends the user's logins, except the one that asks. */
export interface ChangePassword {
  /** The new one; 8 characters at least. */
  readonly password: string;
  /** The old one; needed to change one's own. */
  readonly old?: string | null;
  /** Whether the user's devices and programs are let go as well. */
  readonly everywhere?: boolean;
}

/** How a provider is to be reached; what is left out stays. Its `repr` shows no key. */
export interface ChangeProvider {
  /** The key to ask with first. */
  readonly key?: string | null;
  /**
   * All keys that stand in for it, in order; an empty list removes them. One that is kept may be
   * written as `ProviderInfo` shows it.
   */
  readonly backup_keys?: readonly string[] | null;
  /** Another address, as people paste it; empty for its own one. */
  readonly base_url?: string | null;
  /** A PEM file on the server to trust for it; empty for none. */
  readonly ca_file?: string | null;
}

/** A turn that files can go back to before. */
export interface Checkpoint {
  /** The turn. */
  readonly turn: string;
  /** RFC 3339 time of its first change. */
  readonly time: string;
  /** Paths that it changed and that were not put back since. */
  readonly files: number;
  /** What it did that cannot be undone, such as what commands did, a sentence each. */
  readonly unkept?: readonly string[];
}

/** One page, newest first. */
export interface CheckpointList {
  /** The turns; those that left all files alone are none. */
  readonly checkpoints: readonly Checkpoint[];
  /** `after` for the next page; `None` at the end. */
  readonly next?: string | null;
}

/** A one-time code, to be turned into a token. */
export interface Claim {
  /** The code as it was shown; case and dashes do not matter. */
  readonly code: string;
  /** Whether the token is also set as a cookie, for browsers. */
  readonly cookie?: boolean;
  /** What the device calls itself. */
  readonly name?: string;
}

/** A client is about to run a call. */
export interface ClaimCall {
  /** How the client names itself. */
  readonly reader: string;
}

/** A code that was accepted. */
export interface Claimed {
  /** The device's token; `None` when it was set as a cookie. */
  readonly token?: string | null;
  /** Who one is now. */
  readonly user: string;
}

/** A call that belongs to one client now. */
export interface ClientCall {
  /** The call. */
  readonly call: string;
  /** The tool's name. */
  readonly tool: string;
  /** JSON text that fits the tool's parameters. */
  readonly arguments: string;
  /** The client that has it. */
  readonly by: string;
  /** When its result must be there, RFC 3339 server time. */
  readonly expires_at: string;
}

/** A client took a call. */
export interface ClientCallClaimed {
  readonly type: "client_call_claimed";
  /** The call. */
  readonly call: string;
  /** Who. */
  readonly by: string;
}

/** The result is kept. */
export interface ClientCallEnded {
  /** The call. */
  readonly call: string;
  /** `completed` or `failed`. */
  readonly status: string;
}

/** A call waits for a client; the same call again replaces the offer. */
export interface ClientCallOffered {
  readonly type: "client_call_offered";
  /** The call. */
  readonly call: string;
  /** RFC 3339 server time. */
  readonly expires_at: string;
  /** The client that has it already and is to go on; `None` for all that declared the tool. */
  readonly to?: string | null;
}

/** Bounds that a client must keep to (C6). */
export interface ClientLimits {
  /** Bytes of an ordinary body. */
  readonly body_bytes: number;
  /** Bytes of a body that carries what a person sends. */
  readonly large_body_bytes: number;
  /** Blocks of a prompt. */
  readonly prompt_blocks: number;
  /** Bytes of a prompt's blocks as JSON. */
  readonly prompt_bytes: number;
  /** Prompts that may wait in a session. */
  readonly inbox_prompts: number;
  /** Sessions of a user that may run, wait for a person or be read at once. */
  readonly live_sessions: number;
  /** Readers of one session. */
  readonly session_readers: number;
  /** The most seconds that `towline-timeout` takes. */
  readonly timeout_s: number;
}

/** A tool that runs in a client: a phone, an app, an editor (C5.12). */
export interface ClientTool {
  /** Letters, digits, `_` and `-`; 64 at most. */
  readonly name: string;
  /** What it does and when to use it, for the model. */
  readonly description: string;
  /** JSON Schema of the arguments, an object. */
  readonly parameters: Readonly<Record<string, unknown>>;
  /** `read`, `write`, `exec` or `network`; counts only if the agent trusts its clients. */
  readonly effect?: string;
  /** Whether running it twice is harmless, so that a second client may. */
  readonly idempotent?: boolean;
  /** Seconds from the offer to the deadline, 1 to 600. */
  readonly timeout_s?: number;
}

/** End a session for good; it stays readable. */
export interface CloseSession {
  /** Why, for the log. */
  readonly reason?: string;
}

/** A program that ran. */
export interface CommandArtifact {
  readonly kind: "command";
  /** Why there is no result; with it the other fields mean nothing. */
  readonly error_code?: string | null;
  /** Its command line. */
  readonly command: string;
  /** What it ended with; `None` when it was ended by a limit or a cancel, or still runs. */
  readonly exit_code?: number | null;
  /** The tail of its output. */
  readonly output?: string;
  /** The background job as which it runs on when the call ends; `None` when it has ended. */
  readonly job?: string | null;
}

/** One command behind a slash (A5.77, A5.78). */
export interface CommandInfo {
  /** What is typed behind the slash. */
  readonly name: string;
  /** What it does, as one line. */
  readonly about: string;
  /** What may stand behind it, for people. */
  readonly takes?: string;
  /** `towline`, or whose folder it stands in: `user` or `project`. */
  readonly source?: string;
  /** The operation that a client carries it out by; `None` for what it does by itself. */
  readonly operation?: string | null;
}

/** The commands of a session. */
export interface CommandList {
  /** Ours, then those of the user, then those of the project. */
  readonly commands: readonly CommandInfo[];
  /** Files that are no commands, and why. */
  readonly notices?: readonly string[];
}

/** The transcript was made to fit: exactly what is needed to rebuild it (D6). */
export interface Compacted {
  readonly type: "compacted";
  /** The calls whose results were cut down. */
  readonly cut?: readonly string[];
  /** The last message or prompt that `summary` stands for. */
  readonly upto?: string | null;
  /** What stands for all messages up to `upto`. */
  readonly summary?: string | null;
  /** The size before, by the provider's count. */
  readonly before_tokens: number;
  /** The size after, estimated. */
  readonly after_tokens: number;
  /** Who wrote the summary, as `provider/model`; `None` when nobody was asked. */
  readonly model?: string | null;
  /** What that request used. */
  readonly usage?: Usage | null;
  /** US dollars of it; `None` when unknown. */
  readonly cost?: number | null;
}

/** How full the model's window is. */
export interface Context {
  /** Tokens of the last request and answer. */
  readonly used: number;
  /** Tokens that fit; `None` when unknown. */
  readonly window?: number | null;
}

/** What a new session is made of; all is optional. */
export interface CreateSession {
  /** The name of an agent's spec. */
  readonly agent?: string | null;
  /** `provider/model`. */
  readonly model?: string | null;
  /** A title. */
  readonly title?: string | null;
  /** The folder to work in; must lie in one of the server's roots (D2). */
  readonly cwd?: string | null;
  /**
   * `ask`, `accept_edits`, `auto` or `plan`; `None` for the one that was last chosen for the
   * folder, else the server's (A5.46).
   */
  readonly mode?: string | null;
  /** A first prompt, admitted with the session. */
  readonly prompt?: readonly PromptBlock[] | null;
  /** The client's own key of that prompt. */
  readonly key?: string | null;
  /** Tools that any client of the session may run (C5.12). */
  readonly tools?: readonly ClientTool[];
  /** What to sort it by: at most 16, of at most 64 characters each. */
  readonly labels?: readonly string[];
  /** Bounds of its turns that name none of their own; `None` for the agent's. */
  readonly limits?: Limits | null;
}

/** What a new token is called and how long it works. */
export interface CreateToken {
  /** What it is for, such as the name of a program. */
  readonly name: string;
  /** Seconds that it works; `None` for until it is revoked. */
  readonly lifetime_s?: number | null;
}

/** How a permission request of a call was resolved. */
export interface Decision {
  /** The option's id. */
  readonly option: string;
  /** Who decided. */
  readonly by: string;
  /** Words for the model. */
  readonly note: string | null;
  /** RFC 3339 time. */
  readonly time: string;
}

/** What a client can run, in place of what it declared before. */
export interface DeclareTools {
  /** How the client names itself, as in the `reader` of its event stream. */
  readonly reader: string;
  /** Its tools; none to take them back. */
  readonly tools?: readonly ClientTool[];
}

/** The model of sessions that name none. */
export interface DefaultModel {
  /** `provider/model`; in a wish, left out to let the server choose by what is there. */
  readonly model?: string | null;
}

/** How the last turn ended. */
export interface EndedTurn {
  /** Its id. */
  readonly id: string;
  /** `completed`, `failed` or `cancelled`. */
  readonly outcome: string;
  /** Why a completed turn stopped. */
  readonly stop_reason: string | null;
  /** RFC 3339 time. */
  readonly time: string;
  /** The sum over its requests. */
  readonly usage: Usage;
  /** US dollars; `None` when unknown. */
  readonly cost: number | null;
  /** The first sentence of its answer. */
  readonly summary: string | null;
  /** What went wrong. */
  readonly fault: Fault | null;
}

/** An event with where and when (C1.2). */
export interface Envelope {
  /** The event's number: 1, 2, 3 … without holes; `None` for a delta (C1.3, C1.5). */
  readonly seq?: number | null;
  /** The session. */
  readonly session: string;
  /** The turn it happened in; `None` outside turns. */
  readonly turn?: string | null;
  /** RFC 3339 UTC with milliseconds, the server's clock. */
  readonly time: string;
  /** What happened. */
  readonly event: Event;
}

/** The turn goes on with another model. */
export interface Fallback {
  readonly type: "fallback";
  /** The model that failed. */
  readonly from: string;
  /** The model that takes over. */
  readonly to: string;
  /** Why. */
  readonly fault: Fault;
}

/** An error as data. The same shape stands in events, views and problem answers (C2.2). */
export interface Fault {
  /** One of `FAULT_CODES`, or `provider_<kind>`; an open string for readers. */
  readonly code: string;
  /** English sentences: what was wrong, then what to do next. Never holds a secret. */
  readonly message: string;
  /** `none`, `same_request` or `refresh`. */
  readonly retry?: string;
  /** Seconds until a retry can help; `None` when unknown. */
  readonly retry_after_s?: number | null;
  /**
   * Whose limit or part it was: `turn`, `plan`, `limit`, `store`, `client.auth` or `client.outbox`.
   */
  readonly scope?: string | null;
  /** A finer word out of an open list, for display (C2.2). */
  readonly reason?: string | null;
  /** Extra facts a program can act on, such as `suggested_model`. */
  readonly details?: Readonly<Record<string, unknown>> | null;
}

/** A document (A1.5). */
export interface File {
  readonly type: "file";
  /** The name it came with. */
  readonly name: string;
  /** Such as `application/pdf`. */
  readonly media_type: string;
  /** Base 64; only on the way to and from a provider. */
  readonly data?: string | null;
  /** The content hash under which the bytes are kept. */
  readonly file?: string | null;
  /** Where it stands in the session's folder, of a file that a prompt mentions (A5.79). */
  readonly path?: string | null;
  /** The lines of it that are meant, such as `3-9`; `None` for all of them. */
  readonly lines?: string | null;
  /** Whether somebody marked these lines in an editor. */
  readonly selection?: boolean;
}

/** One file that a call changed. */
export interface FileChange {
  /** Relative to the root. */
  readonly path: string;
  /** `created`, `changed`, `deleted` or `moved`; of a folder, with all that is in it. */
  readonly kind: string;
  /** Where it stood before it was moved. */
  readonly source?: string | null;
  /** Content hash before; `None` for folders and links too. */
  readonly before?: string | null;
  /** Content hash after; `None` for folders and links too. */
  readonly after?: string | null;
  /** Permission bits before, if they changed. */
  readonly before_mode?: number | null;
  /** Permission bits after, if they changed. */
  readonly after_mode?: number | null;
  /** Unified diff; `None` for what is no text. */
  readonly diff?: string | null;
  /** Whether `diff` is only the head of it. */
  readonly truncated?: boolean;
}

/** A path that somebody changed after the agent did: it is left alone (A5.75). */
export interface FileConflict {
  /** Relative to the root. */
  readonly path: string;
  /** What happened to it, for people. */
  readonly what: string;
}

/** A file that is kept. */
export interface FileInfo {
  /** The hash of its bytes: SHA-256 in hex. `Image.file` and `File.file` name it. */
  readonly file: string;
  /** What the bytes are, as they show it themselves. */
  readonly media_type: string;
  /** Their number. */
  readonly size: number;
  /** What it was called; may be empty. */
  readonly name?: string;
}

/** A call changed files. */
export interface FilesChanged {
  readonly type: "files_changed";
  /** The call. */
  readonly call: string;
  /** What changed. */
  readonly changes: readonly FileChange[];
}

/** Files were put back to what they were before a turn; the conversation is as it was. */
export interface FilesReverted {
  readonly type: "files_reverted";
  /** The first turn that is undone. */
  readonly turn: string;
  /** The paths that were put back, or went. */
  readonly files?: readonly string[];
  /** The paths that were left alone, for somebody has changed them since. */
  readonly conflicts?: readonly FileConflict[];
  /** What could not be undone, such as what commands did, a sentence each (A5.74). */
  readonly unkept?: readonly string[];
}

/** The way back from the consent. Its `repr` shows no code. */
export interface FinishSignIn {
  /** Where the browser ended, pasted; left out when it ran on the server's own machine. */
  readonly address?: string | null;
}

/** Begin a new session that goes on from a turn of this one. */
export interface ForkSession {
  /** The last turn that the new session has; `None` for the last one that has ended. */
  readonly turn?: string | null;
  /** A title; `None` for the one of this session. */
  readonly title?: string | null;
}

/** The cursor cannot be served: rebuild from the view (C3.5). */
export interface Gap {
  /** The cursor as it came. */
  readonly requested: string;
  /** The number of the last stored event. */
  readonly last: number;
  /** `ahead_of_log`, `malformed`, `too_long` or `other_log`. */
  readonly reason: string;
}

/** The server lives. */
export interface Health {
  /** `ok`; from `ready`, `ready`. */
  readonly status: string;
  /** Its version. */
  readonly server_version: string;
  /** Its process id. */
  readonly pid: number;
}

/** The first frame of every stream (C3.2). */
export interface Hello {
  /** The lineage of this log; another one than before means: rebuild. */
  readonly log: string;
  /** The number of the last stored event. */
  readonly last_seq: number;
  /** The server's clock, RFC 3339, so that countdowns run in server time. */
  readonly now: string;
  /** The version that serves. */
  readonly server_version: string;
  /** The stamp of the web app that this server holds. */
  readonly web_build?: string | null;
}

/** A page of older messages, oldest first (C4.3). */
export interface History {
  /** The messages, and the marks between them. */
  readonly messages?: readonly MessageView[];
  /** Their calls. */
  readonly calls?: readonly CallView[];
  /** What to ask for as `before` to get the page before this one; `None` for none. */
  readonly next?: number | null;
}

/** An HTTP answer. */
export interface HttpArtifact {
  readonly kind: "http";
  /** Why there is no result; with it the other fields mean nothing. */
  readonly error_code?: string | null;
  /** Where it came from at last. */
  readonly url: string;
  /** The HTTP status. */
  readonly status: number;
  /** Whether its body was cut. */
  readonly truncated?: boolean;
}

/** Who the caller is. */
export interface Identity {
  /** The user's name. */
  readonly user: string;
  /** What the server calls itself. */
  readonly server_name: string;
  /** Whether they may change what concerns everybody. */
  readonly admin?: boolean;
}

/** A picture (A1.4). */
export interface Image {
  readonly type: "image";
  /** Such as `image/png`. */
  readonly media_type: string;
  /** Base 64; only on the way to and from a provider, never in an event (C1.10). */
  readonly data?: string | null;
  /** The content hash under which the bytes are kept. */
  readonly file?: string | null;
}

/** A picture. */
export interface ImageArtifact {
  readonly kind: "image";
  /** Why there is no result; with it the other fields mean nothing. */
  readonly error_code?: string | null;
  /** The content hash of its bytes. */
  readonly file: string;
  /** Such as `image/png`. */
  readonly media_type: string;
}

/** Stop the running turn. */
export interface Interrupt {
  /** Only this turn; `None` for whichever runs. */
  readonly turn?: string | null;
  /** Why, for the log. */
  readonly reason?: string;
}

/** What was stopped. */
export interface Interrupted {
  /** The turn that is stopping; `None` when none was running. */
  readonly turn?: string | null;
}

/** What became of one key, or of the sign-in. */
export interface KeyTest {
  /** Its last four characters, or `sign-in`. */
  readonly key: string;
  /** Where it is, as in `ProviderInfo.found`. */
  readonly found: string;
  /** Whether it works, as far as can be told. */
  readonly works: boolean;
  /** One sentence. */
  readonly message: string;
}

/** The bounds of one turn; what is `None` is not bounded (A4.8). */
export interface Limits {
  /** Provider requests, hand-over not counted (A4.2). */
  readonly max_steps?: number;
  /** Input and output tokens of all requests together. */
  readonly max_tokens?: number | null;
  /** US dollars; counts only where prices are known. */
  readonly max_cost?: number | null;
  /** Seconds from the turn's start. */
  readonly wall_s?: number | null;
}

/** How the built-in model stands, which is fetched once and runs on the server's machine. */
export interface LocalModelState {
  /**
   * `off` (nobody has asked for it), `fetching`, `loading`, `ready`, `reading`, `writing` or
   * `failed`.
   */
  readonly state: string;
  /** While it is fetched: the bytes that are there. */
  readonly done_bytes?: number;
  /** While it is fetched: the bytes of all of it. */
  readonly total_bytes?: number;
  /** While it is fetched: where from. */
  readonly source?: string;
  /** Why it failed and what to do; or what the fetch has to say. */
  readonly message?: string | null;
  /** While it reads: how much of the prompt it has read; left out when that is not known. */
  readonly percent?: number | null;
  /** While it writes: tokens in a second; left out when that is not known. */
  readonly tokens_s?: number | null;
}

/** A password that was right. */
export interface LoggedIn {
  /** The token; `None` when it was set as a cookie. */
  readonly token?: string | null;
  /** Who one is now. */
  readonly user: string;
  /** RFC 3339 time at which the token ends. */
  readonly expires_at: string;
}

/** A name and a password, to be turned into a token of 24 hours. */
export interface Login {
  /** The password. */
  readonly password: string;
  /** The user's name; case does not matter. */
  readonly user?: string;
  /** Whether the token is set as a cookie instead, for browsers. */
  readonly cookie?: boolean;
  /** What the device calls itself. */
  readonly name?: string;
}

/** The contract as data: what this server can be asked. */
export interface Manifest {
  /** The contract's major version, as in the header `towline-contract`. */
  readonly contract: string;
  /** The SHA-256 of the OpenAPI document, in hex: another one means another contract. */
  readonly schema_sha256: string;
  /** Every operation. */
  readonly operations: readonly ManifestRow[];
}

/** One operation of the contract. */
export interface ManifestRow {
  /** What the client's call is named. */
  readonly name: string;
  /** The part of the table that it belongs to. */
  readonly area: string;
  /** The HTTP method. */
  readonly method: string;
  /** The path, parameters in braces. */
  readonly path: string;
  /** What it does, in one sentence. */
  readonly summary: string;
  /** The schema of its body in `/openapi.json`; `None` for none. */
  readonly request?: string | null;
  /** The schema of its answer there; `None` for none, for a stream and for `media`. */
  readonly answer?: string | null;
  /** The status of success. */
  readonly status: number;
  /** The query parameters that it reads. */
  readonly query?: readonly string[];
  /** Every fault code that it may answer. */
  readonly faults?: readonly string[];
  /** Whether it takes an `Idempotency-Key`. */
  readonly idempotent?: boolean;
  /** Whether its answer is an event stream. */
  readonly stream?: boolean;
  /** Whether it answers without a credential. */
  readonly open?: boolean;
  /** Whether only an admin may call it. */
  readonly admin?: boolean;
  /** Whether its body may be as large as what a person sends. */
  readonly large?: boolean;
  /** The content type of an answer that no schema describes. */
  readonly media?: string | null;
}

/** A quiet line between messages. */
export interface Mark {
  /**
   * `turn_failed`, `turn_cancelled`, `turn_limited`, `compacted`, `reverted`, `files_reverted`,
   * `fallback` or `closed`.
   */
  readonly kind: string;
  /**
   * Words for it, when there are any; for `reverted` and `files_reverted` the first turn that is
   * undone.
   */
  readonly text: string;
  /** What went wrong, for `turn_failed` and `fallback`. */
  readonly fault: Fault | null;
  /** The paths that were put back, for `reverted` and `files_reverted`. */
  readonly files: readonly string[];
  /** What could not be put back, for `reverted` and `files_reverted`. */
  readonly not_reverted: readonly string[];
  /** The size of what the model sees, before, for `compacted`. */
  readonly before_tokens: number | null;
  /** The same, after; an estimate. */
  readonly after_tokens: number | null;
}

/** How far a person has read. */
export interface MarkRead {
  /** The number of the last event they have seen. */
  readonly seq: number;
}

/** An open message is given up; it counts for nothing. */
export interface MessageDiscarded {
  readonly type: "message_discarded";
  /** Its id. */
  readonly message: string;
  /** Why. */
  readonly reason: string;
}

/** The message is whole: this is the truth about it (C1.8). */
export interface MessageEnded {
  readonly type: "message_ended";
  /** Its id. */
  readonly message: string;
  /** All of it. */
  readonly content: readonly Block[];
  /** Why it is not whole, such as `cancelled`; `None` when it is (A4.24). */
  readonly cut?: string | null;
}

/** A message is being written. */
export interface MessageStarted {
  readonly type: "message_started";
  /** Its id. */
  readonly message: string;
  /** `assistant`. */
  readonly role: string;
}

/** One finished entry of the conversation. */
export interface MessageView {
  /** The number of the event that finished it: its key and its place. */
  readonly seq: number;
  /** `user`, `assistant` or `mark`. */
  readonly role: string;
  /** The prompt's or the message's id. */
  readonly id: string | null;
  /** The turn it belongs to. */
  readonly turn: string | null;
  /** RFC 3339 time of that event. */
  readonly time: string;
  /** Its blocks; a tool call's card is found in `calls` by the call's id. */
  readonly content: readonly Block[];
  /** Why it is not whole. */
  readonly cut: string | null;
  /** The client's key of a prompt. */
  readonly key: string | null;
  /** What a mark says. */
  readonly mark: Mark | null;
  /**
   * Whether the conversation went back to before it: the model no longer sees it. A screen shows it
   * grey, or not at all.
   */
  readonly undone: boolean;
}

/** One model, and what is known of it; what is left out nobody knows. */
export interface ModelInfo {
  /** `provider/model`. */
  readonly model: string;
  /** Whether its provider has just said that it offers it. */
  readonly live?: boolean;
  /** Tokens that fit, answer included. */
  readonly window?: number | null;
  /** The most tokens of one answer. */
  readonly output_cap?: number | null;
  /** How it thinks: `none`, `budget`, `adaptive` or `effort`; empty when unknown. */
  readonly thinking?: string;
  /** Controls that it refuses, such as `temperature`. */
  readonly refuses?: readonly string[];
  /** Whether it is cheap and quick. */
  readonly fast?: boolean;
  /** Whether it sees pictures. */
  readonly images?: boolean | null;
  /** US dollars for a million input tokens. */
  readonly price_input?: number | null;
  /** US dollars for a million output tokens. */
  readonly price_output?: number | null;
  /** US dollars for a million tokens out of the cache; left out for the price of input. */
  readonly price_cache_read?: number | null;
  /** US dollars for a million tokens into the cache; left out for the price of input. */
  readonly price_cache_write?: number | null;
  /** From so many input tokens on a request costs more than these prices say. */
  readonly dearer_from?: number | null;
}

/** The models of every provider that can be asked. */
export interface ModelList {
  /** The one of new sessions. */
  readonly default: string;
  /** By provider, in the order in which these would be taken. */
  readonly models: readonly ModelInfo[];
  /** By provider: why it could not be asked just now; then its known models stand in the list. */
  readonly faults: Readonly<Record<string, Fault>>;
  /** The day of the prices, `YYYY-MM-DD`. */
  readonly prices_date?: string;
}

/** A token that was just made. */
export interface NewToken {
  /** Names it in lists; no secret. */
  readonly id: string;
  /** The token itself. It is told this once and can never be read again. */
  readonly token: string;
  /** What it is for. */
  readonly name: string;
  /** RFC 3339 time at which it ends; `None` for never. */
  readonly expires_at?: string | null;
}

/** Whether a person looks at a client: it counts for 45 s (C5.16). */
export interface NotePresence {
  /** What tells the client from the user's other ones: up to 64 characters of its own choice. */
  readonly client: string;
  /** Whether its screen is seen right now; `false` ends it at once. */
  readonly visible?: boolean;
}

/** Something worth a line, that ends nothing. */
export interface Notice {
  readonly type: "notice";
  /** A word for programs. */
  readonly code: string;
  /** A sentence for people. */
  readonly message: string;
  /** `turn` or `session`. */
  readonly scope?: string;
}

/** A quiet line that ends nothing and is no entry of the conversation. */
export interface NoticeView {
  /** The number of its event: it stands behind the last entry with a lower one. */
  readonly seq: number;
  /** A word for programs. */
  readonly code: string;
  /** A sentence for people. */
  readonly message: string;
  /** `turn` or `session`. */
  readonly scope: string;
}

/** A vendor's own block, replayed unchanged and in its place (A1.8). */
export interface Opaque {
  readonly type: "opaque";
  /** The dialect that understands it. */
  readonly dialect: string;
  /** The block as it came; private, so `None` outside the server. */
  readonly raw?: unknown;
}

/** A message that is still being written. */
export interface OpenMessage {
  /** Its id. */
  readonly id: string;
  /** The turn it belongs to. */
  readonly turn: string | null;
  /** RFC 3339 time of its start. */
  readonly time: string;
  /** Its blocks so far; a call's arguments may end anywhere. */
  readonly content: readonly Block[];
}

/** One answer a person may give (A5.56). */
export interface Option {
  /** `allow_once`, `allow_session`, `allow_always` or `deny`. */
  readonly id: string;
  /** What a button says. */
  readonly label: string;
  /** The rule that this answer stores; `None` when it stores none. */
  readonly rule?: string | null;
}

/** A prompt that this client has sent and that the log does not show yet. */
export interface OutgoingPrompt {
  /** The client's key: how it is found again. */
  readonly key: string;
  /** What the user sent. */
  readonly content: readonly Block[];
  /** How it asked to run. */
  readonly when: string;
  /** `sending`, `accepted`, `refused` or `unknown`: whether it got through is not known. */
  readonly state: string;
  /** Why it was refused, or what the last try failed with. */
  readonly message: string | null;
  /** RFC 3339 time of the first try, by the client's clock. */
  readonly begun: string;
}

/** A web page that was read. */
export interface PageArtifact {
  readonly kind: "page";
  /** Why there is no result; with it the other fields mean nothing. */
  readonly error_code?: string | null;
  /** Where it came from at last. */
  readonly url: string;
  /** The HTTP status. */
  readonly status: number;
  /** Whether its text was cut. */
  readonly truncated?: boolean;
}

/** A new one-time code. */
export interface Pairing {
  /** 8 characters; works once. */
  readonly code: string;
  /** The page with the code in its fragment, at an address that other devices reach. */
  readonly url: string;
  /** An SVG picture of `url`, for a camera. */
  readonly qr?: string;
  /** RFC 3339 time. */
  readonly expires_at: string;
}

/** What a sub-agent's session works for (D5). */
export interface Parent {
  /** The session of the agent that asked for it. */
  readonly session: string;
  /** That agent's call. */
  readonly call: string;
}

/**
 * All that is there so far of one open message or of one running call (C1.6). Either `message` and
 * `content`, or `call` and the rest.
 */
export interface Partial {
  /** The open message. */
  readonly message?: string | null;
  /** Its blocks so far; a call's arguments may end anywhere. */
  readonly content?: readonly Block[];
  /** The running call. */
  readonly call?: string | null;
  /** Code points of the call's output before `output`. */
  readonly at?: number;
  /** The tail of the call's output. */
  readonly output?: string;
  /** The call's last progress line. */
  readonly progress?: string | null;
  /** How far the call is, from 0 to 1; `None` when unknown. */
  readonly fraction?: number | null;
}

/** Paths that somebody may mean (A5.81). */
export interface PathList {
  /** Relative to the session's folder, the best first; a folder ends with `/`. */
  readonly paths: readonly string[];
  /** Whether the folder holds more than was looked through. */
  readonly truncated?: boolean;
}

/** The decision stands. */
export interface PermissionAnswered {
  /** The option that was taken. */
  readonly option: string;
}

/** A call waits for a person. The same id again replaces the request (C5.8). */
export interface PermissionRequested {
  readonly type: "permission_requested";
  /** Its id. */
  readonly permission: string;
  /** The call that waits. */
  readonly call: string;
  /** The tool's name. */
  readonly tool: string;
  /** One line for a person. */
  readonly title: string;
  /** What would happen. */
  readonly preview: Preview;
  /** Binds the answer to exactly this call; recited with it (C5.11). */
  readonly digest: string;
  /** What may be answered. */
  readonly options: readonly Option[];
  /** What made the gate ask (A5.69). */
  readonly reason?: string | null;
  /** RFC 3339 server time; then it is denied. */
  readonly expires_at: string;
}

/** A request was answered, once, for all devices. */
export interface PermissionResolved {
  readonly type: "permission_resolved";
  /** Its id. */
  readonly permission: string;
  /** The option's id. */
  readonly option: string;
  /** Who answered, or `deadline`, `cancel`. */
  readonly by: string;
  /** Words for the model. */
  readonly note?: string | null;
}

/** What a person sees before a call runs (A5.59). */
export interface Preview {
  /** `command`, `diff`, `url` or `text`. */
  readonly kind: string;
  /** The whole of it. */
  readonly text: string;
  /** Whether something is missing; then it must not be approved (W07). */
  readonly truncated?: boolean;
}

/** An error answer: RFC 9457 with our members (C2.2). */
export interface Problem {
  /** Always `about:blank`: `code` says more. */
  readonly type?: string;
  /** The code in words. */
  readonly title: string;
  /** The HTTP status. */
  readonly status: number;
  /** What was wrong, then what to do next. */
  readonly detail: string;
  /** One of `FAULT_CODES`. */
  readonly code: string;
  /** `none`, `same_request` or `refresh`. */
  readonly retry: string;
  /** Seconds until a retry can help. */
  readonly retry_after_s?: number | null;
  /** Whose limit or part it was. */
  readonly scope?: string | null;
  /** A finer word, for display. */
  readonly reason?: string | null;
  /** How the server's log names this request. */
  readonly request_id?: string | null;
  /** Extra facts. */
  readonly details?: Readonly<Record<string, unknown>> | null;
}

/** A program that runs for a call (C5.6). */
export interface Process {
  /** Its process id. */
  readonly pid: number;
  /** Its process group. */
  readonly group: number;
  /** Its start time as the system tells it: how a reused pid is told apart. */
  readonly started: string;
}

/** The prompt is durable. */
export interface PromptAccepted {
  /** Its id. */
  readonly prompt: string;
  /** The turn it starts or steers, when that is known already. */
  readonly turn?: string | null;
  /** Prompts ahead of it. */
  readonly position?: number;
  /** Where it went. */
  readonly session: string;
}

/** A prompt is durable; it runs later. */
export interface PromptAdmitted {
  readonly type: "prompt_admitted";
  /** Its id. */
  readonly prompt: string;
  /** What the user sent. */
  readonly content: readonly Block[];
  /** `auto`, `queue`, `steer` or `reject`, as asked. */
  readonly when: string;
  /** The client's own key of the prompt: how it finds its message again. */
  readonly key?: string | null;
  /** Prompts ahead of it. */
  readonly position?: number;
  /** Bounds of the turn that it will start; `None` for the agent's own. */
  readonly limits?: Limits | null;
  /** Whether the turn that it starts should say what to read aloud (A4.30). */
  readonly speak?: boolean;
}

/** A prompt reached the model's side of the line. */
export interface PromptDelivered {
  readonly type: "prompt_delivered";
  /** Its id. */
  readonly prompt: string;
  /** The turn it went into. */
  readonly turn: string;
  /** `started` or `steered`. */
  readonly how: string;
}

/** A prompt that waited was taken back. */
export interface PromptWithdrawn {
  readonly type: "prompt_withdrawn";
  /** Its id. */
  readonly prompt: string;
}

/** One provider, and how it is reached. Holds no secret. */
export interface ProviderInfo {
  /** The first part of `provider/model`. */
  readonly provider: string;
  /** Its name for people. */
  readonly title: string;
  /**
   * `ready`, `keyless` (it needs no key; a test says whether it answers), `missing` (a key or an
   * address is) or `unreadable` (what is kept cannot be read now).
   */
  readonly state: string;
  /** Where its credential is: `environment`, `keyring`, `file`, or `sign_in` where that is all. */
  readonly found?: string | null;
  /** The environment variable that holds it. */
  readonly setting?: string | null;
  /** The last four characters of the key that is asked with first. */
  readonly key?: string | null;
  /** The last four characters of each key that stands in for it, in order. */
  readonly backup_keys?: readonly string[];
  /** Whether a sign-in is kept. */
  readonly signed_in?: boolean;
  /** Whether it has a sign-in. */
  readonly can_sign_in?: boolean;
  /** Whether a sign-in waits for a person's consent. */
  readonly signing_in?: boolean;
  /** Where it is asked; empty when nobody has said. */
  readonly base_url?: string;
  /** Whether that is another address than its own. */
  readonly own_url?: boolean;
  /** Whether another address can be set. */
  readonly can_move?: boolean;
  /** A PEM file on the server that is trusted for it besides the system's. */
  readonly ca_file?: string | null;
  /** Its usual model, as `provider/model`. */
  readonly model?: string | null;
  /** What is wrong, and what to do next. */
  readonly problem?: string | null;
}

/** All providers that are known, the usable ones first. */
export interface ProviderList {
  /** One row each. */
  readonly providers: readonly ProviderInfo[];
}

/** What a provider said when it was asked for its models. */
export interface ProviderTest {
  /** Who was asked. */
  readonly provider: string;
  /** What it offers, by its own names. */
  readonly models?: readonly string[];
  /** Each key by itself, the sign-in at the end. */
  readonly keys?: readonly KeyTest[];
  /** Why it cannot be used; left out when it can. */
  readonly fault?: Fault | null;
}

/** What a browser gives to encrypt for it alone. */
export interface PushKeys {
  /** Its public key, base64url. */
  readonly p256dh: string;
  /** Its secret, base64url. */
  readonly auth: string;
}

/** What a browser needs to subscribe. */
export interface PushOffer {
  /** The server's public key (VAPID), base64url: `applicationServerKey`. */
  readonly key: string;
  /** The languages that titles are in. */
  readonly languages: readonly string[];
}

/** What became of one message to one device. */
export interface PushOutcome {
  /** `permission`, `question`, `turn_failed`, `turn_ended` or `test`. */
  readonly kind: string;
  /**
   * `delivered` when the push service took it; `failed`; `gone` when it knows the subscription no
   * more, which removed it.
   */
  readonly outcome: string;
  /** The push service's HTTP status; `None` when there was no answer. */
  readonly status?: number | null;
  /** Why it failed. */
  readonly message?: string;
  /** The session it told of. */
  readonly session?: string | null;
  /** RFC 3339 time. */
  readonly time: string;
}

/** One device that is called. */
export interface PushSubscription {
  /** Names it in the table's paths. */
  readonly id: string;
  /** The host of its push service. */
  readonly service: string;
  /** The SHA-256 of its endpoint, in hex: how a browser finds its own. */
  readonly endpoint_sha256: string;
  /** The language of titles. */
  readonly language: string;
  /** What the device calls itself. */
  readonly name: string;
  /** RFC 3339 time. */
  readonly created: string;
  /** What became of the last message; `None` before the first one. */
  readonly last?: PushOutcome | null;
}

/** The devices of the caller that are called. */
export interface PushSubscriptionList {
  /** The oldest first. */
  readonly subscriptions: readonly PushSubscription[];
}

/** The answers stand. */
export interface QuestionAnswered {
  /** The answers that were taken, by item id. */
  readonly answers: Readonly<Record<string, readonly string[]>>;
}

/** The agent asks the person. The same id again replaces the question. */
export interface QuestionAsked {
  readonly type: "question_asked";
  /** Its id. */
  readonly question: string;
  /** What is asked. */
  readonly items: readonly QuestionItem[];
  /** RFC 3339 server time; `None` while somebody is attached. */
  readonly expires_at?: string | null;
}

/** One question of a set. */
export interface QuestionItem {
  /** Its id within the set. */
  readonly id: string;
  /** What is asked. */
  readonly prompt: string;
  /** What may be chosen. */
  readonly options?: readonly Option[];
  /** Whether several may be chosen. */
  readonly multiple?: boolean;
  /** Whether own words may be given. */
  readonly free_text?: boolean;
}

/** The question was answered, once. */
export interface QuestionResolved {
  readonly type: "question_resolved";
  /** Its id. */
  readonly question: string;
  /** Answers by item id. */
  readonly answers: Readonly<Record<string, readonly string[]>>;
  /** Who answered, or `deadline`, `cancel`. */
  readonly by: string;
}

/** What waited runs again. */
export interface QueueResumed {
  /** Prompts that wait. */
  readonly queued: number;
}

/** A prompt that waits. */
export interface QueuedPrompt {
  /** Its id. */
  readonly prompt: string;
  /** What the user sent. */
  readonly content: readonly Block[];
  /** How it asked to run. */
  readonly when: string;
  /** The client's key. */
  readonly key: string | null;
  /** RFC 3339 time of its admission. */
  readonly time: string;
}

/** Where the mark stands; it never goes back. */
export interface ReadMark {
  /** The number of an event; 0 when nothing is read. */
  readonly seq: number;
}

/** How far a call is; shown, never stored. */
export interface ReportProgress {
  /** The client that has the call. */
  readonly reader: string;
  /** One line. */
  readonly text: string;
  /** From 0 to 1; `None` when unknown. */
  readonly fraction?: number | null;
}

/** What waits for a person, what ends first before the rest. */
export interface RequestList {
  /** The open requests, 200 at most; those without a deadline come last. */
  readonly requests: readonly RequestRow[];
}

/** One thing that waits for a person or a client of theirs, in one of their sessions. */
export interface RequestRow {
  /** Where it waits. */
  readonly session: string;
  /** That session's title. */
  readonly title?: string | null;
  /** `permission`, `question` or `call`: which of the following is there. */
  readonly kind: string;
  /** What shall be allowed. */
  readonly permission?: PermissionRequested | null;
  /** What is asked. */
  readonly question?: QuestionAsked | null;
  /** What a client shall run, or runs. */
  readonly call?: CallView | null;
}

/** Undo a turn, with all after it, and say something else in its place. */
export interface Resend {
  /** 1 to 64 blocks. */
  readonly content: readonly PromptBlock[];
  /** Bounds of the turn; `None` for the agent's own. */
  readonly limits?: Limits | null;
  /** Whether the turn's end should say what to read aloud (A4.30). */
  readonly speak?: boolean;
}

/** The server is about to close this stream on purpose (C3.6). */
export interface Reset {
  /** Milliseconds to wait before the next connection; jitter is in it. */
  readonly retry_ms: number;
}

/** Put files back to what they were before a turn, this one and all later ones undone. */
export interface RevertTurn {
  /** Whether to put back the others when somebody has changed some since; else nothing is. */
  readonly skip_conflicts?: boolean;
  /** Whether the conversation goes back as well. */
  readonly conversation?: boolean;
}

/** The conversation went back to before a turn. */
export interface Reverted {
  readonly type: "reverted";
  /** The first turn that is undone. */
  readonly to_turn: string;
  /** The paths that were put back. */
  readonly files?: readonly string[];
  /** What could not be put back. */
  readonly not_reverted?: readonly string[];
}

/** Ask for what a command says, as a prompt. */
export interface RunCommand {
  /** What was written behind its name. */
  readonly arguments?: string;
  /** As in `send_prompt`. */
  readonly when?: string;
  /** Bounds of the turn; `None` for the session's. */
  readonly limits?: Limits | null;
}

/** What a search found. */
export interface SearchArtifact {
  readonly kind: "search";
  /** Why there is no result; with it the other fields mean nothing. */
  readonly error_code?: string | null;
  /** What was searched for. */
  readonly query: string;
  /** The hits, best first; none means no match, not a failure (A5.27). */
  readonly items?: readonly SearchItem[];
  /** Whether there were more. */
  readonly truncated?: boolean;
}

/** One hit of a search. */
export interface SearchItem {
  /** The page's title. */
  readonly title: string;
  /** Where it stands. */
  readonly url: string;
  /** The words round the hit. */
  readonly snippet?: string;
}

/** Something a person says to a session. */
export interface SendPrompt {
  /** 1 to 64 blocks. */
  readonly content: readonly PromptBlock[];
  /** `auto`: start when idle, else queue. `queue`, `steer`, `reject` (C2.11). */
  readonly when?: string;
  /** Bounds of the turn; `None` for the agent's own. */
  readonly limits?: Limits | null;
  /** Whether the turn's end should say what to read aloud (A4.30). */
  readonly speak?: boolean;
}

/** What a call came to. */
export interface SendResult {
  /** The client that has the call. */
  readonly reader: string;
  /** What the model is told; pictures with their bytes as base 64. */
  readonly content?: readonly ClientBlock[];
  /** Whether it is told as an error. */
  readonly is_error?: boolean;
}

/** A row of the list, new or changed (C2.12). */
export interface SessionChanged {
  /** The row as it is now. */
  readonly session: SessionInfo;
}

/** The session takes no more prompts. Only a `session_updated` may follow. */
export interface SessionClosed {
  readonly type: "session_closed";
  /** Why, in one word or sentence. */
  readonly reason: string;
}

/** A session began; always its first event. */
export interface SessionCreated {
  readonly type: "session_created";
  /** The name of the agent's spec. */
  readonly agent: string;
  /** `provider/model`. */
  readonly model: string;
  /** What passes unasked (A5.44). An open word: servers of today offer `ask` and `auto`. */
  readonly mode: string;
  /** A title given at creation. */
  readonly title?: string | null;
  /** The folder the agent works in; `None` for no folder. */
  readonly cwd?: string | null;
  /** The session it was forked from. */
  readonly forked_from?: string | null;
  /** The session and call that a sub-agent works for. */
  readonly parent?: Parent | null;
  /** Tools that any client of the session may run. */
  readonly tools?: readonly ClientTool[];
  /** What people sort it by. */
  readonly labels?: readonly string[];
  /** Bounds of its turns that name none; `None` for the agent's own. */
  readonly limits?: Limits | null;
}

/** The session is gone, its log as well. */
export interface SessionDeleted {
  /** Its id. */
  readonly session: string;
  /** RFC 3339 time: until then its id is told to be gone, after that to be unknown. */
  readonly until: string;
}

/** One row of the session list (C2.10). */
export interface SessionInfo {
  /** Its id. */
  readonly id: string;
  /** The name of its agent's spec. */
  readonly agent: string;
  /** `provider/model`. */
  readonly model: string;
  /** `ask`, `accept_edits`, `auto` or `plan`. */
  readonly mode: string;
  /** Whether a turn runs, something is pending or a reader is attached. */
  readonly live: boolean;
  /** The number of its last stored event. */
  readonly last_seq: number;
  /** The running turn. */
  readonly turn?: string | null;
  /** Open permission requests and questions. */
  readonly pending?: number;
  /** Prompts that wait. */
  readonly queued?: number;
  /** Its title, or the start of its first prompt. */
  readonly title?: string | null;
  /**
   * How the last thing begins that the user or the agent said: one line of at most 120 characters
   * without controls. Empty when nothing was said, and in a feed, which never carries it (C2.12).
   */
  readonly last_line?: string;
  /** The folder it works in. */
  readonly cwd?: string | null;
  /** RFC 3339 time. */
  readonly created: string;
  /** RFC 3339 time of the last stored event. */
  readonly updated: string;
  /** Whether it takes no more prompts. */
  readonly closed?: boolean;
  /** Whether it is put away. */
  readonly archived?: boolean;
  /** What people sort it by. */
  readonly labels?: readonly string[];
  /** Whether its conversation goes on behind `read_seq`. */
  readonly unread?: boolean;
  /** The number of the last event that its user has read, as `mark_read` was told. */
  readonly read_seq?: number;
}

/** Sessions, newest first. */
export interface SessionList {
  /** One page. */
  readonly sessions: readonly SessionInfo[];
  /** The cursor of the next page; `None` on the last one. */
  readonly next?: string | null;
}

/** A session was deleted (C2.12). */
export interface SessionRemoved {
  /** Its id. */
  readonly session: string;
}

/** Where a user's feed begins: the newest sessions, and all that need somebody (C2.12). */
export interface SessionRows {
  /** Their rows, newest first. */
  readonly sessions: readonly SessionInfo[];
}

/** Settings changed; fields that are `None` did not. */
export interface SessionUpdated {
  readonly type: "session_updated";
  /** The new title. */
  readonly title?: string | null;
  /** The new model. */
  readonly model?: string | null;
  /** The new mode. */
  readonly mode?: string | null;
  /** Whether it is put away. */
  readonly archived?: boolean | null;
  /** The new labels, all of them. */
  readonly labels?: readonly string[] | null;
  /** What a client says it can run, from the next turn on. */
  readonly tools?: ToolDeclaration | null;
}

/** A session as a screen shows it; made by `reduce` alone. */
export interface SessionView {
  /** The version of the reducer that made it (D4). */
  readonly reducer: number;
  /** Its id; empty before its first event. */
  readonly session: string;
  /** The last stored event it holds. */
  readonly seq: number;
  /** The name of the agent's spec. */
  readonly agent: string;
  /** `provider/model`. */
  readonly model: string;
  /** What passes unasked. An open word: servers of today offer `ask` and `auto`. */
  readonly mode: string;
  /** Its title: given, or the first 60 characters of its first prompt (D16). */
  readonly title: string | null;
  /** Whether that prompt is longer than the title made of it. */
  readonly title_truncated: boolean;
  /** The folder it works in. */
  readonly cwd: string | null;
  /** What it works for, when it is a sub-agent's. */
  readonly parent: Parent | null;
  /** RFC 3339 time of its first event. */
  readonly created: string;
  /** RFC 3339 time of its last stored event. */
  readonly updated: string;
  /** Whether it is put away. */
  readonly archived: boolean;
  /** What people sort it by. */
  readonly labels: readonly string[];
  /** Why it takes no more prompts. */
  readonly closed: string | null;
  /** The running turn. */
  readonly turn: TurnView | null;
  /** How the turn before ended. */
  readonly last_turn: EndedTurn | null;
  /** What the turn waits for. */
  readonly waiting: Waiting | null;
  /** The last finished entries, 200 at most (D4). */
  readonly messages: readonly MessageView[];
  /** Whether there are entries before these. */
  readonly older: boolean;
  /** Messages that are being written. */
  readonly open_messages: readonly OpenMessage[];
  /** Ended calls of the messages held. */
  readonly calls: readonly CallView[];
  /** Calls that have not ended. */
  readonly open_calls: readonly CallView[];
  /** Open permission requests, oldest first. */
  readonly permissions: readonly PermissionRequested[];
  /** Open questions, oldest first. */
  readonly questions: readonly QuestionAsked[];
  /** Prompts that wait, in order. */
  readonly queue: readonly QueuedPrompt[];
  /** Prompts on their way; only a client knows of them, see `show_outgoing`. */
  readonly outgoing: readonly OutgoingPrompt[];
  /** The agent's plan. */
  readonly todos: readonly Todo[];
  /** The last notices, 20 at most, oldest first. */
  readonly notices: readonly NoticeView[];
  /** Whether there were notices before these. */
  readonly older_notices: boolean;
  /** The sum over all ended turns, and over summaries made between them. */
  readonly usage: Usage;
  /** US dollars of all steps, summaries and sub-agents; `None` once one of them is unknown. */
  readonly cost: number | null;
  /** How full the model's window is. */
  readonly context: Context | null;
  /** The last fault; a turn that completes clears it. */
  readonly fault: Fault | null;
  /** Events of a kind this reader does not know. */
  readonly unknown: number;
  /** Whether something was missed: the view must be fetched anew (C1.5, C4.2). */
  readonly lost: boolean;
}

/** Trust a folder's files as they were seen, or no longer (A5.51). */
export interface SetTrust {
  /** The hash of the files that were seen; `None` to trust the folder no longer. */
  readonly digest?: string | null;
}

/** A sign-in waits for a person's consent. */
export interface SignInStarted {
  /** The page to open. */
  readonly url: string;
  /** RFC 3339 time; then it is given up. */
  readonly expires_at: string;
}

/** What a session would have that begins in a folder now, before there is one. */
export interface StartInfo {
  /** The folder, absolute. */
  readonly folder: string;
  /**
   * The folders that sessions may begin in or below; a session that names none begins in the first.
   */
  readonly roots: readonly string[];
  /** `provider/model` of a session that names none. */
  readonly model: string;
  /**
   * The mode of a session that names none: the one last chosen in this folder, else the server's.
   */
  readonly mode: string;
  /** As in `SuggestionList`. */
  readonly suggestions: readonly string[];
  /** As in `CommandList`. */
  readonly commands: readonly CommandInfo[];
  /** Files that are no commands, and why. */
  readonly notices?: readonly string[];
}

/** Who signs in, with a registration of their own. Its `repr` shows no secret. */
export interface StartSignIn {
  /** The OAuth client; left out to take the server's environment. */
  readonly client_id?: string | null;
  /** Its secret, if it has one. */
  readonly client_secret?: string | null;
  /** The project that requests are counted for. */
  readonly project?: string | null;
}

/** The provider's answer is whole. */
export interface StepEnded {
  readonly type: "step_ended";
  /** Why the model stopped: a stop reason or `tool_calls`. */
  readonly stop_reason: string;
  /** Of this request. */
  readonly usage: Usage;
  /** US dollars; `None` when unknown. */
  readonly cost?: number | null;
  /** How full the window is now. */
  readonly context?: Context | null;
}

/** A request goes to the provider. */
export interface StepStarted {
  readonly type: "step_started";
  /** `provider/model`. */
  readonly model: string;
  /** The try's number within the step, from 1. */
  readonly attempt?: number;
  /** Tokens of requests before it that failed, which no event has told of. */
  readonly failed?: Usage | null;
  /** US dollars for these; `None` when unknown. */
  readonly failed_cost?: number | null;
}

/** A subscription as the browser's `PushSubscription.toJSON()` has it, and a few words. */
export interface SubscribePush {
  /** The address at the browser's push service; the same again replaces what is kept of it. */
  readonly endpoint: string;
  /** The browser's keys. */
  readonly keys: PushKeys;
  /** The language of titles; one that there is none of counts as English. */
  readonly language?: string;
  /** What the device calls itself. */
  readonly name?: string;
}

/** Prompts to begin with. */
export interface SuggestionList {
  /** Words to send as they are, or a command with its slash. */
  readonly suggestions: readonly string[];
}

/** Words, as Markdown. */
export interface Text {
  readonly type: "text";
  /** The words; always whole, never cut by reference (C1.10). */
  readonly text: string;
}

/** More text of an open message. */
export interface TextDelta {
  readonly type: "text_delta";
  /** The message. */
  readonly message: string;
  /** The block's place in it, from 0. */
  readonly block: number;
  /** Code points of the block before this piece. */
  readonly at: number;
  /** The piece. */
  readonly text: string;
}

/** What a model thought before it spoke (A1.3). */
export interface Thinking {
  readonly type: "thinking";
  /** The thought as far as the provider shows it; may be empty. */
  readonly text: string;
  /** The provider's proof that the thought is its own; private (C1.9). */
  readonly signature?: string | null;
  /** The provider hides the words; only the signature is kept. */
  readonly redacted?: boolean;
}

/** More thinking of an open message. */
export interface ThinkingDelta {
  readonly type: "thinking_delta";
  /** The message. */
  readonly message: string;
  /** The block's place in it, from 0. */
  readonly block: number;
  /** Code points of the block before this piece. */
  readonly at: number;
  /** The piece. */
  readonly text: string;
}

/** One line of the agent's plan. */
export interface Todo {
  /** Its id. */
  readonly id: string;
  /** What is to do. */
  readonly content: string;
  /** `pending`, `in_progress` or `completed`. */
  readonly status: string;
}

/** The agent's plan, whole. */
export interface TodosUpdated {
  readonly type: "todos_updated";
  /** All lines. */
  readonly todos: readonly Todo[];
}

/** One credential of a user: a paired device, a login, a token of a program. */
export interface TokenInfo {
  /** Names it; no secret. */
  readonly id: string;
  /** What the device calls itself, or what the token is for. */
  readonly name: string;
  /** How it came to be: `device` (a code), `login` (a password) or `program` (made by name). */
  readonly kind: string;
  /** RFC 3339 time. */
  readonly created: string;
  /** RFC 3339 time, exact to the hour. */
  readonly last_used: string;
  /** RFC 3339 time at which it ends; for a device it moves on with each use. */
  readonly expires_at?: string | null;
  /** Whether the call came with this one. */
  readonly current?: boolean;
}

/** The caller's credentials. */
export interface TokenList {
  /** Oldest first. */
  readonly tokens: readonly TokenInfo[];
}

/** The model asks for a tool (A1.6). */
export interface ToolCall {
  readonly type: "tool_call";
  /** Our own id of the call. */
  readonly id: string;
  /** The tool's name as the model wrote it. */
  readonly name: string;
  /** The JSON text exactly as the model wrote it; may be broken. */
  readonly arguments: string;
  /** The provider's id: may be empty, repeated or reused, so it is never a key; private. */
  readonly wire_id?: string | null;
  /** The provider's proof that belongs to this call; private. */
  readonly signature?: string | null;
}

/** More of a call's arguments, while the model writes them. */
export interface ToolCallDelta {
  readonly type: "tool_call_delta";
  /** The message. */
  readonly message: string;
  /** The block's place in it, from 0. */
  readonly block: number;
  /** Code points of the arguments before this piece. */
  readonly at: number;
  /** The piece. */
  readonly text: string;
}

/** The tools of one client, in place of those that it declared before. */
export interface ToolDeclaration {
  /** How the client names itself. */
  readonly reader: string;
  /** What it can run; none when it takes them back. */
  readonly tools?: readonly ClientTool[];
}

/** What the call came to. */
export interface ToolEnded {
  readonly type: "tool_ended";
  /** The call. */
  readonly call: string;
  /** `completed`, `failed`, `denied`, `cancelled` or `unknown`. */
  readonly status: string;
  /** What the model is told. */
  readonly content: readonly ResultBlock[];
  /** Whether it is told as an error. */
  readonly is_error?: boolean;
  /** Milliseconds from start to end; 0 when it never started. */
  readonly duration_ms?: number;
  /** What it made or found. */
  readonly artifacts?: readonly Artifact[];
  /** Content hashes of files it left, its whole output among them when that is long. */
  readonly files?: readonly string[];
  /** Tokens that a sub-agent used for it, which count in the turn (D5); `None` for none. */
  readonly usage?: Usage | null;
  /** US dollars of these; `None` when a price is unknown. */
  readonly cost?: number | null;
}

/** One tool that a session's model may call. */
export interface ToolInfo {
  /** Its name. */
  readonly name: string;
  /** What it does, in the words that the model reads. */
  readonly about: string;
  /** `read`, `write`, `exec`, `network` or `own` (A5.42). */
  readonly effect: string;
}

/** The tools of a session. */
export interface ToolList {
  /** In the order in which the model reads them. */
  readonly tools: readonly ToolInfo[];
}

/** More output of a running call; not stored. */
export interface ToolOutputDelta {
  readonly type: "tool_output_delta";
  /** The call. */
  readonly call: string;
  /** Code points of its output before this piece. */
  readonly at: number;
  /** The piece. */
  readonly text: string;
}

/** How far a call is; not stored. */
export interface ToolProgress {
  readonly type: "tool_progress";
  /** The call. */
  readonly call: string;
  /** One line. */
  readonly text: string;
  /** From 0 to 1; `None` when unknown. */
  readonly fraction?: number | null;
}

/** The model asked for a tool; nothing has run. */
export interface ToolProposed {
  readonly type: "tool_proposed";
  /** The call. */
  readonly call: string;
  /** The tool's name. */
  readonly tool: string;
  /** JSON text as the model wrote it; of a long one the ends, with a mark (C1.10). */
  readonly arguments: string;
  /** One line for a person. */
  readonly title: string;
  /** `read`, `write`, `exec`, `network` or `own` (A5.42). */
  readonly effect: string;
  /** What it would do. */
  readonly preview?: Preview | null;
  /** The content hash of the whole arguments, when they are too long for an event. */
  readonly arguments_file?: string | null;
}

/** What a call came to (A1.7). */
export interface ToolResult {
  readonly type: "tool_result";
  /** The call it answers. */
  readonly call: string;
  /** The answer; empty is a valid answer (S33). */
  readonly content: readonly ResultBlock[];
  /** Whether the model is told that the call failed. */
  readonly is_error?: boolean;
}

/** The call runs; committed before its side effect (C5.5). */
export interface ToolStarted {
  readonly type: "tool_started";
  /** The call. */
  readonly call: string;
  /** The program it started. */
  readonly process?: Process | null;
  /** The session of the sub-agent that does it (D5). */
  readonly child?: string | null;
}

/** The declaration is kept; it counts from the next turn on. */
export interface ToolsDeclared {
  /** The client. */
  readonly reader: string;
  /** The names of all tools that clients of the session run now. */
  readonly tools: readonly string[];
}

/** Speech as text. */
export interface TranscriptArtifact {
  readonly kind: "transcript";
  /** Why there is no result; with it the other fields mean nothing. */
  readonly error_code?: string | null;
  /** The words. */
  readonly text: string;
  /** Such as `en`. */
  readonly language?: string | null;
}

/** What one of a folder's own files says. */
export interface TrustFile {
  /** Relative to the folder. */
  readonly path: string;
  /** Its text, or the beginning of it; empty where it is no text, or not to be shown. */
  readonly text?: string;
  /** The size of all of it. */
  readonly bytes?: number;
  /**
   * `whole`, `cut` (it goes on), `binary` (it is no text), or `secret` (its name says that it holds
   * secrets).
   */
  readonly shown?: string;
}

/** Whether a folder's own rules, servers, commands and skills count (A5.49). */
export interface TrustInfo {
  /** The folder. */
  readonly folder: string;
  /** Whether a person trusts exactly these files. */
  readonly trusted: boolean;
  /** Whether a person trusted other files than these (A5.52). */
  readonly changed?: boolean;
  /** The hash of the files, which an answer names. */
  readonly digest: string;
  /** The files that it is about, relative to the folder; none when there is nothing to trust. */
  readonly files?: readonly string[];
  /** The permission rules among them. */
  readonly rules?: readonly string[];
  /** Sentences on what can't be read, or keeps the folder from being trusted. */
  readonly problems?: readonly string[];
  /**
   * What the files say, in their order, as far as 64 KiB reach; only where somebody may still
   * decide, so not of a folder that is trusted.
   */
  readonly contents?: readonly TrustFile[];
}

/** The turn was stopped by somebody. */
export interface TurnCancelled {
  readonly type: "turn_cancelled";
  /** Who stopped it. */
  readonly by: string;
  /** Why. */
  readonly reason: string;
  /** The sum over all its requests. */
  readonly usage: Usage;
}

/** The turn ended in order. */
export interface TurnCompleted {
  readonly type: "turn_completed";
  /** One of `STOP_REASONS`; never `cancelled` or `failed` (C1.22). */
  readonly stop_reason: string;
  /** The sum over all its requests. */
  readonly usage: Usage;
  /** US dollars; `None` when a price is unknown (A4.49). */
  readonly cost?: number | null;
  /** The first sentence of the answer (A4.29). */
  readonly summary?: string | null;
  /** What to say aloud, when the prompt asked for it. */
  readonly speak?: string | null;
}

/** What a turn did to files: one page, by path. */
export interface TurnDiff {
  /** The turn. */
  readonly turn: string;
  /**
   * From before its first touch to after its last one; a folder's path ends with `/`. Also what was
   * put back since.
   */
  readonly changes: readonly FileChange[];
  /** `after` for the next page; `None` at the end. */
  readonly next?: string | null;
}

/** The turn ended with a fault. */
export interface TurnFailed {
  readonly type: "turn_failed";
  /** What went wrong and what to do next. */
  readonly fault: Fault;
  /** The sum over all its requests. */
  readonly usage: Usage;
}

/** A turn that a crash cut goes on (C5.4). */
export interface TurnResumed {
  readonly type: "turn_resumed";
  /** The resumption's number, from 1. */
  readonly attempt: number;
}

/** What was put back. */
export interface TurnReverted {
  /** The first turn that is undone. */
  readonly turn: string;
  /** The paths that were put back, or went. */
  readonly reverted?: readonly string[];
  /**
   * The paths that somebody has changed since. Without `skip_conflicts` even one of them keeps
   * everything as it is, the conversation too.
   */
  readonly conflicts?: readonly FileConflict[];
  /** What could not be undone, a sentence each. */
  readonly unkept?: readonly string[];
  /** Whether the conversation went back. */
  readonly conversation?: boolean;
}

/** A turn began. */
export interface TurnStarted {
  readonly type: "turn_started";
  /** The prompt that started it. */
  readonly prompt: string;
  /** `provider/model`. */
  readonly model: string;
  /** The bounds it runs in. */
  readonly limits: Limits;
}

/** The running turn. */
export interface TurnView {
  /** Its id. */
  readonly id: string;
  /** The prompt that started it. */
  readonly prompt: string;
  /** `provider/model`. */
  readonly model: string;
  /** RFC 3339 time. */
  readonly started: string;
  /** Steps begun. */
  readonly step: number;
  /** How often it was resumed after a crash. */
  readonly attempt: number;
}

/** A block or event of a kind this reader does not know (C1.11). */
export interface Unknown {
  readonly type: "unknown";
  /** The kind as it came. */
  readonly name: string;
  /** The whole value as it came. */
  readonly raw: Readonly<Record<string, unknown>>;
}

/** An artifact of a kind this reader does not know; shown as JSON. */
export interface UnknownArtifact {
  readonly kind: "unknown";
  /** Why there is no result; with it the other fields mean nothing. */
  readonly error_code?: string | null;
  /** The kind as it came. */
  readonly name: string;
  /** The whole value as it came. */
  readonly raw: Readonly<Record<string, unknown>>;
}

/** What changes in a session; what is left out stays. */
export interface UpdateSession {
  /** The new title. */
  readonly title?: string | null;
  /** The new `provider/model`, from the next turn on. */
  readonly model?: string | null;
  /**
   * The new mode, from the next turn on: `ask`, `accept_edits`, `auto` or `plan`. The folder's next
   * session begins with it.
   */
  readonly mode?: string | null;
  /** The new labels, all of them: at most 16, of at most 64 characters each. */
  readonly labels?: readonly string[] | null;
  /** Whether it is put away: the usual list does not show it. */
  readonly archived?: boolean | null;
}

/** Tokens, as the provider counted them (A1.13). */
export interface Usage {
  /** Input tokens read anew: the uncached remainder. */
  readonly input?: number;
  /** Output tokens, `reasoning` among them. */
  readonly output?: number;
  /** Input tokens taken from the provider's cache. */
  readonly cache_read?: number;
  /** Input tokens written to the provider's cache. */
  readonly cache_write?: number;
  /** Output tokens that were thought, not said; contained in `output`. */
  readonly reasoning?: number;
}

/** What a user has used. */
export interface UsageReport {
  /** `day`, `model` or `session`. */
  readonly by: string;
  /** The first day that is counted, `YYYY-MM-DD`, UTC. */
  readonly first: string;
  /** The last one. */
  readonly last: string;
  /** Days, newest first; models and sessions, the dearest first. 400 at most. */
  readonly rows: readonly UsageRow[];
  /** All of it, also what has no row here. */
  readonly total: UsageRow;
  /** US dollars of today, as far as prices are known. */
  readonly today_cost: number;
  /** US dollars that a day may cost; left out for no bound. */
  readonly daily_cost?: number | null;
}

/** What was used in one day, of one model or in one session. */
export interface UsageRow {
  /** The day (`YYYY-MM-DD`, UTC), the model or the session's id; empty in a total. */
  readonly name: string;
  /** The session's title; left out when it has none, or is deleted. */
  readonly title?: string | null;
  /** Answers, and sums of what was paid for beside them, such as a summary. */
  readonly requests: number;
  /** Tokens. */
  readonly usage: Usage;
  /** US dollars of all requests whose price is known; left out when that is none of them. */
  readonly cost?: number | null;
  /** Requests whose price is not known: the cost is that much too low. */
  readonly unpriced?: number;
}

/** One user. */
export interface UserInfo {
  /** The name. */
  readonly name: string;
  /** Whether they may change what concerns everybody. */
  readonly admin?: boolean;
  /** Whether they can log in with one. */
  readonly has_password?: boolean;
  /** RFC 3339 time. */
  readonly created: string;
}

/** The users of a server. */
export interface UserList {
  /** By name. */
  readonly users: readonly UserInfo[];
}

/** A view and the number it stands at (C4.3). */
export interface ViewAnswer {
  /** The lineage of the log. */
  readonly log: string;
  /** The last event the view holds: subscribe from here. */
  readonly seq: number;
  /** The view. */
  readonly view: SessionView;
}

/** The turn waits; any later event ends the wait. */
export interface Waiting {
  readonly type: "waiting";
  /** RFC 3339 time: when it goes on (`rate_limit`, `retry`), else when it is given up. */
  readonly until: string;
  /** Such as `rate_limit`, `retry`, `slot`, `model_loading`, or `reading` once these are over. */
  readonly reason: string;
}

/** The prompt will not run. */
export interface Withdrawn {
  /** Its id. */
  readonly prompt: string;
}

/** What each operation takes and gives. */
export interface Operations {
  /** Say that the server lives. */
  health: { request: null; answer: Health };
  /** Say that the server takes work: its sessions are up and its store can be written. */
  ready: { request: null; answer: Health };
  /** Read the contract as an OpenAPI document. */
  openapi: { request: null; answer: null };
  /** Read the contract as a page. */
  docs: { request: null; answer: null };
  /** Read the table of operations. */
  manifest: { request: null; answer: Manifest };
  /** Read what this server offers: agents, modes, limits. */
  capabilities: { request: null; answer: Capabilities };
  /** Turn a password into a token of 24 hours. */
  login: { request: Login; answer: LoggedIn };
  /** Turn a one-time code into a token. */
  claim: { request: Claim; answer: Claimed };
  /** Make a one-time code for another device. */
  pair: { request: null; answer: Pairing };
  /** Say who the caller is. */
  me: { request: null; answer: Identity };
  /** Revoke the token the call came with. */
  logout: { request: null; answer: null };
  /** List the caller's devices, logins and tokens. */
  list_tokens: { request: null; answer: TokenList };
  /** Make a token for a program; it is shown this once. */
  create_token: { request: CreateToken; answer: NewToken };
  /** End one of the caller's devices, logins or tokens, and its open streams. */
  revoke_token: { request: null; answer: null };
  /** List the users. */
  list_users: { request: null; answer: UserList };
  /** Let somebody in by a name and a password. */
  add_user: { request: AddUser; answer: UserInfo };
  /** Let a user in no more; their sessions stay stored, and nobody reaches them. */
  remove_user: { request: null; answer: null };
  /** Change one's own password, or as an admin that of another user. */
  change_password: { request: ChangePassword; answer: null };
  /** Begin a session, with a first prompt if one is given. */
  create_session: { request: CreateSession; answer: SessionInfo };
  /** List sessions, newest first. */
  list_sessions: { request: null; answer: SessionList };
  /** Read one row of the list. */
  get_session: { request: null; answer: SessionInfo };
  /** Change a session's title, model, mode, labels, or put it away. */
  update_session: { request: UpdateSession; answer: SessionInfo };
  /** Say how far you have read; the mark never goes back. */
  mark_read: { request: MarkRead; answer: ReadMark };
  /** Stop what runs and take no more prompts; the session stays readable. */
  close_session: { request: CloseSession; answer: SessionInfo };
  /** Close a session and remove its log. */
  delete_session: { request: null; answer: SessionDeleted };
  /** Say something; it is durable before this answers. */
  send_prompt: { request: SendPrompt; answer: PromptAccepted };
  /** Stop the running turn; its end is durable before this answers. */
  interrupt: { request: Interrupt; answer: Interrupted };
  /** Take back a prompt that waits. */
  withdraw_prompt: { request: null; answer: Withdrawn };
  /** Run the prompts that a stop holds back. */
  resume_queue: { request: null; answer: QueueResumed };
  /** Undo the last turn and say its prompt again. */
  retry: { request: null; answer: PromptAccepted };
  /** Go back to before a turn and say something else in its place. */
  resend: { request: Resend; answer: PromptAccepted };
  /** Sum the conversation up, to make room; an event tells what came of it. */
  compact_session: { request: null; answer: SessionInfo };
  /** Begin a new session that goes on from a turn of this one. */
  fork_session: { request: ForkSession; answer: SessionInfo };
  /** Read a session as a screen shows it, with the number it stands at. */
  get_view: { request: null; answer: ViewAnswer };
  /** Read messages that are older than those of the view. */
  get_history: { request: null; answer: History };
  /** Follow a session: everything after the cursor, then live. */
  follow: { request: null; answer: null };
  /** List what waits for the caller in all their sessions. */
  list_requests: { request: null; answer: RequestList };
  /** Follow the list of sessions; with `session` also that session, in one stream. */
  follow_all: { request: null; answer: null };
  /** Decide an open permission request. */
  answer_permission: { request: AnswerPermission; answer: PermissionAnswered };
  /** Answer an open question. */
  answer_question: { request: AnswerQuestion; answer: QuestionAnswered };
  /** Say which tools a client runs, in place of those that it declared before. */
  declare_tools: { request: DeclareTools; answer: ToolsDeclared };
  /** Take a call before running it; only one client can. */
  claim_call: { request: ClaimCall; answer: ClientCall };
  /** Show how far a taken call is. */
  report_progress: { request: ReportProgress; answer: null };
  /** Say what a taken call came to. */
  send_result: { request: SendResult; answer: ClientCallEnded };
  /** Keep the bytes of the body; the same bytes again are the same file. */
  upload_file: { request: null; answer: FileInfo };
  /** Read the bytes of a file of one's own. */
  download_file: { request: null; answer: null };
  /** List the turns that files can go back to before, newest first. */
  list_checkpoints: { request: null; answer: CheckpointList };
  /** Read what a turn did to files. */
  get_diff: { request: null; answer: TurnDiff };
  /** Put files back to what they were before a turn; what others changed stays. */
  revert_turn: { request: RevertTurn; answer: TurnReverted };
  /** Tell what a session would have that began in a folder: commands, mode, model. */
  get_start: { request: null; answer: StartInfo };
  /** List files of a folder that a session may begin in, for `@`. */
  list_start_paths: { request: null; answer: PathList };
  /** List files and folders of the session's folder that may be meant, for `@`. */
  list_paths: { request: null; answer: PathList };
  /** List the commands of the session, for `/`. */
  list_commands: { request: null; answer: CommandList };
  /** Say what a command stands for; it is durable before this answers. */
  run_command: { request: RunCommand; answer: PromptAccepted };
  /** List prompts to begin with in the session's folder. */
  list_suggestions: { request: null; answer: SuggestionList };
  /** List the tools that the session's model may call. */
  list_tools: { request: null; answer: ToolList };
  /** Read whether the own files of the session's folder count, and which these are. */
  get_trust: { request: null; answer: TrustInfo };
  /** Trust the own files of the session's folder as they were seen, or no longer. */
  set_trust: { request: SetTrust; answer: TrustInfo };
  /** List the models that can be asked, with abilities and prices. */
  list_models: { request: null; answer: ModelList };
  /** Choose the model of sessions that name none, for all who use the server. */
  set_default_model: { request: DefaultModel; answer: DefaultModel };
  /** Tell how the built-in model stands: how far its fetch is, what it does now. */
  get_local_model: { request: null; answer: LocalModelState };
  /** List providers: where a key was found, its last four characters, the address. */
  list_providers: { request: null; answer: ProviderList };
  /** Set a provider's key, backup keys, address or CA; counts for the next request. */
  change_provider: { request: ChangeProvider; answer: ProviderInfo };
  /** Forget what is kept for a provider: keys, sign-in, address and CA. */
  remove_provider: { request: null; answer: ProviderInfo };
  /** Ask a provider for its models with each of its keys, and say which work. */
  test_provider: { request: null; answer: ProviderTest };
  /** Begin a sign-in; the answer names the page to open. */
  start_sign_in: { request: StartSignIn; answer: SignInStarted };
  /** Hand in where the browser ended, or wait for it to come back. */
  finish_sign_in: { request: FinishSignIn; answer: ProviderInfo };
  /** Give up a sign-in; one that does not wait is fine. */
  cancel_sign_in: { request: null; answer: null };
  /** Tell what the caller has used and what it cost, by day, model or session. */
  get_usage: { request: null; answer: UsageReport };
  /** Give the key that a browser subscribes with. */
  get_push_key: { request: null; answer: PushOffer };
  /** List the caller's devices that are called, and what became of the last message. */
  list_push_subscriptions: { request: null; answer: PushSubscriptionList };
  /** Call this browser from now on when nobody looks; the same endpoint is replaced. */
  subscribe_push: { request: SubscribePush; answer: PushSubscription };
  /** Call a device no more. */
  unsubscribe_push: { request: null; answer: null };
  /** Send a device a message now, and say what became of it. */
  test_push: { request: null; answer: PushOutcome };
  /** Say whether a person looks at this client; repeat it every 20 s while one does. */
  note_presence: { request: NotePresence; answer: null };
}

/** Where operations stand, and the struct that each answers with, if any. */
export type Places = {
  [Name in keyof Operations]?: readonly [method: string, path: string, answer?: string];
};

/** The places that the first screen asks; the others are in `later.gen.ts`. */
export const OPERATIONS: Places = {
  me: ["GET", "/api/auth/me", "Identity"],
  create_session: ["POST", "/api/sessions", "SessionInfo"],
  list_sessions: ["GET", "/api/sessions", "SessionList"],
  send_prompt: ["POST", "/api/sessions/{session}/prompts", "PromptAccepted"],
  interrupt: ["POST", "/api/sessions/{session}/interrupt", "Interrupted"],
  get_view: ["GET", "/api/sessions/{session}/view", "ViewAnswer"],
  follow: ["GET", "/api/sessions/{session}/events"],
  answer_permission: ["POST", "/api/sessions/{session}/permissions/{permission}", "PermissionAnswered"],
  answer_question: ["POST", "/api/sessions/{session}/questions/{question}", "QuestionAnswered"],
};
