"""An agent loop you can read in an evening.

Start at `agent.py`, then `turn.py`: the whole path of a prompt stands there as a staircase.
"""

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
    ProviderError,
    ProviderUnavailable,
    QuotaExhausted,
    RateLimited,
    RequestRejected,
    ResponseMalformed,
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
    Model,
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
from towline_agent.providers.catalog import LOCAL_MODEL_FACTS, Found, connect, discover
from towline_agent.providers.openai_chat.flags import ChatFlags
from towline_agent.providers.openai_chat.provider import OpenAIChat
from towline_agent.providers.transport import HttpAnswer, HttpCall, Transport, TransportFailed
from towline_agent.tools.builtin import builtin_tools
from towline_agent.tools.function import ToolHandler, make_tool, tool
from towline_agent.tools.tool import EFFECTS, Tool, ToolContext, ToolOutput
from towline_agent.tools.toolset import Toolset
from towline_agent.turn import Start, TurnEnd, run_turn
from towline_agent.workspaces.base import DirEntry, ProgramResult, Workspace
from towline_agent.workspaces.local import LocalWorkspace
from towline_agent.workspaces.processes import kill_process

__all__ = [
    "EFFECTS",
    "LOCAL_MODEL_FACTS",
    "MODES",
    "AbortTurn",
    "Agent",
    "AgentResult",
    "Answerer",
    "ArgumentsPiece",
    "AuthenticationFailed",
    "CallRecord",
    "CertificateUntrusted",
    "ChatFlags",
    "Clock",
    "ContextOverflow",
    "DirEntry",
    "EndpointNotFound",
    "EventStream",
    "Found",
    "Host",
    "HttpAnswer",
    "HttpCall",
    "LimitReached",
    "LocalHost",
    "LocalWorkspace",
    "Mint",
    "Model",
    "ModelNotFound",
    "OpenAIChat",
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
    "Rule",
    "Slot",
    "Spent",
    "Start",
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
    "Workspace",
    "builtin_tools",
    "connect",
    "discover",
    "kill_process",
    "make_tool",
    "mint_now",
    "parse_rule",
    "run_turn",
    "system_prompt",
    "tool",
    "tool_specs",
]
