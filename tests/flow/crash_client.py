"""A person at one client, before a server that dies and comes back; see `crash_server.py`."""

import asyncio
import shutil
import signal
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec
from flow.lane import Lane, claim_token, decode, make_order, read_log

from towline_client import (
    Call,
    Client,
    ConnectionLost,
    LinkPolicy,
    LoopClock,
    Reply,
    Session,
    StreamReply,
)
from towline_client.http import HttpTransport
from towline_protocol import CallView, ClientTool, CreateSession, SessionView, SseDecoder

__all__ = [
    "RING",
    "Desk",
    "HastyClock",
    "Keeper",
    "Run",
    "Stall",
    "Witness",
    "end_of_turn",
    "read_marks",
]

_T = TypeVar("_T")

RING: Final = ClientTool(name="ring", description="Ring a bell.", parameters={"type": "object"})
"""A tool of the client whose handler must not run twice."""
_LEFT: Final = {"item_1": "option_1"}
_HASTE: Final = 10
POLICY: Final = LinkPolicy(
    first_ms=200, most_ms=1000, patience=1_000_000, long_ms=1000, silence_ms=450_000,
    connect_ms=300_000, request_ms=300_000, warm_ms=600_000,
)  # fmt: skip
"""For a client with a `HastyClock`."""


class HastyClock(LoopClock):
    """A clock that runs ten times as fast: what a person's client waits for is over soon."""

    def now_ms(self) -> int:
        """Milliseconds, of which a second has ten thousand."""
        return super().now_ms() * _HASTE

    async def wait(self, event: asyncio.Event, until_ms: int | None) -> None:
        """Return when the event is set or the time has come."""
        left_s = None if until_ms is None else max(0, until_ms - self.now_ms()) / _HASTE / 1000
        try:
            async with asyncio.timeout(left_s):
                await event.wait()
        except TimeoutError:
            return


