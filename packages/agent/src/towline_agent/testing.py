"""Fakes for tests, ours and yours: a scripted provider, transport and host, and a clock.

```python
provider = ScriptedProvider(call("add", a=2, b=3), "Five.")
result = await Agent(provider, tools=[add]).run("What is 2 and 3?")
assert provider.requests[1].messages[-1].role == "tool"
```
"""

import asyncio
import itertools
import json
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

import msgspec

from towline_agent.host import Mint, Stop
from towline_agent.local_host import Answerer, LocalHost
from towline_agent.plan import Plan
from towline_agent.providers.base import (
    ArgumentsPiece,
    Model,
    Piece,
    Provider,
    Request,
    StepAnswer,
    StepFailed,
    StepResult,
    TextPiece,
    ThinkingPiece,
)
from towline_agent.providers.transport import HttpAnswer, HttpCall, TransportFailed, is_document
from towline_agent.tools.tool import Tool
from towline_agent.tools.toolset import Toolset
from towline_agent.turn import Start, TurnEnd, run_turn
from towline_agent.workspaces.memory import MemoryWorkspace
from towline_protocol import (
    Block,
    CallId,
    Event,
    Message,
    MessageDiscarded,
    MessageEnded,
    MessageStarted,
    PermissionRequested,
    PermissionResolved,
    Private,
    PromptAdmitted,
    PromptId,
    SseDecoder,
    SseEvent,
    Text,
    Thinking,
    ToolCall,
    ToolEnded,
    ToolProposed,
    Transcript,
    Usage,
    UsageError,
)

__all__ = [
    "FakeClock",
    "Script",
    "Scripted",
    "ScriptedHost",
    "ScriptedProvider",
    "ScriptedTransport",
    "call",
    "counted_ids",
    "event_stream",
    "say",
    "scripted_plan",
]

_OK: Final = 200

_E = TypeVar("_E", bound=Event)

Script = str | StepResult | Sequence[Piece | asyncio.Event | StepResult]
"""One step of a `ScriptedProvider`: words, a result, or what happens until the result."""


def say(text: str, *, usage: Usage | None = None) -> StepAnswer:
    """An answer in words."""
    return StepAnswer(
        content=(Text(text=text),), stop_reason="end_turn", usage=usage or Usage(input=10, output=5)
    )


def call(name: str, /, **arguments: Any) -> StepAnswer:
    """An answer that calls one tool."""
    text = json.dumps(arguments)
    block = ToolCall(id=CallId(""), name=name, arguments=text, wire_id=f"wire_{name}")
    return StepAnswer(content=(block,), stop_reason="tool_calls", usage=Usage(input=10, output=5))


class ScriptedProvider:
    """A provider that plays its script, one entry a step; see `Provider`.

    An entry is words, a `StepAnswer`, a `StepFailed`, or a list of pieces to tell and events to
    wait for. A list without a result at its end becomes an answer of its pieces.

    Args:
        script: What each step does. More steps than entries raise `UsageError`.
        model: The model that it claims to be.
    """

    def __init__(self, *script: Script, model: Model | None = None) -> None:
        self.model = model or Model(provider="scripted", id="scripted")
        """The model that it claims to be."""
        self.requests: list[Request] = []
        """All requests, in order."""
        self.closed = 0
        """How often `aclose` was called."""
        self._script = list(script)

    async def step(self, request: Request, on_piece: Callable[[Piece], None]) -> StepResult:
        """Play the next entry."""
        self.requests.append(request)
        if not self._script:
            raise UsageError(f"The script ended before step {len(self.requests)}; add an entry.")
        entry = self._script.pop(0)
        if isinstance(entry, str):
            entry = say(entry)
        if isinstance(entry, StepAnswer):
            for piece in _pieces(entry.content):
                on_piece(piece)
            return entry
        if isinstance(entry, StepFailed):
            return entry
        return await _play(entry, on_piece)

    async def models(self) -> tuple[str, ...]:
        """Its one model."""
        return (self.model.id,)

    async def aclose(self) -> None:
        """Count the call."""
        self.closed += 1


async def _play(
    entry: Sequence[Piece | asyncio.Event | StepResult], on_piece: Callable[[Piece], None]
) -> StepResult:
    told: list[Piece] = []
    for part in entry:
        if isinstance(part, asyncio.Event):
            await part.wait()
        elif isinstance(part, StepAnswer | StepFailed):
            return part
        else:
            told.append(part)
            on_piece(part)
    return _answer(told)


def _answer(told: list[Piece]) -> StepAnswer:
    blocks: dict[int, Block] = {}
    for piece in told:
        before = blocks.get(piece.block)
        if isinstance(piece, TextPiece):
            text = before.text if isinstance(before, Text) else ""
            blocks[piece.block] = Text(text=text + piece.text)
        elif isinstance(piece, ThinkingPiece):
            text = before.text if isinstance(before, Thinking) else ""
            blocks[piece.block] = Thinking(text=text + piece.text)
        else:
            raise UsageError("A call cannot be made of pieces alone; end the list with an answer.")
    content = tuple(blocks[place] for place in sorted(blocks))
    return StepAnswer(content=content, stop_reason="end_turn", usage=Usage(input=10, output=5))


