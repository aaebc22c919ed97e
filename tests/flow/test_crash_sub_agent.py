"""A server that dies with SIGKILL at every write of a turn in which two sub-agents work, one of
which asks a person: the calls find the sessions that they began, and nothing acts twice.
"""

import asyncio
import os
import sqlite3
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, closing
from pathlib import Path
from typing import Any, Final, TypeVar

import pytest
from flow.crash_client import POLICY, HastyClock, Keeper, Stall, end_of_turn, read_marks
from flow.crash_law import check_law
from flow.lane import PATIENCE_S, Lane, decode, make_folder, open_lane, read_log

from towline_client import Client, ConnectionLost, Session
from towline_protocol import (
    CreateSession,
    Envelope,
    SessionClosed,
    SessionCreated,
    SessionId,
    ToolEnded,
    ToolStarted,
    TurnCompleted,
    TurnResumed,
    block_text,
)

LANES: Final = 3
"""Points that are tried at once."""
AT: Final = "TOWLINE_CRASH_AT"
"""The environment variable that names the one point to try."""

_T = TypeVar("_T")

pytestmark = pytest.mark.slow


async def _persist(ask: Callable[[], Awaitable[_T]]) -> _T:
    """Ask until there is an answer."""
    while True:
        try:
            return await ask()
        except ConnectionLost:
            continue


async def _live(stall: Stall, folder: Path, order: dict[str, Any]) -> SessionId:
    """A person who has two tasks done, and allows what is asked; gives the session."""
    async with Keeper(stall.lane, order).kept(sure=False) as url:
        (folder / "armed").touch()
        client = Client(url, stall.token, clock=HastyClock(), policy=POLICY)
        async with client:
            made = await _persist(lambda: client.create_session(CreateSession(), key="create"))
            session = await _persist(lambda: client.open(made.id))
            attending = asyncio.create_task(_allow(session))
            try:
                await _persist(lambda: session.prompt("spawn", key="prompt"))
                await end_of_turn(session)
                told = await session.ask("and now?")
                assert told == "and now?"
                assert [row.id for row in (await client.list_sessions()).sessions] == [made.id]
            finally:
                await session.close()
                attending.cancel()
                await asyncio.wait({attending})
    return made.id


async def _allow(session: Session) -> None:
    """Allow each thing once."""
    seen: set[str] = set()
    async for view in session.views:
        for request in view.permissions:
            if request.permission not in seen:
                seen.add(request.permission)
                await _persist(lambda r=request: session.answer(r, "allow_once"))


def _log(folder: Path, session: SessionId) -> list[Envelope]:
    log = [decode(data) for data in read_log(folder, session)]
    check_law(log)
    return log


def _check(folder: Path, session: SessionId) -> None:
    """What holds wherever the server died."""
    events = [envelope.event for envelope in _log(folder, session)]
    spawned = {event.call: event.child for event in events if isinstance(event, ToolStarted)}
    assert len(set(spawned.values())) == len(spawned) == 2
    with closing(sqlite3.connect(folder / "data" / "towline.db")) as connection:
        query = "SELECT id FROM sessions WHERE parent = ?"
        rows = connection.execute(query, (session,)).fetchall()
    assert {row[0] for row in rows} == set(spawned.values())
    ends = [event for event in events if isinstance(event, ToolEnded)]
    assert sorted(event.call for event in ends) == sorted(spawned)
    assert {event.status for event in ends} == {"completed"}
    assert sum(isinstance(event, TurnCompleted) for event in events) == 2
    marks = read_marks(folder)
    for end in ends:
        child = spawned[end.call]
        assert child is not None
        _check_child(_log(folder, child), end, marks)


def _check_child(log: list[Envelope], end: ToolEnded, marks: list[str]) -> None:
    """A sub-agent did its task once, or knows that it does not know, and was heard."""
    events = [envelope.event for envelope in log]
    created, last = events[0], events[-1]
    assert isinstance(created, SessionCreated)
    assert created.parent is not None
    assert created.parent.call == end.call
    assert isinstance(last, SessionClosed)
    assert sum(isinstance(event, TurnCompleted) for event in events) == 1
    assert sum(isinstance(event, TurnResumed) for event in events) <= 1
    acted = [event for event in events if isinstance(event, ToolEnded)]
    told = " ".join(block_text(event.content) for event in acted)
    assert block_text(end.content) == f"It told me: {told}"
    if created.title == "mark child":
        (mark,) = acted
        assert marks.count("child") <= 1
        assert mark.status == "unknown" or marks.count("child") == 1
    else:
        assert {event.status for event in acted} == {"completed"}
        assert "put" in marks


async def _run(stall: Stall, folder: Path, kill: str, *, trace: bool = False) -> None:
    order = stall.order(folder, mode="ask", kill=kill, watch="writes", trace=trace)
    async with asyncio.timeout(PATIENCE_S):
        session = await _live(stall, folder, order)
    _check(folder, session)


async def _try_all(stall: Stall, parent: Path, points: Iterator[tuple[int, str]]) -> None:
    for number, point in points:
        try:
            await _run(stall, make_folder(parent, number), point)
        except Exception as error:
            error.add_note(f"The server was killed at {point!r}; {AT}={point!r} tries it alone.")
            raise


@pytest.mark.rules("C1.20", "C1.23", "C5.4", "C5.5", "C5.8", "D5", "S12")
async def test_a_server_killed_at_any_write_of_a_turn_with_sub_agents_goes_on(
    tmp_path: Path, show_figures: Callable[[str], None]
) -> None:
    began = time.monotonic()
    async with AsyncExitStack() as stack:
        lanes: list[Lane] = [await stack.enter_async_context(open_lane()) for _ in range(LANES)]
        stall = await Stall.prepare(lanes[0], make_folder(tmp_path, -1))
        await _run(stall, make_folder(tmp_path, 0), "", trace=True)
        places = (tmp_path / "0" / "places").read_text(encoding="utf-8").splitlines()
        points = [os.environ[AT]] if AT in os.environ else list(dict.fromkeys(places))
        waiting = iter(enumerate(points, 1))
        async with asyncio.TaskGroup() as group:
            for beside in (stall, *map(stall.beside, lanes[1:])):
                group.create_task(_try_all(beside, tmp_path, waiting))
    assert len(points) > 30 or AT in os.environ
    took_s = time.monotonic() - began
    show_figures(f"sub-agents: killed at {len(points)} points, {took_s:.0f} s")
