"""Turn, step and message events."""

import msgspec

from towline_protocol.content import Block
from towline_protocol.events.data import Data, EventData
from towline_protocol.faults import Fault
from towline_protocol.ids import MessageId, PromptId
from towline_protocol.messages import Limits, Usage

__all__ = [
    "Context",
    "Fallback",
    "MessageDiscarded",
    "MessageEnded",
    "MessageStarted",
    "StepEnded",
    "StepStarted",
    "TextDelta",
    "ThinkingDelta",
    "ToolCallDelta",
    "TurnCancelled",
    "TurnCompleted",
    "TurnFailed",
    "TurnResumed",
    "TurnStarted",
    "Waiting",
]


class TurnStarted(EventData, frozen=True, kw_only=True, tag="turn_started"):
    """A turn began."""

    prompt: PromptId
    """The prompt that started it."""
    model: str
    """`provider/model`."""
    limits: Limits
    """The bounds it runs in."""


class TurnResumed(EventData, frozen=True, kw_only=True, tag="turn_resumed"):
    """A turn that a crash cut goes on (C5.4)."""

    attempt: int
    """The resumption's number, from 1."""


class TurnCompleted(EventData, frozen=True, kw_only=True, tag="turn_completed"):
    """The turn ended in order."""

    stop_reason: str
    """One of `STOP_REASONS`; never `cancelled` or `failed` (C1.22)."""
    usage: Usage
    """The sum over all its requests."""
    cost: float | None = None
    """US dollars; `None` when a price is unknown (A4.49)."""
    summary: str | None = None
    """The first sentence of the answer (A4.29)."""
    speak: str | None = None
    """What to say aloud, when the prompt asked for it."""


class TurnFailed(EventData, frozen=True, kw_only=True, tag="turn_failed"):
    """The turn ended with a fault."""

    fault: Fault
    """What went wrong and what to do next."""
    usage: Usage
    """The sum over all its requests."""


class TurnCancelled(EventData, frozen=True, kw_only=True, tag="turn_cancelled"):
    """The turn was stopped by somebody."""

    by: str
    """Who stopped it."""
    reason: str
    """Why."""
    usage: Usage
    """The sum over all its requests."""


class Context(Data, frozen=True, kw_only=True):
    """How full the model's window is."""

    used: int
    """Tokens of the last request and answer."""
    window: int | None = None
    """Tokens that fit; `None` when unknown."""


class StepStarted(EventData, frozen=True, kw_only=True, tag="step_started"):
    """A request goes to the provider."""

    model: str
    """`provider/model`."""
    attempt: int = 1
    """The try's number within the step, from 1."""
    failed: Usage | None = None
    """Tokens of requests before it that failed, which no event has told of."""
    failed_cost: float | None = None
    """US dollars for these; `None` when unknown."""


class StepEnded(EventData, frozen=True, kw_only=True, tag="step_ended"):
    """The provider's answer is whole."""

    stop_reason: str
    """Why the model stopped: a stop reason or `tool_calls`."""
    usage: Usage
    """Of this request."""
    cost: float | None = None
    """US dollars; `None` when unknown."""
    context: Context | None = None
    """How full the window is now."""


class Waiting(EventData, frozen=True, kw_only=True, tag="waiting"):
    """The turn waits; any later event ends the wait."""

    until: str
    """RFC 3339 time: when it goes on (`rate_limit`, `retry`), else when it is given up."""
    reason: str
    """Such as `rate_limit`, `retry`, `slot`, `model_loading`, or `reading` once these are over."""


class Fallback(EventData, frozen=True, kw_only=True, tag="fallback"):
    """The turn goes on with another model."""

    from_: str = msgspec.field(name="from")
    """The model that failed."""
    to: str
    """The model that takes over."""
    fault: Fault
    """Why."""


class MessageStarted(EventData, frozen=True, kw_only=True, tag="message_started"):
    """A message is being written."""

    message: MessageId
    """Its id."""
    role: str
    """`assistant`."""


class TextDelta(EventData, frozen=True, kw_only=True, tag="text_delta", gc=False):
    """More text of an open message."""

    message: MessageId
    """The message."""
    block: int
    """The block's place in it, from 0."""
    at: int
    """Code points of the block before this piece."""
    text: str
    """The piece."""


class ThinkingDelta(EventData, frozen=True, kw_only=True, tag="thinking_delta", gc=False):
    """More thinking of an open message."""

    message: MessageId
    """The message."""
    block: int
    """The block's place in it, from 0."""
    at: int
    """Code points of the block before this piece."""
    text: str
    """The piece."""


class ToolCallDelta(EventData, frozen=True, kw_only=True, tag="tool_call_delta", gc=False):
    """More of a call's arguments, while the model writes them."""

    message: MessageId
    """The message."""
    block: int
    """The block's place in it, from 0."""
    at: int
    """Code points of the arguments before this piece."""
    text: str
    """The piece."""


class MessageEnded(EventData, frozen=True, kw_only=True, tag="message_ended"):
    """The message is whole: this is the truth about it (C1.8)."""

    message: MessageId
    """Its id."""
    content: tuple[Block, ...]
    """All of it."""
    cut: str | None = None
    """Why it is not whole, such as `cancelled`; `None` when it is (A4.24)."""


class MessageDiscarded(EventData, frozen=True, kw_only=True, tag="message_discarded"):
    """An open message is given up; it counts for nothing."""

    message: MessageId
    """Its id."""
    reason: str
    """Why."""