class Witness:
    """A transport that notes every stored frame that came over the wire, byte for byte."""

    def __init__(self, url: str, on_frame: Callable[[], None] = lambda: None) -> None:
        self.seen: list[tuple[int, bytes]] = []
        self._on_frame = on_frame
        self._http = HttpTransport(url)

    async def request(self, call: Call) -> Reply:
        """Pass a request on."""
        return await self._http.request(call)

    @asynccontextmanager
    async def stream(self, call: Call) -> AsyncGenerator[StreamReply]:
        """Pass a stream on."""
        async with self._http.stream(call) as reply:
            yield msgspec.structs.replace(reply, chunks=self._note(reply.chunks))

    async def close(self) -> None:
        """Let go of every connection."""
        await self._http.close()

    async def _note(self, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        decoder = SseDecoder()
        async for chunk in chunks:
            for event in decoder.feed(chunk):
                if event.id is not None:
                    self.seen.append((int(event.id), event.data))
                    self._on_frame()
            yield chunk


class Stall:
    """A place for servers, one after the other: their port, and a store that one has begun."""

    def __init__(self, lane: Lane, folder: Path, token: str, port: object) -> None:
        self.lane = lane
        """Where they run."""
        self.token = token
        """Lets the client in."""
        self.data = folder / "data"
        """The store."""
        self._port = port

    @classmethod
    async def prepare(
        cls,
        lane: Lane,
        folder: Path,
        fill: Callable[[Client], Awaitable[None]] | None = None,
    ) -> "Stall":
        """Begin a store, and fill it; each server gets a copy of it."""
        order = make_order(folder)
        ready = await lane.start(order)
        token = await claim_token(ready["url"], ready["code"])
        if fill is not None:
            async with Client(ready["url"], token) as client:
                await fill(client)
        lane.kill(signal.SIGTERM)
        assert await lane.ended() == 0
        return cls(lane, folder, token, order["port"])

    def beside(self, lane: Lane) -> "Stall":
        """The same store for the servers of another lane."""
        return Stall(lane, self.data.parent, self.token, make_order(self.data)["port"])

    def order(self, folder: Path, **more: object) -> dict[str, object]:
        """An order for a server on a copy of the store."""
        shutil.copytree(self.data, folder / "data")
        began = str(self.data.parent)
        return {"folder": str(folder), "root": began, "port": self._port, **more}


class Keeper:
    """Starts a server, and starts it again when it has killed itself; it does so once."""

    def __init__(self, lane: Lane, order: Mapping[str, object]) -> None:
        self._lane = lane
        self._order = order
        self._died = asyncio.Event()
        self._back = asyncio.Event()
        self._leaving = False

    @asynccontextmanager
    async def kept(self, *, sure: bool = True) -> AsyncGenerator[str]:
        """A server at this address; no server any more at the end.

        Args:
            sure: Whether it is an error if the server never came to where it should have died.
        """
        ready = await self._lane.start(self._order)
        async with asyncio.TaskGroup() as group:
            keeping = group.create_task(self._keep(ready["url"]))
            yield ready["url"]
            if self._died.is_set():
                await self._back.wait()
            self._leaving = True
            self._lane.kill()
            await keeping
        if sure:
            kill = self._order["kill"]
            assert self.died == bool(kill), f"no server came to the place {kill!r}"

    @property
    def died(self) -> bool:
        """Whether a server killed itself, or was killed by `kill`."""
        return self._died.is_set()

    async def kill(self) -> None:
        """Kill the server; when this returns it is dead, and the next one is about to start."""
        self._lane.kill()
        await self._died.wait()

    async def _keep(self, url: str) -> None:
        kill = self._order["kill"]
        status = await self._lane.ended()
        if kill and not self._leaving:
            self._died.set()
            assert status == -signal.SIGKILL
            again = await self._lane.start({**self._order, "kill": ""})
            assert again["url"] == url
            self._back.set()
            status = await self._lane.ended()
        assert self._leaving, f"the server ended by itself with {status}"


class Run(msgspec.Struct, kw_only=True):
    """What one server life after the other left behind."""

    log: list[bytes]
    """The stored envelopes."""
    marks: list[str]
    """What the server's tools did, in order."""
    rung: int
    """How often the client's tool acted."""
    seen: list[tuple[int, bytes]]
    """Number and bytes of each frame that came over the wire, in order."""
    acked: dict[str, Any]
    """What the server answered, by what it was asked."""
    told: str
    """What the next prompt was answered."""
    places: list[str]
    """The places that the client passed."""
    reader: str
    """How the client named itself."""

    @property
    def events(self) -> list[Any]:
        """The stored events."""
        return [decode(data).event for data in self.log]

    @property
    def turns(self) -> list[str | None]:
        """The turn of each."""
        return [decode(data).turn for data in self.log]


class Desk:
    """A person who has everything done, at a client that sends again what was not acknowledged.

    It reacts to what it sees and to nothing else, so that each run has the same order.
    """

    def __init__(self, stall: Stall, order: Mapping[str, object]) -> None:
        self.acked: dict[str, Any] = {}
        self.places: list[str] = []
        self.rung = 0
        self._stall = stall
        self._order = order
        self._keeper = Keeper(stall.lane, order)
        self._attended = asyncio.Event()
        self._done: set[str] = set()

    async def live(self) -> Run:
        """From the first start to the last end."""
        async with self._keeper.kept() as url:
            witness = Witness(url)
            async with Client(
                url, self._stall.token, transport=witness, clock=HastyClock(), policy=POLICY
            ) as client:
                session, told = await self._talk(client)
        folder = Path(str(self._order["folder"]))
        return Run(
            log=read_log(folder, session.id),
            marks=read_marks(folder),
            rung=self.rung,
            seen=witness.seen,
            acked=self.acked,
            told=told,
            places=self.places,
            reader=session.reader,
        )

    async def meet(self, place: str) -> None:
        """Pass a place of the client's own: there it is the server that dies."""
        self.places.append(place)
        if place == self._order["kill"]:
            await self._keeper.kill()

    async def persist(self, name: str, ask: Callable[[], Awaitable[_T]]) -> _T:
        """Ask until there is an answer."""
        while True:
            try:
                self.acked[name] = answer = await ask()
            except ConnectionLost:
                continue
            await self.meet(f"acknowledged: {name}")
            return answer

    async def _talk(self, client: Client) -> tuple[Session, str]:
        made = await self.persist(
            "create", lambda: client.create_session(CreateSession(), key="create")
        )
        session = await self.persist("open", lambda: client.open(made.id, reader="desk"))
        await self.persist("declare", lambda: session.declare_tools(RING))
        attending = asyncio.create_task(self._attend(session))
        try:
            await self.persist("prompt", lambda: session.prompt("everything", key="prompt"))
            await end_of_turn(session)
            await self._attended.wait()  # all that was sent is acknowledged
            told = "" if attending.done() else await session.ask("and now?")
        finally:
            await session.close()
            await attending  # the views have ended
        return session, told

    async def _attend(self, session: Session) -> None:
        """Do what the server asks for, each thing once."""
        try:
            async for view in session.views:
                await self._answer(session, view)
        except BaseException:
            await asyncio.shield(session.close())  # whoever waits for the turn's end need not
            raise
        finally:
            self._attended.set()

    async def _answer(self, session: Session, view: SessionView) -> None:
        for request in view.permissions:
            if self._first(request.permission):
                option = "allow_session" if request.tool == "mark" else "allow_once"
                await self.persist(
                    f"allow {request.tool}", lambda r=request, o=option: session.answer(r, o)
                )
        for question in view.questions:
            if self._first(question.question):
                await self._interject(session)
                await self.persist("answer", lambda q=question: session.answer_question(q, _LEFT))
        for call in view.open_calls:
            if call.expires_at is not None and self._first(call.call):
                await self._ring(session, call)

    async def _interject(self, session: Session) -> None:
        """Say something into the turn, and something for after it."""
        await self.persist("steer", lambda: session.prompt("also this", when="steer", key="steer"))
        await self.persist("queue", lambda: session.prompt("later", when="queue", key="queue"))

    async def _ring(self, session: Session, call: CallView) -> None:
        """Run the client's own tool: claimed before it acts, and never twice (C5.12)."""
        await self.persist("claim", lambda: session.claim(call.call))
        await self.meet("ring: enter")
        self.rung += 1
        await self.meet("ring: acted")
        await self.persist("progress", lambda: session.report_progress(call.call, "ringing"))
        await self.persist("result", lambda: session.send_result(call.call, "rang"))
        self._attended.set()

    def _first(self, id_: str) -> bool:
        first = id_ not in self._done
        self._done.add(id_)
        return first


def read_acts(folder: Path) -> list[tuple[str, str]]:
    """What the server's tools did, in order: a word, and for which call."""
    marks = folder / "marks"
    lines = marks.read_text(encoding="utf-8").splitlines() if marks.exists() else []
    return [(word, call) for word, _, call in (line.partition(" ") for line in lines)]


def read_marks(folder: Path) -> list[str]:
    """The words alone."""
    return [word for word, _ in read_acts(folder)]


async def end_of_turn(session: Session) -> None:
    """Wait until nothing runs or waits any more."""
    async for view in session.views:
        if view.last_turn is not None and view.turn is None and not view.queue:
            return