def _pieces(content: tuple[Block, ...]) -> list[Piece]:
    pieces: list[Piece] = []
    for place, block in enumerate(content):
        match block:
            case Text(text=text) if text:
                pieces.append(TextPiece(place, text))
            case Thinking(text=text) if text:
                pieces.append(ThinkingPiece(place, text))
            case ToolCall(arguments=text) if text:
                pieces.append(ArgumentsPiece(place, text))
            case _:
                pass
    return pieces


def event_stream(*values: Any, done: bool = True) -> bytes:
    """Values as server-sent events, each as one JSON line, then `[DONE]`."""
    lines = [f"data: {json.dumps(value)}\n\n" for value in values]
    if done:
        lines.append("data: [DONE]\n\n")
    return "".join(lines).encode()


class Scripted(msgspec.Struct, frozen=True, kw_only=True):
    """One answer of a `ScriptedTransport`."""

    status: int = 200
    """The HTTP status."""
    headers: dict[str, str] = {}
    """Names in lower case."""
    parts: tuple[bytes | asyncio.Event | TransportFailed, ...] = ()
    """The body in the chunks in which it comes; an event is waited for, a failure is raised."""


class ScriptedTransport:
    """A transport that plays its script, one entry a request; see `Transport`.

    Args:
        script: The answers in order; bare bytes are the body of a 200 in one chunk. More requests
            than answers raise `UsageError`.
    """

    def __init__(self, *script: Scripted | bytes) -> None:
        self.calls: list[HttpCall] = []
        """All requests, in order."""
        self.cancelled = 0
        """How many requests were cancelled while they waited."""
        self.closed = 0
        """How often `aclose` was called."""
        self._script = list(script)

    async def sse(self, call: HttpCall, on_event: Callable[[SseEvent], bool]) -> HttpAnswer:
        """Play the next answer as a stream, or as the document that it is."""
        answer = self._next(call)
        decoder = SseDecoder()
        body = b""
        streams = False
        for part in answer.parts:
            body += await self._chunk(part)
            if answer.status == _OK and body.strip() and not is_document(body):
                streams = True
            if streams:
                for event in decoder.feed(body):
                    on_event(event)
                body = b""
        if streams:
            for event in decoder.feed(b"\n\n"):
                on_event(event)
        return HttpAnswer(status=answer.status, headers=answer.headers, body=body)

    async def json(self, call: HttpCall) -> HttpAnswer:
        """Play the next answer as a document."""
        answer = self._next(call)
        body = b"".join([await self._chunk(part) for part in answer.parts])
        return HttpAnswer(status=answer.status, headers=answer.headers, body=body)

    async def aclose(self) -> None:
        """Count the call."""
        self.closed += 1

    def _next(self, call: HttpCall) -> Scripted:
        self.calls.append(call)
        if not self._script:
            raise UsageError(f"The script ended before request {len(self.calls)}; add an answer.")
        answer = self._script.pop(0)
        return Scripted(parts=(answer,)) if isinstance(answer, bytes) else answer

    async def _chunk(self, part: bytes | asyncio.Event | TransportFailed) -> bytes:
        if isinstance(part, bytes):
            return part
        if isinstance(part, TransportFailed):
            raise part
        try:
            await part.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return b""


class FakeClock:
    """A clock that nobody waits for; see `Clock`.

    `sleep` moves the time on and returns at once, other tasks having had a turn. With `held` it
    waits until `advance` has moved the time far enough.

    Args:
        now_ms: Where it starts, in milliseconds since 1970.
        held: Whether sleepers wait for `advance`.
    """

    def __init__(self, now_ms: int = 1_800_000_000_000, *, held: bool = False) -> None:
        self.held = held
        """Whether sleepers wait for `advance`."""
        self.sleeps: list[float] = []
        """All delays that were asked for, in seconds."""
        self._start_ms = now_ms
        self._elapsed_s = 0.0
        self._sleepers: list[tuple[float, asyncio.Event]] = []
        self._someone = asyncio.Event()

    def now_ms(self) -> int:
        """Milliseconds since 1970, UTC."""
        return self._start_ms + round(self._elapsed_s * 1000)

    def monotonic(self) -> float:
        """Seconds since it was made."""
        return self._elapsed_s

    async def sleep(self, delay_s: float) -> None:
        """Wait, cancellably."""
        self.sleeps.append(delay_s)
        if not self.held:
            self._elapsed_s += max(delay_s, 0.0)
            await asyncio.sleep(0)
            return
        woken = asyncio.Event()
        sleeper = (self._elapsed_s + delay_s, woken)
        self._sleepers.append(sleeper)
        self._someone.set()
        try:
            await woken.wait()
        finally:
            if sleeper in self._sleepers:
                self._sleepers.remove(sleeper)

    def advance(self, seconds: float) -> None:
        """Move the time on and wake those whose time has come."""
        self._elapsed_s += seconds
        for due_s, woken in list(self._sleepers):
            if due_s <= self._elapsed_s:
                woken.set()

    async def wait_for_sleeper(self) -> None:
        """Return once somebody sleeps; bound it with `asyncio.timeout`."""
        while not self._sleepers:
            self._someone.clear()
            await self._someone.wait()


