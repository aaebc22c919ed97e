"""Typed, time-ordered ids (C1.1)."""

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
_TIME_CHARS: Final = 10  # 50 bits of milliseconds: enough until the year 37,000
_ENTROPY_CHARS: Final = 16  # 80 bits: no clash in practice


def mint_id(prefix: str, time_ms: int, entropy: int) -> str:
    """An id that sorts by its time: `prefix_` and 26 characters of Crockford base 32.

    Args:
        prefix: What the id names, such as `ses`.
        time_ms: Milliseconds since 1970, UTC.
        entropy: A random number; its low 80 bits are used.
    """
    head = _base32(time_ms, _TIME_CHARS)
    return f"{prefix}_{head}{_base32(entropy, _ENTROPY_CHARS)}"


def _base32(number: int, width: int) -> str:
    return "".join(_ALPHABET[(number >> (5 * place)) & 31] for place in reversed(range(width)))
