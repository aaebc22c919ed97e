"""What a run of an `Agent` gives: its events, and what it came to."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any, Final, Generic, NoReturn, TypeVar

import msgspec

from towline_agent.local_host import LocalHost
from towline_agent.tools.output import OutputSpec
from towline_agent.turn import TurnEnd, last_text
from towline_protocol import Event, Message, TurnCompleted, Usage, UsageError

__all__ = ["AgentResult", "EventStream", "StreamBlock", "make_result"]

_O = TypeVar("_O", covariant=True)
_ENTER: Final = (
    "`Agent.stream` is a block, which ends its run when it is left: write `async with "
    "agent.stream(...) as events:`, and in it `async for event in events:`."
)


class AgentResult(msgspec.Struct, Generic[_O], frozen=True, kw_only=True):
    """What a run came to (A4.47)."""

    final_message: str
    """The last words of the model."""
    output: _O
    """The answer in the type that was asked for; `None` when none was, or when the run stopped
    before there was an answer (A4.60)."""
    messages: tuple[Message, ...]
    """The whole conversation; may be fed back as `messages` (A4.50)."""
    steps: int
    """Provider requests that were steps."""
    tool_call_count: int
    """Calls that the model asked for."""
    usage: Usage
    """Tokens of every request of the run (A4.48)."""
    cost: float | None
    """US dollars; `None` when a price is unknown (A4.49)."""
    stop_reason: str
    """Why it stopped."""


class EventStream:
    """The events of one run, in order, each once; those that a block left unread stay readable."""

    def __init__(self) -> None:
        self._events: asyncio.Queue[Event | None] = asyncio.Queue()
        self._task: asyncio.Task[TurnEnd] | None = None
        self._host: LocalHost | None = None
        self._output: OutputSpec[Any] | None = None
        self.result: AgentResult[Any] | None = None
        """What the run came to; `None` until its last event was read."""

    @property
    def messages(self) -> tuple[Message, ...]:
        """The conversation; may be fed back once the block is left, early or not (R25)."""
        return () if self._host is None else self._host.transcript.messages()

    def put(self, event: Event) -> None:
        """Add an event."""
        self._events.put_nowait(event)

    def finish(self) -> None:
        """Say that no more events come."""
        self._events.put_nowait(None)

    def bind(
        self, task: asyncio.Task[TurnEnd], host: LocalHost, output: OutputSpec[Any] | None
    ) -> None:
        """Name the run that the events come from."""
        self._task = task
        self._host = host
        self._output = output

    def __aiter__(self) -> AsyncIterator[Event]:
        return self

    async def __anext__(self) -> Event:
        event = await self._events.get()
        if event is not None:
            return event
        self.finish()  # whoever asks once more is told the same
        assert self._task is not None
        assert self._host is not None
        if self._task.cancelled():  # the block was left early
            raise StopAsyncIteration
        self.result = make_result(self._host, self._task.result(), self._output)
        raise StopAsyncIteration


def make_result(host: LocalHost, end: TurnEnd, output: OutputSpec[Any] | None) -> AgentResult[Any]:
    """What a run came to.

    Args:
        host: Holds its conversation.
        end: How its turn ended; a failure is raised.
        output: The type that was asked for.
    """
    if end.error is not None:
        raise end.error
    messages = host.transcript.messages()
    stop_reason = end.event.stop_reason if isinstance(end.event, TurnCompleted) else "cancelled"
    words = last_text(messages)
    return AgentResult(
        final_message=words,
        output=output.parse(words) if output is not None and stop_reason == "end_turn" else None,
        messages=messages,
        steps=end.spent.steps,
        tool_call_count=host.calls,
        usage=end.spent.usage,
        cost=end.spent.cost,
        stop_reason=stop_reason,
    )


class StreamBlock(AbstractAsyncContextManager[EventStream]):
    """What `Agent.stream` gives: the run begins with the block and ends with it.

    Args:
        inner: The block itself.
    """

    def __init__(self, inner: AbstractAsyncContextManager[EventStream]) -> None:
        self._inner = inner
        self._entered = False

    async def __aenter__(self) -> EventStream:
        if self._entered:
            raise UsageError("This run has begun; call `agent.stream(...)` again for another.")
        self._entered = True
        return await self._inner.__aenter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        return await self._inner.__aexit__(kind, error, trace)

    def __aiter__(self) -> NoReturn:
        raise UsageError(_ENTER)

    def __await__(self) -> NoReturn:
        raise UsageError(_ENTER)
