"""Programs around one session, on a line that breaks all the time; see `test_chaos.py`."""

import asyncio
import contextlib
import itertools
import random
from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path
from typing import Final, TypeVar

from flow.follower import Follower
from flow.rude_lane import pause

from towline_client import (
    CallContext,
    Client,
    CommandRejected,
    ConnectionLost,
    ContractUnavailable,
    LinkPolicy,
    Scrollback,
    Session,
    Unauthorized,
)
from towline_protocol import (
    PermissionRequested,
    PromptAccepted,
    QuestionAsked,
    SessionId,
    SessionView,
    TowlineError,
    empty_view,
)

__all__ = ["WAITS", "Bell", "Desk", "End", "Reader", "Way"]

POLICY: Final = LinkPolicy(first_ms=20, most_ms=100, patience=1_000_000, long_ms=100)
"""Comes back sooner than a person's client."""
WAITS: Final = {
    "towline_client.caller.RETRY_WAITS_S": (0.0, 0.1, 0.3),
    "towline_client.outbox.FIRST_WAIT_MS": 100,
    "towline_client.outbox.MOST_WAIT_MS": 800,
    "towline_client.bridge.patience.FIRST_AGAIN_MS": 200,
}
"""The same for what is sent again: what to put in place of a client's waits. The clock itself has
to be true, for the server's deadlines are held against it: by one that runs ahead a request is over
as soon as it comes, and who could answer it leaves it to others."""

_T = TypeVar("_T")

_HARM = (ConnectionLost, ContractUnavailable, Unauthorized)
"""What a bad line can make of a call; anything else is the server's own word."""


async def persist(ask: Callable[[], Awaitable[_T]]) -> _T:
    """Ask until the server has answered: a person who presses the button again."""
    while True:
        try:
            return await ask()
        except _HARM:
            continue
        except CommandRejected as error:
            if error.retry != "same_request":
                raise


class Way:
    """How a client gets to the session."""

    def __init__(self, url: str, token: str, session: SessionId) -> None:
        self.url = url
        """The address."""
        self.session = session
        """The session."""
        self.failures = 0
        """How often a line was given up and begun again."""
        self.connects = 0
        """How often a line came up."""
        self._token = token
        self._lines: dict[str, Session] = {}

    def tell(self) -> str:
        """Where everybody stands, for whoever looks at a run that failed."""
        return "\n".join(f"{name}: {_tell(line)}" for name, line in self._lines.items())

    @contextlib.asynccontextmanager
    async def open(
        self,
        reader: str,
        prepare: Callable[[Client], None] = lambda _: None,
        *,
        scrollback: Scrollback | None = None,
    ) -> AsyncGenerator[Session]:
        """A line to the session that does not stay given up."""
        async with Client(self.url, self._token, policy=POLICY, scrollback=scrollback) as client:
            prepare(client)
            session = await persist(lambda: client.open(self.session, reader=reader))
            self._lines[reader] = session
            keeping = asyncio.create_task(self._keep(session))
            try:
                yield session
            finally:
                await session.close()
                await keeping

    async def _keep(self, session: Session) -> None:
        """A person who tries again where the client has given up."""
        async for connection in session.connection:
            self.connects += connection.phase == "live"
            if connection.phase == "failed":
                self.failures += 1
                await pause(0.05)
                session.start()


class End:
    """When to stop, and what is to be seen before."""

    def __init__(self) -> None:
        self.near = asyncio.Event()
        """All was said: nobody leaves any more."""
        self.seq: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        """The number of the last event."""

    async def see(self, session: Session) -> SessionView:
        """The view that has all, of the server: until the line is up a scrollback's stands in."""
        seq = await self.seq
        async for connection in session.connection:
            if connection.phase == "live":
                break
        return await watch(session, lambda view: view.seq >= seq)


class Desk:
    """Says everything, one thing after the other, and answers what a person is asked."""

    def __init__(self, way: Way) -> None:
        self.accepted: dict[str, PromptAccepted] = {}
        """What was acknowledged, by key."""
        self.answered = 0
        """Requests and questions that were answered."""
        self._way = way

    def prepare(self, client: Client) -> None:
        """Register what a person answers."""

        @client.on_permission
        async def allow(request: PermissionRequested) -> str:
            del request
            self.answered += 1
            return "allow_once"

        @client.on_question
        async def choose(question: QuestionAsked) -> dict[str, str]:
            self.answered += 1
            return {item.id: "option_1" for item in question.items}

    async def talk(self, words: list[str], said: Callable[[int], None], end: End) -> SessionView:
        """Say all of them; gives the last view.

        Args:
            words: What to say.
            said: Told the number of each that is acknowledged.
            end: Told when all is said.
        """
        async with self._way.open("desk", self.prepare) as session:
            for number, text in enumerate(words):
                key = f"prompt {number}"
                accepted = await persist(lambda t=text, k=key: session.prompt(t, key=k))
                self.accepted[key] = accepted
                said(number)
                await watch(session, lambda view, p=accepted.prompt: _ended(view, p))
            end.near.set()
            return await end.see(session)


