"""The provider seam: one request to a model, whatever its dialect (A1.16 to A1.27)."""

from collections.abc import Callable
from typing import Any, Final, Protocol, runtime_checkable

import msgspec

from towline_agent.errors import ProviderError
from towline_protocol import Block, Message, SearchArtifact, Usage

__all__ = [
    "EFFORTS",
    "ArgumentsPiece",
    "Controls",
    "Model",
    "Paced",
    "Piece",
    "Provider",
    "Request",
    "StepAnswer",
    "StepFailed",
    "StepResult",
    "TextPiece",
    "ThinkingPiece",
    "ToolSpec",
    "nearest_effort",
]


EFFORTS: Final = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
"""All efforts, weakest first (A1.15)."""


def nearest_effort(effort: str, known: tuple[str, ...]) -> str:
    """The effort itself, else the next weaker one of those known, else the weakest (A1.15).

    A word that is none of `EFFORTS` is the caller's own, and stays.

    Args:
        effort: What is asked for.
        known: What the model takes, weakest first; at least one.
    """
    if effort in known or effort not in EFFORTS:
        return effort
    weaker = [word for word in known if EFFORTS.index(word) < EFFORTS.index(effort)]
    return weaker[-1] if weaker else known[0]


class Model(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a model; the defaults are safe for one that nobody knows (A2.84)."""

    provider: str
    """The provider's name in the catalog."""
    id: str
    """The provider's own name of the model."""
    window: int | None = None
    """Tokens that fit, answer included; `None` when unknown."""
    output_cap: int | None = None
    """The most tokens of one answer."""
    price_input: float | None = None
    """US dollars for a million input tokens; `None` when unknown."""
    price_output: float | None = None
    """US dollars for a million output tokens; `None` when unknown."""
    price_cache_read: float | None = None
    """US dollars for a million tokens out of the cache; `None` for the price of input."""
    price_cache_write: float | None = None
    """US dollars for a million tokens into the cache; `None` for the price of input."""
    thinking: str = ""
    """How it thinks: `none`, `budget` (a number of tokens), `adaptive` (as much as it finds right,
    guided by effort) or `effort` (by effort alone); empty when unknown."""
    refuses: tuple[str, ...] = ()
    """Controls of `Request` that it refuses, such as `temperature` (A1.19)."""
    idle_s: float = 120.0
    """Seconds without a byte that count as a dead stream (A3.4)."""
    concurrency: int | None = None
    """Requests that it serves at once; `None` for no bound."""
    one_call_per_step: bool = False
    """Further calls of a step are cut: the model guesses what the first will answer."""
    named_choice: bool = True
    """Whether a tool can be asked for by name."""
    none_without_tools: bool = False
    """Whether `tools` must be left out for tool choice `none`."""
    plain_tools: bool = False
    """Whether only required parameters are shown: a small model fills in every one it sees."""
    bare_prompt: bool = False
    """Whether our system prompt is left out: a small model keeps to its tools only under the words
    it was trained with."""
    fast: bool = False
    """Whether it is cheap and quick enough for titles (A2.94)."""
    images: bool | None = None
    """Whether it sees pictures; `None` when unknown."""
    manages_context: bool = False
    """Whether the provider makes room in the window itself (A4.40). Each of ours says so of the
    model that it was made for."""

    @property
    def name(self) -> str:
        """`provider/model`."""
        return f"{self.provider}/{self.id}"


class ToolSpec(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A tool as a model is told of it."""

    name: str
    """Its name."""
    description: str
    """What it does and when to use it."""
    parameters: dict[str, Any]
    """JSON Schema of its arguments, an object."""


class Request(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One request; what is unset is not sent (A1.16, A1.18)."""

    model: str
    """The provider's own name of the model."""
    system: str = ""
    """The stable system prefix; empty for none."""
    messages: tuple[Message, ...]
    """The conversation, every call with exactly one result."""
    tools: tuple[ToolSpec, ...] = ()
    """What the model may call."""
    tool_choice: str = "auto"
    """`auto`, `none`, `required` or a tool's name (A1.17)."""
    max_tokens: int | None = None
    """The most tokens of the answer."""
    temperature: float | None = None
    """Sampling temperature."""
    top_p: float | None = None
    """Nucleus sampling."""
    stop: tuple[str, ...] = ()
    """Texts that end the answer."""
    effort: str | None = None
    """How much to think (A1.15)."""
    thinking_budget: int | None = None
    """Tokens to think with."""
    output: dict[str, Any] | None = None
    """JSON Schema that the answer must fit."""
    server_tools: tuple[str, ...] = ()
    """Tools of the provider's own that it may use, such as `web_search` (A2.60)."""
    trailing: str = ""
    """Words after the conversation, made anew for each step and never stored (A4.11). They go to
    the end of the last message, behind whatever is cached."""
    cache_key: str = ""
    """Requests with the same key share most of their beginning (A2.29)."""


class Controls(msgspec.Struct, frozen=True, kw_only=True):
    """How a model should write; what is `None` is left to it (A1.16, A1.18)."""

    max_tokens: int | None = None
    """The most tokens of one answer; `None` for what fits, 8,192 at most (A1.20)."""
    temperature: float | None = None
    """Sampling temperature."""
    top_p: float | None = None
    """Nucleus sampling."""
    stop: tuple[str, ...] = ()
    """Texts that end an answer."""
    thinking_budget: int | None = None
    """Tokens to think with."""


class TextPiece(msgspec.Struct, frozen=True, gc=False):
    """More text."""

    block: int
    """The block's place in the answer, from 0."""
    text: str
    """The piece; never empty."""


class ThinkingPiece(msgspec.Struct, frozen=True, gc=False):
    """More thinking."""

    block: int
    """The block's place in the answer, from 0."""
    text: str
    """The piece; never empty."""


class ArgumentsPiece(msgspec.Struct, frozen=True, gc=False):
    """More of a call's arguments."""

    block: int
    """The block's place in the answer, from 0."""
    text: str
    """The piece; never empty."""


Piece = TextPiece | ThinkingPiece | ArgumentsPiece
"""What a provider says while it answers."""


class StepAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The model's whole answer."""

    content: tuple[Block, ...]
    """Its blocks, at the places that the pieces named. Calls have no id of ours yet: `id` is empty
    and `wire_id` is what the provider sent."""
    stop_reason: str
    """`end_turn`, `tool_calls`, `max_tokens` or `refusal`."""
    raw_stop_reason: str | None = None
    """The provider's own word (A1.14)."""
    usage: Usage = Usage()
    """Tokens of this request."""
    notices: tuple[str, ...] = ()
    """What was odd but did no harm, for people (A1.19)."""
    searches: tuple[SearchArtifact, ...] = ()
    """What the provider's own search found (A2.63)."""
    made_room: str = ""
    """How the provider made room in the window, for people (A4.40); empty when it did not."""
    used: int | None = None
    """Tokens that the conversation takes from now on, estimated, where it has shrunk since `usage`
    was counted; `None` for what that says."""


class StepFailed(msgspec.Struct, frozen=True, kw_only=True):
    """The request came to nothing."""

    error: ProviderError
    """What went wrong; not raised, since the loop decides what it means."""
    content: tuple[Block, ...] = ()
    """What had come before it (A3.9)."""
    streamed: bool = False
    """Whether a piece was told: then nothing is sent again (A3.32)."""
    usage: Usage = Usage()
    """Tokens that were counted all the same."""


StepResult = StepAnswer | StepFailed
"""The one outcome of a step (A1.22)."""


class Provider(Protocol):
    """Someone to ask: an address, a credential and one model.

    `step` returns exactly one result and raises for nothing that the model, the network or the
    request did (A1.24). `on_piece` is a plain function, called in wire order and never after `step`
    has returned (A1.23). Cancelling `step` closes its connection before the cancellation goes on
    (A1.25). `aclose` is idempotent; the provider may be used again after it.
    """

    model: Model
    """The model and what is known of it."""

    async def step(self, request: Request, on_piece: Callable[[Piece], None]) -> StepResult:
        """Send one request and read its answer."""
        ...

    async def models(self) -> tuple[str, ...]:
        """The models this address offers; the known ones when it cannot be asked (A1.27)."""
        ...

    async def aclose(self) -> None:
        """Give back connections."""
        ...


@runtime_checkable
class Paced(Protocol):
    """What a provider that knows its limits offers besides: holding back before they are hit.

    One with an attribute `has_limits` is only asked while that is true: counting tokens takes time.
    """

    def pause_s(self, tokens: int) -> float:
        """Seconds to hold back a request of so many tokens; 0.0 to go (A3.25)."""
        ...
