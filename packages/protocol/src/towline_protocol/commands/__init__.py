"""What a client may ask and what it is answered: the bodies of the operations."""

from towline_protocol.commands.answer import AnswerPermission, PermissionAnswered
from towline_protocol.commands.auth import Claim, Claimed, Identity, Pairing
from towline_protocol.commands.body import Problem, PromptBlock
from towline_protocol.commands.discovery import Health
from towline_protocol.commands.read import ViewAnswer
from towline_protocol.commands.session import CreateSession, SessionInfo, SessionList
from towline_protocol.commands.talk import Interrupt, Interrupted, PromptAccepted, SendPrompt

__all__ = [
    "AnswerPermission",
    "Claim",
    "Claimed",
    "CreateSession",
    "Health",
    "Identity",
    "Interrupt",
    "Interrupted",
    "Pairing",
    "PermissionAnswered",
    "Problem",
    "PromptAccepted",
    "PromptBlock",
    "SendPrompt",
    "SessionInfo",
    "SessionList",
    "ViewAnswer",
]
