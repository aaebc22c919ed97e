"""Messages, usage and stop reasons: what goes to a provider and comes back."""

from typing import Final

import msgspec

from towline_protocol.content import Block

__all__ = ["STOP_REASONS", "Limits", "Message", "Usage"]

STOP_REASONS: Final = ("end_turn", "max_tokens", "max_steps", "budget", "time_limit", "refusal")
"""Why a turn that completed has ended. Open: readers keep a word they do not know (A1.9)."""


class Message(msgspec.Struct, frozen=True, gc=False):
    """One message as a provider sees it."""

    role: str
    """`system`, `user`, `assistant` or `tool` (A1.1)."""
    content: tuple[Block, ...]
    """Its blocks, in order."""
    model: str | None = None
    """Who wrote it, as `provider/model`; `None` when unknown. Signatures and opaque blocks mean
    something to that one alone (A2.32)."""


class Usage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Tokens, as the provider counted them (A1.13)."""

    input: int = 0
    """Input tokens read anew: the uncached remainder."""
    output: int = 0
    """Output tokens, `reasoning` among them."""
    cache_read: int = 0
    """Input tokens taken from the provider's cache."""
    cache_write: int = 0
    """Input tokens written to the provider's cache."""
    reasoning: int = 0
    """Output tokens that were thought, not said; contained in `output`."""

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            input=self.input + other.input,
            output=self.output + other.output,
            cache_read=self.cache_read + other.cache_read,
            cache_write=self.cache_write + other.cache_write,
            reasoning=self.reasoning + other.reasoning,
        )


class Limits(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The bounds of one turn; what is `None` is not bounded (A4.8)."""

    max_steps: int = 24
    """Provider requests, hand-over not counted (A4.2)."""
    max_tokens: int | None = None
    """Input and output tokens of all requests together."""
    max_cost: float | None = None
    """US dollars; counts only where prices are known."""
    wall_s: float | None = None
    """Seconds from the turn's start."""
