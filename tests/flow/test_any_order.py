"""Whatever a network and a server do, in whatever order: in the end a client shows the truth.

No network, no clock: the real client before a server in memory, and a line that does what is drawn.
"""

import asyncio
import random
from collections.abc import Callable
from typing import Final

import pytest
from flow.follower import Follower
from flow.rough_line import RoughLine
from flow.story import Story
from hypothesis import given, settings
from hypothesis import strategies as st

from towline_client import Client, ClientError, LinkPolicy, Session
from towline_client.testing import ManualClock, ScriptedServer, ScriptedSession
from towline_protocol import (
    Broken,
    PromptAccepted,
    PromptAdmitted,
    SessionView,
    SseDecoder,
    UsageError,
    block_text,
    decode_frame,
    empty_view,
    reduce,
)

PATIENCE_S: Final = 20
POLICY: Final = LinkPolicy()


class Play:
    """One session, its server, its line and what is done to them."""

    def __init__(self, server: ScriptedServer, seed: int) -> None:
        self.chance = random.Random(seed)
        self.clock = ManualClock()
        self.line = RoughLine(server, self.chance)
        self.truth: ScriptedSession = server.add_session()
        self.story = Story(self.truth, self.chance)
        self.client = Client(
            "", "token", transport=self.line, clock=self.clock, policy=POLICY
        )  # fmt: skip

    async def __call__(self, moves: list[tuple[str, int]]) -> None:
        """Make all moves, then heal and see what is shown."""
        async with self.client:
            session = await self.client.open(self.truth.id)
            follower = Follower(session)
            following = asyncio.create_task(follower.follow())
            for name, much in moves:
                self._move(session, follower, name, much)
                await _turns(self.chance.choice((0, 1, 3, 20)))
            self.line.heal()
            follower.may.set()
            if self.line.frames_lost:
                self.story.touch_all()
            await self._settle(session, follower)  # what is being written is as it should be, too
            self._compare(session, follower)
            self.story.end_turn()
            await self._settle(session, follower)
            self._compare(session, follower)
            await session.close()
            await following

    def _move(self, session: Session, follower: Follower, name: str, much: int) -> None:
        match name:
            case "story":
                for _ in range(much):
                    self.story.go_on()
            case "wait":
                self.clock.advance(much * much * 100)
            case "foreground":
                self._start(session, follower)
            case "slow":
                follower.may.clear()
            case "fast":
                follower.may.set()
            case _:
                self._harm(session, name, much)

    def _harm(self, session: Session, name: str, much: int) -> None:
        harms: dict[str, Callable[[], object]] = {
            "restart": self.story.restart,
            "backup": self.story.go_back,
            "gap": self.story.lose_place,
            "hang up": self.truth.hang_up,
            "reset": lambda: self.truth.reset(much * 50),
            "cut": self.line.cut,
            "background": session.stop,
            "impatient": session.retry_now,
        }
        if name in harms:
            harms[name]()
            if name in ("restart", "backup"):
                self.line.cut()
        elif name.startswith("page "):
            self.line.page(name.removeprefix("page "))
        elif name == "cut soon":
            self.line.left = much * much
        else:
            on = True if name in ("down", "silent") else much if name == "lost" else much / 60
            setattr(self.line, name, on)

    def _start(self, session: Session, follower: Follower) -> None:
        session.start()
        follower.again.set()

    async def _settle(self, session: Session, follower: Follower) -> None:
        """Let go on what can, and time pass only while the line waits for its next try."""
        for _ in range(20):
            self._start(session, follower)
            for _ in range(100):
                await _turns(10)
                if session.view == follower.view == self.truth.view:
                    return
            due_ms = session.connection.value.next_try_ms
            if due_ms is not None:
                self.clock.advance(due_ms - self.clock.now_ms())

    def _compare(self, session: Session, follower: Follower) -> None:
        undisturbed = _read_undisturbed(self.truth)
        for shown in (self.truth.view, session.view, follower.view):
            assert _differences(shown, undisturbed) == {}


def _read_undisturbed(session: ScriptedSession) -> SessionView:
    """What a reader sees that begins at the beginning, over a good line."""
    decoder, view = SseDecoder(), empty_view()
    for data in session.head(None):
        for event in decoder.feed(data):
            frame = decode_frame(event.event, event.data)
            assert not isinstance(frame, Broken)
            view = reduce(view, frame)
    return view


def _differences(shown: SessionView, due: SessionView) -> dict[str, tuple[object, object]]:
    """What of a view is not as it should be."""
    names = SessionView.__struct_fields__
    pairs = {name: (getattr(shown, name), getattr(due, name)) for name in names}
    return {name: (one, two) for name, (one, two) in pairs.items() if one != two}


async def _turns(count: int) -> None:
    """Let whatever can go on go on, so many times."""
    for _ in range(count):
        await asyncio.sleep(0)