class Bell:
    """Runs the client's own tool, and leaves in the middle of it now and then."""

    def __init__(self, way: Way, folder: Path, chance: random.Random) -> None:
        self.lives = 0
        """How often it was opened."""
        self.rung: list[str] = []
        """The call of each time that the tool acted."""
        self._way = way
        self._journal = folder / "bell.db"
        self._chance = chance
        self._acted = asyncio.Event()

    def prepare(self, client: Client) -> None:
        """Register the tool."""

        @client.tool
        async def ring(context: CallContext) -> str:
            """Ring a bell."""
            self.rung.append(context.call)
            self._acted.set()
            for _ in range(self._chance.randrange(200)):
                await asyncio.sleep(0)
            return "rang"

    async def live(self, end: End) -> SessionView:
        """Be there until all is done; gives the last view."""
        while True:
            self.lives += 1
            kept = Scrollback(self._journal)
            async with self._way.open("bell", self.prepare, scrollback=kept) as session:
                await self._stay(len(self.rung) + self._chance.randint(2, 5), end)
                if end.near.is_set():
                    return await end.see(session)

    async def _stay(self, rings: int, end: End) -> None:
        """Until it has acted so often, or the end is near."""
        while len(self.rung) < rings and not end.near.is_set():
            self._acted.clear()
            waits = [asyncio.create_task(event.wait()) for event in (self._acted, end.near)]
            try:
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for wait in waits:
                    wait.cancel()


class Reader:
    """Looks on, and makes its own view out of the events besides."""

    def __init__(self, way: Way, name: str, chance: random.Random) -> None:
        self.folded = empty_view()
        """The view of its own."""
        self.pauses = 0
        """How often it went to the background."""
        self._way = way
        self._name = name
        self._chance = chance

    async def look(self, end: End) -> SessionView:
        """Look on until all is done; gives the last view."""
        async with asyncio.TaskGroup() as group, self._way.open(self._name) as session:
            follower = Follower(session)
            group.create_task(self._follow(session, follower))
            going = group.create_task(self._come_and_go(session))
            try:
                await end.near.wait()
            finally:
                going.cancel()
                await asyncio.wait([going])
            session.start()
            view = await end.see(session)
        self.folded = follower.view
        return view

    async def _follow(self, session: Session, follower: Follower) -> None:
        async with asyncio.TaskGroup() as group:
            reading = group.create_task(follower.follow())
            async for _ in session.connection:
                follower.again.set()
            await asyncio.wait([reading])

    async def _come_and_go(self, session: Session) -> None:
        """To the background after some views, and back after some more of the loop's turns."""
        while True:
            views = itertools.count()
            most = self._chance.randint(20, 200)
            await watch(session, lambda _, v=views, m=most: next(v) >= m)
            self.pauses += 1
            session.stop()
            for _ in range(self._chance.randrange(2000)):
                await asyncio.sleep(0)
            session.start()


async def watch(session: Session, holds: Callable[[SessionView], bool]) -> SessionView:
    """The first view of which it holds, over whatever the line does."""
    while True:
        try:
            async for view in session.views:
                if holds(view):
                    return view
            raise AssertionError("the line was closed before it held")
        except TowlineError:
            async for connection in session.connection:
                if connection.phase != "failed":  # somebody tries again
                    break


def _ended(view: SessionView, prompt: str) -> bool:
    idle = view.turn is None and not view.queue
    return idle and any(entry.id == prompt for entry in view.messages)


def _tell(session: Session) -> str:
    view = session.view
    asked = [f"{request.tool} until {request.expires_at}" for request in view.permissions]
    asked += [f"a person until {question.expires_at}" for question in view.questions]
    calls = [f"{call.tool} of {call.claimed_by}" for call in view.open_calls]
    sending = [f"{prompt.key} {prompt.state}" for prompt in view.outgoing]
    return (
        f"{session.connection.value!r} at {view.seq}, turn {view.turn!r}, asks {asked}, "
        f"calls {calls}, {len(view.queue)} queued, sends {sending}"
    )
