// Made from the Python types by `make types`; do not edit.

/**
 * Struct to its fields, a word each: `name:shape`, or `name?:shape` for one that may be left out.
 * The first word of a struct that a tag tells is `field=tag`. A shape is a letter for a plain kind
 * (`a`nything, `b`oolean, `i`nteger, `n`umber), nothing for a string, or the name of a struct or of
 * a union; behind it `[]` makes it a list, `{}` a map, and `|` says that it may be `null`. A `:`
 * with nothing behind it is left out.
 */
export const STRUCTS: Record<string, string> = {
  AudioArtifact: "kind=audio error_code?:| file duration_ms:i",
  CallView: "call tool title effect arguments status preview?:Preview| turn?:| started?:| progress?:| fraction?:n| output? output_at?:i content?:ResultBlock[] is_error?:b duration_ms?:i artifacts?:Artifact[] changes?:FileChange[] changes_truncated?:b decision?:Decision| expires_at?:| claimed_by?:| arguments_file?:| files?:[] child?:|",
  CommandArtifact: "kind=command error_code?:| command exit_code?:i| output? job?:|",
  Context: "used:i window?:i|",
  Decision: "option by note?:| time",
  EndedTurn: "id outcome stop_reason?:| time usage:Usage cost?:n| summary?:| fault?:Fault|",
  Fault: "code message retry? retry_after_s?:n| scope?:| reason?:| details?:a{}|",
  File: "type=file name media_type data?:| file?:| path?:| lines?:| selection?:b",
  FileChange: "path kind source?:| before?:| after?:| before_mode?:i| after_mode?:i| diff?:| truncated?:b",
  HttpArtifact: "kind=http error_code?:| url status:i truncated?:b",
  Identity: "user server_name admin?:b",
  Image: "type=image media_type data?:| file?:|",
  ImageArtifact: "kind=image error_code?:| file media_type",
  Interrupted: "turn?:|",
  Mark: "kind text? fault?:Fault| files?:[] not_reverted?:[] before_tokens?:i| after_tokens?:i|",
  MessageView: "seq:i role id?:| turn?:| time content?:Block[] cut?:| key?:| mark?:Mark| undone?:b",
  NoticeView: "seq:i code message scope",
  Opaque: "type=opaque dialect raw?:a",
  OpenMessage: "id turn?:| time content?:Block[]",
  Option: "id label rule?:|",
  OutgoingPrompt: "key content:Block[] when state message?:| begun",
  PageArtifact: "kind=page error_code?:| url status:i truncated?:b",
  Parent: "session call",
  PermissionAnswered: "option",
  PermissionRequested: "type=permission_requested permission call tool title preview:Preview digest options:Option[] reason?:| expires_at",
  Preview: "kind text truncated?:b",
  Problem: "type? title status:i detail code retry retry_after_s?:n| scope?:| reason?:| request_id?:| details?:a{}|",
  PromptAccepted: "prompt turn?:| position?:i session",
  QuestionAnswered: "answers:[]{}",
  QuestionAsked: "type=question_asked question items:QuestionItem[] expires_at?:|",
  QuestionItem: "id prompt options?:Option[] multiple?:b free_text?:b",
  QueuedPrompt: "prompt content:Block[] when key?:| time",
  SearchArtifact: "kind=search error_code?:| query items?:SearchItem[] truncated?:b",
  SearchItem: "title url snippet?",
  SessionInfo: "id agent model mode live:b last_seq:i turn?:| pending?:i queued?:i title?:| last_line? cwd?:| created updated closed?:b archived?:b labels?:[] unread?:b read_seq?:i",
  SessionList: "sessions:SessionInfo[] next?:|",
  SessionView: "reducer?:i session? seq?:i agent? model? mode? title?:| title_truncated?:b cwd?:| parent?:Parent| created? updated? archived?:b labels?:[] closed?:| turn?:TurnView| last_turn?:EndedTurn| waiting?:Waiting| messages?:MessageView[] older?:b open_messages?:OpenMessage[] calls?:CallView[] open_calls?:CallView[] permissions?:PermissionRequested[] questions?:QuestionAsked[] queue?:QueuedPrompt[] outgoing?:OutgoingPrompt[] todos?:Todo[] notices?:NoticeView[] older_notices?:b usage?:Usage cost?:n| context?:Context| fault?:Fault| unknown?:i lost?:b",
  Text: "type=text text",
  Thinking: "type=thinking text signature?:| redacted?:b",
  Todo: "id content status",
  ToolCall: "type=tool_call id name arguments wire_id?:| signature?:|",
  ToolResult: "type=tool_result call content:ResultBlock[] is_error?:b",
  TranscriptArtifact: "kind=transcript error_code?:| text language?:|",
  TurnView: "id prompt model started step?:i attempt?:i",
  Unknown: "type=unknown name raw:a{}",
  UnknownArtifact: "kind=unknown error_code?:| name raw:a{}",
  Usage: "input?:i output?:i cache_read?:i cache_write?:i reasoning?:i",
  ViewAnswer: "log seq:i view:SessionView",
  Waiting: "type=waiting until reason",
};

/** Union to its structs, each of which has a tag. */
export const UNIONS: Record<string, string> = {
  Artifact: "ImageArtifact SearchArtifact PageArtifact HttpArtifact CommandArtifact AudioArtifact TranscriptArtifact UnknownArtifact",
  Block: "Text Thinking Image File ToolCall ToolResult Opaque Unknown",
  ResultBlock: "Text Image File Unknown",
};
