"""What is different from gateway to gateway and from Claude to Claude, as data."""

import re
from typing import Final

import msgspec

from towline_agent.providers.abilities import plain_name

__all__ = [
    "BUDGETS",
    "EFFORTS",
    "OFFICIAL_FLAGS",
    "AnthropicFlags",
    "ClaudeQuirks",
    "claude_quirks",
]

EFFORTS: Final = ("low", "medium", "high", "xhigh", "max")
"""All efforts of the API, weakest first."""

BUDGETS: Final = {
    "minimal": 1_024,
    "low": 2_048,
    "medium": 8_192,
    "high": 16_384,
    "xhigh": 24_576,
    "max": 32_000,
}
"""Tokens to think with, by effort, for models that want a number (A2.35). The least is the API's
own; above the greatest it advises against waiting for one answer."""


class AnthropicFlags(msgspec.Struct, frozen=True, kw_only=True):
    """How one gateway speaks the Messages API; the defaults fit Anthropic's own host (A2.43)."""

    bearer: bool = False
    """Whether the key is a bearer token in `authorization` instead of an `x-api-key`."""
    no_stream: bool = False
    """It cannot stream: the answer is asked for whole."""
    cache_marks: bool = True
    """Whether it takes cache breakpoints (A2.34)."""
    interleaved: bool = True
    """Whether it takes the header that lets a model think between calls (A2.36)."""
    unsigned_thinking: bool = False
    """Whether it wants thinking back that nobody signed; Anthropic's own host refuses it (R31)."""
    documents: bool = True
    """Whether it reads documents; where it does not, text files go as text."""
    schema_output: bool = True
    """Whether it can hold an answer to a JSON Schema."""
    web_search: str | None = "web_search_20250305"
    """The version of its own web search (A2.62); `None` when it has none."""
    clears_results: bool = False
    """Whether it leaves old results of calls out of what the model is shown, when it is asked to
    (A4.40). Only Anthropic's own host is known to."""


OFFICIAL_FLAGS: Final = AnthropicFlags(clears_results=True)
"""Anthropic's own host."""


class ClaudeQuirks(msgspec.Struct, frozen=True, kw_only=True):
    """What sets one Claude apart beyond the facts of `Model`; the defaults fit other models."""

    efforts: tuple[str, ...] = EFFORTS
    """The efforts that it takes, weakest first."""
    always_thinks: bool = False
    """Whether its thinking cannot be switched off."""
    forced_choice: bool = True
    """Whether it can be made to call a tool."""
    schema_output: bool = True
    """Whether it can be held to a JSON Schema."""


_ROWS: Final = (
    # the first row that fits the beginning of the name decides
    (r"claude-(?:fable|mythos)-5$", ClaudeQuirks(always_thinks=True)),
    (r"claude-(?:fable|mythos)", ClaudeQuirks(always_thinks=True, forced_choice=False)),
    (r"claude-(?:opus|sonnet)-5-[5-9]", ClaudeQuirks(always_thinks=True)),
    (r"claude-opus-4-6", ClaudeQuirks(efforts=("low", "medium", "high", "max"))),
    (r"claude-sonnet-4-6", ClaudeQuirks(efforts=("low", "medium", "high"))),
    (r"claude-(?:[0-3]|instant|v\d)", ClaudeQuirks(schema_output=False)),
    (r"claude-(?:opus|sonnet)-4(?:-0)?$", ClaudeQuirks(schema_output=False)),
)
_OTHER: Final = ClaudeQuirks()


def claude_quirks(model: str) -> ClaudeQuirks:
    """What sets a model apart, by its name as any provider writes it."""
    name = plain_name(model)
    return next((quirks for row, quirks in _ROWS if re.match(row, name)), _OTHER)