HARM: Final = (
    "restart", "backup", "gap", "hang up", "reset", "cut", "cut soon", "background", "foreground",
    "impatient", "down", "silent", "lost", "loses", "loses_deltas", "doubles", "slow", "fast",
    "page portal", "page bad gateway", "page proxy login", "page unauthorized", "page draining",
    "page broken", "page no session",
)  # fmt: skip

moves = st.lists(
    st.tuples(
        st.one_of(st.just("story"), st.sampled_from(HARM), st.just("wait")), st.integers(1, 30)
    ),
    max_size=40,
)


async def _play(seed: int, made: list[tuple[str, int]], bound: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("towline_client.pump.MAX_WAITING_EVENTS", bound)
        async with asyncio.timeout(PATIENCE_S), ScriptedServer() as server:
            await Play(server, seed)(made)


@pytest.mark.rules("C1.5", "C1.8", "C4.2", "C4.3", "C4.7")
@given(seed=st.integers(0, 2**32), made=moves, bound=st.sampled_from((3, 20, 10_000)))
@settings(max_examples=200)
def test_any_order_of_faults_ends_in_the_same_view(
    seed: int, made: list[tuple[str, int]], bound: int
) -> None:
    asyncio.run(_play(seed, made, bound))


class Talk:
    """Somebody who says things over a bad line."""

    def __init__(self, server: ScriptedServer, seed: int) -> None:
        self.chance = random.Random(seed)
        self.clock = ManualClock()
        self.line = RoughLine(server, self.chance)
        self.truth = server.add_session()
        self.client = Client("", "token", transport=self.line, clock=self.clock, policy=POLICY)
        self.said: dict[str, asyncio.Task[PromptAccepted]] = {}

    async def __call__(self, moves: list[tuple[str, int]]) -> None:
        """Make all moves, then heal, and send again what came to nothing."""
        async with self.client:
            session = await self.client.open(self.truth.id)
            for name, much in moves:
                self._move(session, name, much)
                await _turns(self.chance.choice((0, 1, 3, 20)))
            self.line.heal()
            self._send_again(session)  # while the line may still be on its way up
            await self._settle(session)
            self._send_again(session)
            await self._settle(session)
            self._check(session)

    def _send_again(self, session: Session) -> None:
        for draft in session.view.outgoing:
            if draft.state in ("refused", "unknown"):
                task = asyncio.create_task(session.send_again(draft.key))
                self.said[f"{len(self.said)} again"] = task

    def _move(self, session: Session, name: str, much: int) -> None:
        match name:
            case "say":
                key = f"key {len(self.said)}"
                self.said[key] = asyncio.create_task(session.prompt(key, key=key))
            case "wait":
                self.clock.advance(much * much * 100)
            case "cut":
                self.line.cut()
            case "background":
                session.stop()
            case "foreground":
                session.start()
            case "lost":
                self.line.lost = much
            case "heal":
                self.line.heal()
            case "down" | "silent":
                setattr(self.line, name, True)
            case _:
                self.line.page(name.removeprefix("page "))

    async def _settle(self, session: Session) -> None:
        """Let time pass until all is known and shown; ten minutes at most."""
        for _ in range(600):
            session.start()
            await _turns(100)
            shown = session.view.seq == self.truth.view.seq and not self.truth.view.queue
            if shown and all(task.done() for task in self.said.values()):
                return
            self.clock.advance(1_000)

    def _check(self, session: Session) -> None:
        events = [envelope.event for envelope in self.truth.events]
        admitted = [event for event in events if isinstance(event, PromptAdmitted)]
        words = [block_text(event.content) for event in admitted]
        assert sorted(words) == sorted(key for key in self.said if not key.endswith("again"))
        assert session.view.outgoing == ()
        assert session.view == self.truth.view
        for key, task in self.said.items():
            if task.exception() is None:
                assert task.result().prompt in {event.prompt for event in admitted}
            else:
                # What was to be sent again may have come through meanwhile, which it is told.
                refusals = (ClientError, UsageError) if key.endswith("again") else ClientError
                assert isinstance(task.exception(), refusals), key


# Not `no session`: a server that has taken a prompt answers its key as it did before.
TALK_PAGES: Final = [n for n in HARM if n.startswith("page ") and n != "page no session"]

talk_moves = st.lists(
    st.tuples(
        st.one_of(
            st.just("say"),
            st.sampled_from(
                ("wait", "cut", "background", "foreground", "lost", "heal", "down", "silent")
            ),
            st.sampled_from(TALK_PAGES),
        ),
        st.integers(1, 30),
    ),
    max_size=30,
)


async def _talk(seed: int, made: list[tuple[str, int]]) -> None:
    async with asyncio.timeout(PATIENCE_S), ScriptedServer() as server:
        await Talk(server, seed)(made)


@pytest.mark.rules("C2.5", "C4.9")
@given(seed=st.integers(0, 2**32), made=talk_moves)
@settings(max_examples=100)
def test_whatever_the_line_does_each_prompt_is_said_once(
    seed: int, made: list[tuple[str, int]]
) -> None:
    asyncio.run(_talk(seed, made))
