"""Both ends of a stream without a network: a session that only streams, and an ASGI client."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, MutableMapping
from contextlib import asynccontextmanager
from typing import Any, Final

from towline_protocol import (
    Envelope,
    Hello,
    MessageId,
    Notice,
    Partial,
    SessionId,
    SseDecoder,
    SseEvent,
    Text,
    TextDelta,
    encode,
    encode_event,
)
from towline_server.store.event_store import EventStore, append_and_wait
from towline_server.store.records import Append, SessionRow, StoredRow
from towline_server.stream.follow import Cursor, catch_up
from towline_server.stream.hub import Hub, Subscriber
from towline_server.stream.pump import HEARTBEAT_S, STALL_S, EventStream

__all__ = ["MESSAGE", "SESSION", "Line", "Wire", "connect_wire"]

SESSION: Final = SessionId("ses_1")
"""The session of a `Line`."""
MESSAGE: Final = MessageId("msg_1")
"""The one message that a `Line` has open once it has text."""

_TIME: Final = "2026-01-31T09:05:00.250Z"
_PATIENCE_S: Final = 10.0  # the longest that a test waits for anything here

_Message = MutableMapping[str, Any]
_Receive = Callable[[], Awaitable[_Message]]
_Send = Callable[[_Message], Awaitable[None]]
_App = Callable[[_Message, _Receive, _Send], Awaitable[None]]


class Line:
    """A `Source` whose events are told to happen: committed first, published when asked.

    What comes after an event that is not published yet waits behind it (C1.7).
    """

    def __init__(self, store: EventStore) -> None:
        self.store = store
        """Where its events are kept."""
        self.hub = Hub()
        """Its readers."""
        self.last_seq = 0
        """The last published number."""
        self.committed = 0
        """The last stored number."""
        self.closed = False
        """Whether it takes no more prompts."""
        self.text = ""
        """The published text of its open message."""
        self._waiting: deque[int | str] = deque()

    def partials(self) -> tuple[Partial, ...]:
        """The open message, if it has text."""
        if not self.text:
            return ()
        return (Partial(message=MESSAGE, content=(Text(text=self.text),)),)

    async def commit(self, count: int = 1) -> None:
        """Store the next events and tell nobody."""
        first = self.committed + 1
        self.committed += count
        rows = tuple(StoredRow(seq, None, seq, _data(seq)) for seq in range(first, first + count))
        summary = SessionRow(
            id=SESSION,
            user="me",
            agent="a",
            model="a/b",
            mode="ask",
            created_ms=0,
            updated_ms=first,
        )
        await append_and_wait(
            self.store, Append(session=SESSION, first_seq=first, rows=rows, summary=summary)
        )
        self._waiting.extend(row.seq for row in rows)

    def publish(self, count: int | None = None) -> None:
        """Show so many stored events, or all, with the deltas that waited behind them."""
        left = len(self._waiting) if count is None else count
        while self._waiting and (left > 0 or isinstance(self._waiting[0], str)):
            item = self._waiting.popleft()
            if isinstance(item, str):
                self._show(item)
            else:
                left -= 1
                self.last_seq = item
                self.hub.publish(encode_event(_data(item), id=item))

    async def add(self, count: int = 1) -> None:
        """Store events and show them."""
        await self.commit(count)
        self.publish()

    def delta(self, text: str) -> None:
        """More text of the open message."""
        if self._waiting:
            self._waiting.append(text)
        else:
            self._show(text)

    def catch_up(
        self, subscriber: Subscriber, after: str | None = None, log: str | None = None
    ) -> AsyncGenerator[bytes, None]:
        """The start of a stream for a reader that stands at `after`."""
        hello = Hello(log=self.store.log, last_seq=self.last_seq, now=_TIME, server_version="0")
        return catch_up(
            SESSION, self, subscriber, store=self.store, cursor=Cursor(after, log), hello=hello
        )

    def stream(
        self,
        after: str | None = None,
        reader: str | None = None,
        *,
        heartbeat_s: float = HEARTBEAT_S,
        stall_s: float = STALL_S,
    ) -> EventStream:
        """A whole answer, as a request handler would make it."""
        subscriber = self.hub.join(reader)
        return EventStream(
            subscriber,
            self.catch_up(subscriber, after),
            heartbeat_s=heartbeat_s,
            stall_s=stall_s,
        )

    def _show(self, text: str) -> None:
        event = TextDelta(message=MESSAGE, block=0, at=len(self.text), text=text)
        self.text += text
        self.hub.publish(encode_event(encode(Envelope(session=SESSION, time=_TIME, event=event))))


def _data(seq: int) -> bytes:
    event = Notice(code="n", message=f"event {seq}")
    return encode(Envelope(seq=seq, session=SESSION, time=_TIME, event=event))


class Wire:
    """A client of an ASGI app that notes what it is sent."""

    def __init__(self, room: float = float("inf")) -> None:
        """Make one that takes `room` bytes; a send beyond that hangs until it is gone."""
        self.room = room
        """How many more bytes it takes."""
        self.head: _Message = {}
        """The first message of the answer."""
        self.pieces: list[bytes] = []
        """What each send brought."""
        self.events: list[SseEvent] = []
        """What the pieces say."""
        self.ended = False
        """Whether the answer came to its end."""
        self.gone = asyncio.Event()
        """Set it to disconnect."""
        self._news = asyncio.Event()
        self._decoder = SseDecoder()
        self._asked = False

    @property
    def ids(self) -> list[int]:
        """The numbers that came, in order."""
        return [int(event.id) for event in self.events if event.id is not None]

    async def receive(self) -> _Message:
        """ASGI: the request, then the disconnect."""
        if not self._asked:
            self._asked = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: _Message) -> None:
        """ASGI: take a part of the answer."""
        if message["type"] == "http.response.start":
            self.head = message
            return
        body: bytes = message.get("body", b"")
        if len(body) > self.room:
            await self.gone.wait()
            return
        self.room -= len(body)
        if body:
            self.pieces.append(body)
            self.events += self._decoder.feed(body)
        self.ended = self.ended or not message.get("more_body", False)
        self._news.set()

    async def until(self, met: Callable[[], bool]) -> None:
        """Wait for something to be true of what came.

        Raises:
            TimeoutError: It did not become true.
        """
        async with asyncio.timeout(_PATIENCE_S):
            while not met():
                self._news.clear()
                await self._news.wait()

    async def take(self, count: int) -> list[SseEvent]:
        """The first `count` events."""
        await self.until(lambda: len(self.events) >= count)
        return self.events[:count]


@asynccontextmanager
async def connect_wire(app: _App, wire: Wire) -> AsyncGenerator[asyncio.Task[None], None]:
    """Run one request; at the end the client goes away, and the app must end by itself."""

    async def run() -> None:
        await app({"type": "http", "method": "GET"}, wire.receive, wire.send)

    task = asyncio.create_task(run())
    try:
        yield task
    finally:
        wire.gone.set()
        async with asyncio.timeout(_PATIENCE_S):
            await asyncio.wait({task})
    await task
