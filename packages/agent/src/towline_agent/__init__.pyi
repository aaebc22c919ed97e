"""An agent loop you can read in an evening.

Start at `agent.py`, then `turn.py`: the whole path of a prompt stands there as a staircase.
"""

from towline_agent.agent import Agent, system_prompt
from towline_agent.context.assemble import tool_specs
from towline_agent.delegate import AGENTS_AT_ONCE, EXPLORE, GENERAL, SubAgent, Tally, report_end
from towline_agent.errors import (
    AbortTurn,
    AuthenticationFailed,
    CertificateUntrusted,
    ContextOverflow,
    EndpointNotFound,
    LimitReached,
    ModelNotFound,
    OutcomeUnknown,
    ProviderError,
    ProviderUnavailable,
    QuotaExhausted,
    RateLimited,
    RequestRejected,
    ResponseMalformed,
    StatedLimits,
    ToolDenied,
    ToolError,
    ToolInputInvalid,
    ToolTimeout,
)
from towline_agent.host import Clock, Host, Mint, Stop, SystemClock, mint_now
from towline_agent.limits import Slot, Spent
from towline_agent.local_host import Answerer, LocalHost
from towline_agent.permissions.doubt import Allowed, Judge
from towline_agent.permissions.part import Part
from towline_agent.permissions.policy import MODES, Policy
from towline_agent.permissions.rules import EXACT, Rule, exact_rule, parse_rule
from towline_agent.permissions.secret import is_secret
from towline_agent.plan import CallRecord, Plan
from towline_agent.project.attachment import (
    Attachment,
    LeftOut,
    read_mention,
    tell_attached,
    tell_left_out,
)
from towline_agent.project.command import OwnCommand, expand_command, read_command
from towline_agent.project.folder import find_commands, find_paths
from towline_agent.project.instructions import find_instructions
from towline_agent.project.mention import Mention, cut_lines, find_mentions
from towline_agent.project.mentioned import read_unasked
from towline_agent.project.suggest import suggest_starts
from towline_agent.project.tag import wrap_text
from towline_agent.providers.anthropic.flags import AnthropicFlags
from towline_agent.providers.anthropic.provider import Anthropic
from towline_agent.providers.base import (
    ArgumentsPiece,
    Controls,
    Model,
    Paced,
    Piece,
    Provider,
    Request,
    StepAnswer,
    StepFailed,
    StepResult,
    TextPiece,
    ThinkingPiece,
    ToolSpec,
)
from towline_agent.providers.catalog import (
    LOCAL_MODEL_FACTS,
    Found,
    connect,
    discover,
    model_facts,
    vendor_keys,
)
from towline_agent.providers.choice import Choice, choose_model, is_for_words
from towline_agent.providers.cost import cost
from towline_agent.providers.credential import (
    BearerCredential,
    Credential,
    KeyCredential,
    NoCredential,
    OAuthCredential,
    parse_pasted_token,
)
from towline_agent.providers.discovery import Listing, discover_local, list_models
from towline_agent.providers.facts import fact_file, known_model, known_names
from towline_agent.providers.gemini.flags import GeminiFlags
from towline_agent.providers.gemini.provider import Gemini
from towline_agent.providers.keys import KeyRing, show_key
from towline_agent.providers.oauth import OAUTH_SERVICES, OAuthClient, OAuthService, OAuthTokens
from towline_agent.providers.openai_chat.flags import ChatFlags
from towline_agent.providers.openai_chat.provider import OpenAIChat
from towline_agent.providers.openai_responses.flags import ResponsesFlags
from towline_agent.providers.openai_responses.provider import OpenAIResponses
from towline_agent.providers.registry import installed_providers
from towline_agent.providers.sign_in import SIGN_IN_S, OAuthSignIn
from towline_agent.providers.transport import (
    CA_SETTING,
    HttpAnswer,
    HttpCall,
    Transport,
    TransportFailed,
)
from towline_agent.providers.vendors import VENDORS, Vendor
from towline_agent.result import AgentResult, EventStream
from towline_agent.shrink import compact
from towline_agent.tools.builtin import builtin_tools
from towline_agent.tools.builtin.memory import Notes, make_memory_tools
from towline_agent.tools.builtin.todo import remind_todos
from towline_agent.tools.external import fence_external
from towline_agent.tools.function import ToolHandler, make_tool, tool
from towline_agent.tools.output import OutputSpec
from towline_agent.tools.registry import find_tools
from towline_agent.tools.spawn import (
    SPAWN_AGENT,
    AgentRunner,
    SubAgentRunner,
    make_spawn_agent,
    make_sub_agents,
)
from towline_agent.tools.state import ToolState
from towline_agent.tools.tool import EFFECTS, Tool, ToolContext, ToolOutput
from towline_agent.tools.toolset import Toolset
from towline_agent.tools.web.client import WebAnswer, WebClient
from towline_agent.tools.web.fetch import make_web_tools
from towline_agent.tools.web.url import WebUrl, read_url
from towline_agent.turn import Start, TurnEnd, last_text, run_turn
from towline_agent.workspaces.base import (
    Deed,
    DirEntry,
    Edit,
    Intent,
    Keeper,
    MakeDir,
    Move,
    ProgramResult,
    Put,
    Remove,
    Workspace,
)
from towline_agent.workspaces.checkpoints import Checkpoints, KeptTurn, RevertOutcome
from towline_agent.workspaces.local import LocalWorkspace
from towline_agent.workspaces.processes import end_orphans, kill_left
from towline_agent.workspaces.scratch import drop_scratch
from towline_agent.workspaces.threads import run_to_the_end

