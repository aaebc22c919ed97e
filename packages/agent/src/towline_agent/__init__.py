"""An agent loop you can read in an evening.

Start at `agent.py`, then `turn.py`: the whole path of a prompt stands there as a staircase.
"""

# pyright: reportUnsupportedDunderAll=false

from importlib import import_module
from typing import Final

from towline_agent.agent import Agent, AgentResult, EventStream, system_prompt
from towline_agent.context.assemble import tool_specs
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
from towline_agent.permissions.gate import MODES
from towline_agent.permissions.rules import Rule, parse_rule
from towline_agent.plan import CallRecord, Plan
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
from towline_agent.providers.cost import cost
from towline_agent.providers.transport import (
    CA_SETTING,
    HttpAnswer,
    HttpCall,
    Transport,
    TransportFailed,
)
from towline_agent.tools.function import ToolHandler, make_tool, tool
from towline_agent.tools.tool import EFFECTS, Tool, ToolContext, ToolOutput
from towline_agent.tools.toolset import Toolset
from towline_agent.turn import Start, TurnEnd, run_turn
from towline_agent.workspaces.base import DirEntry, Keeper, ProgramResult, Workspace

__all__ = [
    "CA_SETTING",
    "EFFECTS",
    "LOCAL_MODEL_FACTS",
    "MODES",
    "OAUTH_SERVICES",
    "SIGN_IN_S",
    "VENDORS",
    "AbortTurn",
    "Agent",
    "AgentResult",
    "AgentRunner",
    "Answerer",
    "Anthropic",
    "AnthropicFlags",
    "ArgumentsPiece",
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
    "DirEntry",
    "EndpointNotFound",
    "EventStream",
    "Found",
    "Gemini",
    "GeminiFlags",
    "Host",
    "HttpAnswer",
    "HttpCall",
    "Keeper",
    "KeptTurn",
    "KeyCredential",
    "KeyRing",
    "LimitReached",
    "Listing",
    "LocalHost",
    "LocalWorkspace",
    "Mint",
    "Model",
    "ModelNotFound",
    "NoCredential",
    "OAuthClient",
    "OAuthCredential",
    "OAuthService",
    "OAuthSignIn",
    "OAuthTokens",
    "OpenAIChat",
    "OpenAIResponses",
    "OutcomeUnknown",
    "OutputSpec",
    "Paced",
    "Piece",
    "Plan",
    "ProgramResult",
    "Provider",
    "ProviderError",
    "ProviderUnavailable",
    "QuotaExhausted",
    "RateLimited",
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
    "SystemClock",
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
    "ToolTimeout",
    "Toolset",
    "Transport",
    "TransportFailed",
    "TurnEnd",
    "Vendor",
    "Workspace",
    "builtin_tools",
    "choose_model",
    "compact",
    "connect",
    "cost",
    "discover",
    "discover_local",
    "fact_file",
    "find_tools",
    "installed_providers",
    "is_for_words",
    "kill_process",
    "known_model",
    "known_names",
    "list_models",
    "make_spawn_agent",
    "make_tool",
    "mint_now",
    "model_facts",
    "parse_pasted_token",
    "parse_rule",
    "run_turn",
    "show_key",
    "system_prompt",
    "tool",
    "tool_specs",
    "vendor_keys",
]

_LATE: Final = {
    "towline_agent.providers.anthropic.flags": ("AnthropicFlags",),
    "towline_agent.providers.anthropic.provider": ("Anthropic",),
    "towline_agent.providers.catalog": (
        "LOCAL_MODEL_FACTS",
        "Found",
        "connect",
        "discover",
        "model_facts",
        "vendor_keys",
    ),
    "towline_agent.providers.choice": ("Choice", "choose_model", "is_for_words"),
    "towline_agent.providers.credential": (
        "BearerCredential",
        "Credential",
        "KeyCredential",
        "NoCredential",
        "OAuthCredential",
        "parse_pasted_token",
    ),
    "towline_agent.providers.discovery": ("Listing", "discover_local", "list_models"),
    "towline_agent.providers.facts": ("fact_file", "known_model", "known_names"),
    "towline_agent.providers.gemini.flags": ("GeminiFlags",),
    "towline_agent.providers.gemini.provider": ("Gemini",),
    "towline_agent.providers.keys": ("KeyRing", "show_key"),
    "towline_agent.providers.oauth": (
        "OAUTH_SERVICES",
        "OAuthClient",
        "OAuthService",
        "OAuthTokens",
    ),
    "towline_agent.providers.openai_chat.flags": ("ChatFlags",),
    "towline_agent.providers.openai_chat.provider": ("OpenAIChat",),
    "towline_agent.providers.openai_responses.flags": ("ResponsesFlags",),
    "towline_agent.providers.openai_responses.provider": ("OpenAIResponses",),
    "towline_agent.providers.registry": ("installed_providers",),
    "towline_agent.providers.sign_in": ("SIGN_IN_S", "OAuthSignIn"),
    "towline_agent.providers.vendors": ("VENDORS", "Vendor"),
    "towline_agent.tools.builtin": ("builtin_tools",),
    "towline_agent.tools.output": ("OutputSpec",),
    "towline_agent.tools.registry": ("find_tools",),
    "towline_agent.tools.spawn": ("AgentRunner", "make_spawn_agent"),
    "towline_agent.workspaces.checkpoints": ("Checkpoints", "KeptTurn", "RevertOutcome"),
    "towline_agent.workspaces.local": ("LocalWorkspace",),
    "towline_agent.workspaces.processes": ("kill_process",),
    "towline_agent.shrink": ("compact",),
}
"""What only some programs need, by module: imported when they ask for it. Type checkers read
`__init__.pyi`."""


def __getattr__(name: str) -> object:
    """Import what is asked for late."""
    home = next((module for module, names in _LATE.items() if name in names), None)
    if home is None:
        raise AttributeError(f"The module {__name__!r} has no attribute {name!r}.")
    found = globals()[name] = getattr(import_module(home), name)
    return found
