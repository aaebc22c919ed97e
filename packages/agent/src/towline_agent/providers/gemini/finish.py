"""Why an answer ended, in Google's words and numbers (A1.14, A2.50)."""

from typing import Any, Final

from towline_agent.providers.surrogates import mend

__all__ = ["BROKEN", "CUT", "REFUSED", "read_block", "read_reason"]

CUT: Final = frozenset({"MAX_TOKENS", "CONTINUATION"})
"""The answer hit a length limit."""
REFUSED: Final = frozenset({
    "BLOCKLIST", "ESCALATION", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION", "IMAGE_SAFETY",
    "JAILBREAK", "LANGUAGE", "MODEL_ARMOR", "PROHIBITED_CONTENT", "PUP_LIMITED_DISABLED",
    "RECITATION", "SAFETY", "SPII",
})  # fmt: skip
"""A filter or the model itself said no."""
BROKEN: Final = {
    "MALFORMED_FUNCTION_CALL": "wrote a call that cannot be read",
    "MALFORMED_RESPONSE": "wrote an answer that cannot be read",
    "TOO_MANY_TOOL_CALLS": "used the provider's own tools without end",
    "UNEXPECTED_TOOL_CALL": "called a tool that it was not offered",
}
"""The model failed, and what it did; another try may be better."""

_MAX_CHARS: Final = 100
"""Characters of a reason that nobody knows."""
_SHARED: Final = (
    "FINISH_REASON_UNSPECIFIED", "STOP", "MAX_TOKENS", "SAFETY", "RECITATION", "OTHER",
)  # fmt: skip
_GEMINI: Final = (
    *_SHARED, "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "MALFORMED_FUNCTION_CALL",
    "IMAGE_SAFETY", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "IMAGE_PROHIBITED_CONTENT",
    "IMAGE_OTHER", "NO_IMAGE", "IMAGE_RECITATION",
)  # fmt: skip
_VERTEX: Final = (
    *_SHARED, "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "MALFORMED_FUNCTION_CALL", "MODEL_ARMOR",
)  # fmt: skip
"""The words by their numbers, which are not the same in both APIs."""


_BLOCKED: Final = (
    "BLOCKED_REASON_UNSPECIFIED", "SAFETY", "OTHER", "BLOCKLIST", "PROHIBITED_CONTENT",
)  # fmt: skip
"""Why a prompt was stopped, by number as far as both APIs agree."""


def read_block(value: Any) -> str:
    """Why a prompt was not let through, as a word; empty when it was."""
    return _word(value, _BLOCKED)


def read_reason(value: Any, *, vertex: bool) -> str:
    """A finish reason as a word; empty when there is none.

    Args:
        value: As it came: a word, or a number when the peer encodes enumerations so.
        vertex: Whether the numbers are those of Vertex AI.
    """
    return _word(value, _VERTEX if vertex else _GEMINI)


def _word(value: Any, names: tuple[str, ...]) -> str:
    if isinstance(value, bool) or not isinstance(value, int | str):
        return ""
    if isinstance(value, int) and 0 <= value < len(names):
        return names[value]
    return mend(str(value)[:_MAX_CHARS])
