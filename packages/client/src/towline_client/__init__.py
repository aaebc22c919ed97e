"""A client that cannot be shaken off: sessions, views, reconnection."""

from towline_client.caller import Credential
from towline_client.client import Client
from towline_client.clock import Clock, LoopClock
from towline_client.errors import (
    ClientError,
    CommandRejected,
    ConnectionLost,
    ContractUnavailable,
    TurnUnfinished,
    Unauthorized,
)
from towline_client.link import LinkPolicy
from towline_client.pump import Connection, Rebuilt, SessionEvent
from towline_client.session import Outcome, PromptWatch, Session, follow_prompt
from towline_client.transport import Call, Reply, StreamReply, Transport

__all__ = [
    "Call",
    "Client",
    "ClientError",
    "Clock",
    "CommandRejected",
    "Connection",
    "ConnectionLost",
    "ContractUnavailable",
    "Credential",
    "LinkPolicy",
    "LoopClock",
    "Outcome",
    "PromptWatch",
    "Rebuilt",
    "Reply",
    "Session",
    "SessionEvent",
    "StreamReply",
    "Transport",
    "TurnUnfinished",
    "Unauthorized",
    "follow_prompt",
]