__all__ = [
    "AGENTS_AT_ONCE",
    "CA_SETTING",
    "EFFECTS",
    "EXACT",
    "EXPLORE",
    "GENERAL",
    "LOCAL_MODEL_FACTS",
    "MODES",
    "OAUTH_SERVICES",
    "SIGN_IN_S",
    "SPAWN_AGENT",
    "VENDORS",
    "AbortTurn",
    "Agent",
    "AgentResult",
    "AgentRunner",
    "Allowed",
    "Answerer",
    "Anthropic",
    "AnthropicFlags",
    "ArgumentsPiece",
    "Attachment",
    "AuthenticationFailed",
    "BearerCredential",
    "CallRecord",
    "CertificateUntrusted",
    "ChatFlags",
    "Checkpoints",
    "Choice",
    "Clock",
    "ContextOverflow",
    "Controls",
    "Credential",
    "Deed",
    "DirEntry",
    "Edit",
    "EndpointNotFound",
    "EventStream",
    "Found",
    "Gemini",
    "GeminiFlags",
    "Host",
    "HttpAnswer",
    "HttpCall",
    "Intent",
    "Judge",
    "Keeper",
    "KeptTurn",
    "KeyCredential",
    "KeyRing",
    "LeftOut",
    "LimitReached",
    "Listing",
    "LocalHost",
    "LocalWorkspace",
    "MakeDir",
    "Mention",
    "Mint",
    "Model",
    "ModelNotFound",
    "Move",
    "NoCredential",
    "Notes",
    "OAuthClient",
    "OAuthCredential",
    "OAuthService",
    "OAuthSignIn",
    "OAuthTokens",
    "OpenAIChat",
    "OpenAIResponses",
    "OutcomeUnknown",
    "OutputSpec",
    "OwnCommand",
    "Paced",
    "Part",
    "Piece",
    "Plan",
    "Policy",
    "ProgramResult",
    "Provider",
    "ProviderError",
    "ProviderUnavailable",
    "Put",
    "QuotaExhausted",
    "RateLimited",
    "Remove",
    "Request",
    "RequestRejected",
    "ResponseMalformed",
    "ResponsesFlags",
    "RevertOutcome",
    "Rule",
    "Slot",
    "Spent",
    "Start",
    "StatedLimits",
    "StepAnswer",
    "StepFailed",
    "StepResult",
    "Stop",
    "SubAgent",
    "SubAgentRunner",
    "SystemClock",
    "Tally",
    "TextPiece",
    "ThinkingPiece",
    "Tool",
    "ToolContext",
    "ToolDenied",
    "ToolError",
    "ToolHandler",
    "ToolInputInvalid",
    "ToolOutput",
    "ToolSpec",
    "ToolState",
    "ToolTimeout",
    "Toolset",
    "Transport",
    "TransportFailed",
    "TurnEnd",
    "Vendor",
    "WebAnswer",
    "WebClient",
    "WebUrl",
    "Workspace",
    "builtin_tools",
    "choose_model",
    "compact",
    "connect",
    "cost",
    "cut_lines",
    "discover",
    "discover_local",
    "drop_scratch",
    "end_orphans",
    "exact_rule",
    "expand_command",
    "fact_file",
    "fence_external",
    "find_commands",
    "find_instructions",
    "find_mentions",
    "find_paths",
    "find_tools",
    "installed_providers",
    "is_for_words",
    "is_secret",
    "kill_left",
    "known_model",
    "known_names",
    "last_text",
    "list_models",
    "make_memory_tools",
    "make_spawn_agent",
    "make_sub_agents",
    "make_tool",
    "make_web_tools",
    "mint_now",
    "model_facts",
    "parse_pasted_token",
    "parse_rule",
    "read_command",
    "read_mention",
    "read_unasked",
    "read_url",
    "remind_todos",
    "report_end",
    "run_to_the_end",
    "run_turn",
    "show_key",
    "suggest_starts",
    "system_prompt",
    "tell_attached",
    "tell_left_out",
    "tool",
    "tool_specs",
    "vendor_keys",
    "wrap_text",
]
