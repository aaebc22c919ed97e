"""Typed, time-ordered ids (C1.1)."""

import functools
from typing import Final, NewType

__all__ = [
    "CallId",
    "CheckpointId",
    "MessageId",
    "PermissionId",
    "PromptId",
    "QuestionId",
    "SessionId",
    "StepId",
    "TurnId",
    "mint_id",
]

SessionId = NewType("SessionId", str)
"""`ses_…`: one durable conversation."""
PromptId = NewType("PromptId", str)
"""`pmt_…`: what a user sent; it exists before the turn it starts."""
TurnId = NewType("TurnId", str)
"""`trn_…`: one prompt taken to its stop reason."""
StepId = NewType("StepId", str)
"""`stp_…`: one provider request and its calls."""
MessageId = NewType("MessageId", str)
"""`msg_…`: one message of a model."""
CallId = NewType("CallId", str)
"""`call_…`: one tool call; minted here, never the provider's own id."""
PermissionId = NewType("PermissionId", str)
"""`prm_…`: one permission request."""
QuestionId = NewType("QuestionId", str)
"""`qst_…`: one question to the person."""
CheckpointId = NewType("CheckpointId", str)
"""`cp_…`: a saved state of the workspace."""

_ALPHABET: Final = "0123456789abcdefghjkmnpqrstvwxyz"
_LETTERS: Final = _ALPHABET.encode() * 8
"""The letter for each byte: its low five bits count."""


def mint_id(prefix: str, time_ms: int, entropy: bytes) -> str:
    """An id that sorts by its time: `prefix_` and 26 characters of Crockford base 32.

    50 bits of time are enough until the year 37,000; 80 random bits do not clash in practice.

    Args:
        prefix: What the id names, such as `ses`.
        time_ms: Milliseconds since 1970, UTC.
        entropy: 16 random bytes, each for one character.
    """
    return f"{prefix}_{_time_text(time_ms)}{entropy.translate(_LETTERS).decode()}"


@functools.lru_cache(maxsize=8)
def _time_text(time_ms: int) -> str:
    """Ten characters for a millisecond: runs that begin at once make many ids in it."""
    last = _ALPHABET[time_ms >> 5 & 31] + _ALPHABET[time_ms & 31]
    return _second_text(time_ms >> 10) + last


@functools.lru_cache(maxsize=8)
def _second_text(seconds: int) -> str:
    """Eight characters for 1,024 milliseconds: many ids are made in them."""
    return "".join(_ALPHABET[seconds >> shift & 31] for shift in range(35, -1, -5))
