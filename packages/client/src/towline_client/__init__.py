"""A client that cannot be shaken off: sessions, views, reconnection."""

from towline_client.account import Account
from towline_client.bridge.registrar import Registrar
from towline_client.bridge.tool import CallContext
from towline_client.caller import Credential
from towline_client.client import Client
from towline_client.clock import Clock, LoopClock
from towline_client.discovery import Discovery
from towline_client.errors import (
    CallFailed,
    ClientError,
    CommandRejected,
    ConnectionLost,
    ContractUnavailable,
    PersonNeeded,
    TowlineError,
    TurnUnfinished,
    Unauthorized,
    UsageError,
    VersionMismatch,
)
from towline_client.feed import FeedFrame
from towline_client.life import Life, Settings
from towline_client.link import LinkPolicy
from towline_client.models import Models
from towline_client.options import CallOptions
from towline_client.outcome import Outcome, PromptWatch, follow_prompt
from towline_client.project import Project
from towline_client.pump import Connection, Rebuilt, SessionEvent
from towline_client.push import Push
from towline_client.scrollback import Scrollback
from towline_client.session import Session
from towline_client.talk import Talk
from towline_client.transport import Call, Reply, StreamReply, Transport
from towline_client.turn_files import TurnFiles

__all__ = [
    "Account",
    "Call",
    "CallContext",
    "CallFailed",
    "CallOptions",
    "Client",
    "ClientError",
    "Clock",
    "CommandRejected",
    "Connection",
    "ConnectionLost",
    "ContractUnavailable",
    "Credential",
    "Discovery",
    "FeedFrame",
    "Life",
    "LinkPolicy",
    "LoopClock",
    "Models",
    "Outcome",
    "PersonNeeded",
    "Project",
    "PromptWatch",
    "Push",
    "Rebuilt",
    "Registrar",
    "Reply",
    "Scrollback",
    "Session",
    "SessionEvent",
    "Settings",
    "StreamReply",
    "Talk",
    "TowlineError",
    "Transport",
    "TurnFiles",
    "TurnUnfinished",
    "Unauthorized",
    "UsageError",
    "VersionMismatch",
    "follow_prompt",
]