class ScriptedHost(LocalHost):
    """A host that keeps what a turn emits, and can stop and steer it; see `Host`.

    Args:
        prompt: What the turn starts with.
        mint: Ids.
        earlier: An earlier conversation.
        answer: Decides permission requests; without it they are denied.
    """

    def __init__(
        self,
        prompt: str = "Hi",
        *,
        mint: Mint | None = None,
        earlier: tuple[Message, ...] = (),
        answer: Answerer | None = None,
    ) -> None:
        super().__init__(mint=mint or counted_ids(), earlier=earlier, answer=answer)
        self.log: list[tuple[Event, tuple[Private, ...]]] = []
        """All that was emitted, with what is kept beside it."""
        self.settled = 0
        """How many of these were emitted when `settle` last returned."""
        self._earlier = earlier
        self._steers: list[PromptId] = []
        self._stop = Stop(by="", reason="")
        self._stopped = asyncio.Event()
        self._bell = asyncio.Event()
        self.admit(prompt)

    @property
    def events(self) -> list[Event]:
        """All that was emitted, in order."""
        return [event for event, _ in self.log]

    async def run(
        self, plan: Plan, start: Start | None = None, *, within_s: float = 10.0
    ) -> TurnEnd:
        """Run its turn.

        Args:
            plan: What it works with.
            start: Where it begins; `None` for a new turn.
            within_s: Seconds after which it raises `TimeoutError`.
        """
        async with asyncio.timeout(within_s):
            return await run_turn(plan, self, start or Start(turn=self.turn, prompt=self.prompt))

    def emit(self, event: Event, private: tuple[Private, ...] = ()) -> None:
        """Keep an event."""
        self.log.append((event, private))
        super().emit(event, private)
        self._bell.set()

    async def wait_for(self, kind: type[_E]) -> _E:
        """The first event of a kind, once it is there; bound it with `asyncio.timeout`."""
        while True:
            for event in self.events:
                if isinstance(event, kind):
                    return event
            self._bell.clear()
            await self._bell.wait()

    async def settle(self) -> None:
        """Count what is durable now."""
        self.settled = len(self.log)

    def steer(self, text: str) -> None:
        """Say something into the running turn."""
        prompt = PromptId(f"pmt_steer_{len(self.log)}")
        self.emit(PromptAdmitted(prompt=prompt, content=(Text(text=text),), when="steer"))
        self._steers.append(prompt)

    def steers(self) -> tuple[PromptId, ...]:
        """What was said, once."""
        prompts, self._steers = tuple(self._steers), []
        return prompts

    def stop(self, by: str = "test", reason: str = "enough") -> None:
        """Stop the turn."""
        self._stop = Stop(by=by, reason=reason)
        self._stopped.set()

    async def stopped(self) -> Stop:
        """Wait for `stop`."""
        await self._stopped.wait()
        return self._stop

    def loose_ids(self) -> set[str]:
        """The messages, calls and permissions that did not begin once and end once (C1.23)."""
        begun: Counter[str] = Counter()
        ended: Counter[str] = Counter()
        for event in self.events:
            match event:
                case MessageStarted(message=id_) | ToolProposed(call=id_):
                    begun[id_] += 1
                case PermissionRequested(permission=id_):
                    begun[id_] = 1  # the same id again replaces the request (C5.8)
                case MessageEnded(message=id_) | MessageDiscarded(message=id_):
                    ended[id_] += 1
                case ToolEnded(call=id_) | PermissionResolved(permission=id_):
                    ended[id_] += 1
                case _:
                    pass
        return {id_ for id_ in {*begun, *ended} if (begun[id_], ended[id_]) != (1, 1)}

    def fold(self) -> Transcript:
        """The conversation made again from what was emitted, as after a restart (D6)."""
        transcript = Transcript(self._earlier)
        for event, private in self.log:
            transcript.add(event, private, self.turn)
        return transcript


def counted_ids() -> Mint:
    """Ids that count: `call_1`, then `msg_2`."""
    numbers = itertools.count(1)

    def mint(prefix: str) -> str:
        return f"{prefix}_{next(numbers)}"

    return mint


def scripted_plan(provider: Provider, *tools: Tool | Callable[..., Any], **facts: Any) -> Plan:
    """A plan whose world is made of fakes; without `mode` its calls run unasked.

    Args:
        provider: Who is asked.
        tools: What the model may call.
        facts: Other fields of `Plan`.
    """
    made: dict[str, Any] = {
        "system": "You are an agent.",
        "workspace": MemoryWorkspace(),
        "clock": FakeClock(),
        "mint": counted_ids(),
        "mode": "auto",
        "jitter": lambda: 1.0,
        **facts,
    }
    return Plan(provider=provider, tools=Toolset(tools), **made)
