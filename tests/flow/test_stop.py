"""A server that is told to stop, and a second one on its store; real processes and signals."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from flow.lane import (
    PATIENCE_S,
    Lane,
    claim_token,
    decode,
    make_folder,
    make_order,
    open_lane,
    read_log,
)

from towline_client import Client, Connection, LinkPolicy, Session
from towline_protocol import (
    SessionView,
    ToolEnded,
    ToolOutputDelta,
    TurnCancelled,
    TurnCompleted,
    TurnResumed,
)

QUICK = LinkPolicy(first_ms=20, most_ms=100, patience=1_000_000, long_ms=100)

pytestmark = pytest.mark.slow


async def _see(views: AsyncIterator[SessionView], met: Callable[[SessionView], bool]) -> None:
    async for view in views:
        if met(view):
            return
    raise AssertionError("the session was closed")


async def _lose(line: AsyncIterator[Connection]) -> None:
    """Wait until the line is not live any more."""
    async for connection in line:
        if connection.phase != "live":
            return


async def _run(session: Session, command: str) -> None:
    """Have a program run, and wait until it has said something."""
    await session.prompt(f"run {command}")
    async for event in session.events:
        if isinstance(getattr(event, "event", None), ToolOutputDelta):
            return


@pytest.mark.rules("C3.6", "C5.14")
async def test_a_turn_that_ends_in_time_is_whole_and_the_client_finds_it_at_the_next_server(
    tmp_path: Path,
) -> None:
    folder = make_folder(tmp_path)
    order = make_order(folder)
    os.mkfifo(folder / "gate")
    async with asyncio.timeout(PATIENCE_S), open_lane() as lane:
        ready = await lane.start(order)
        token = await claim_token(ready["url"], ready["code"])
        async with Client(ready["url"], token, policy=QUICK) as client:
            session = await client.open()
            await _run(session, "sh -c 'echo here; read word <gate; echo gone'")
            lane.kill(signal.SIGTERM)
            await _lose(aiter(session.connection))
            _write(folder / "gate")
            assert await lane.ended() == 0
            await lane.start(order)
            await _see(session.views, lambda view: view.last_turn is not None)
            assert await session.ask("and now?") == "and now?"
        await _kill(lane)
    events = [decode(data).event for data in read_log(folder, session.id)]
    assert [type(event) for event in events].count(TurnCompleted) == 2
    assert TurnResumed not in {type(event) for event in events}


@pytest.mark.rules("C5.14", "S28")
async def test_a_turn_that_takes_too_long_is_stopped_with_its_program(tmp_path: Path) -> None:
    folder = make_folder(tmp_path)
    order = make_order(folder)
    async with asyncio.timeout(PATIENCE_S), open_lane() as lane:
        ready = await lane.start(order)
        token = await claim_token(ready["url"], ready["code"])
        async with Client(ready["url"], token, policy=QUICK) as client:
            session = await client.open()
            await _run(session, "sh -c 'echo here; sleep 600'")
            lane.kill(signal.SIGTERM)
            assert await lane.ended() == 0
            await lane.start(order)
            await _see(session.views, lambda view: view.last_turn is not None)
            assert await session.ask("and now?") == "and now?"
        await _kill(lane)
    events = [decode(data).event for data in read_log(folder, session.id)]
    assert [event.by for event in events if isinstance(event, TurnCancelled)] == ["server"]
    assert [event.status for event in events if isinstance(event, ToolEnded)] == ["cancelled"]


@pytest.mark.rules("C5.14")
async def test_the_second_signal_ends_it_at_once_and_the_turn_is_taken_up_later(
    tmp_path: Path,
) -> None:
    folder = make_folder(tmp_path)
    order = make_order(folder)
    async with asyncio.timeout(PATIENCE_S), open_lane() as lane:
        ready = await lane.start(order)
        token = await claim_token(ready["url"], ready["code"])
        async with Client(ready["url"], token, policy=QUICK) as client:
            session = await client.open()
            await _run(session, "sh -c 'echo here; sleep 600'")
            lane.kill(signal.SIGINT)
            await _lose(aiter(session.connection))  # it has heard the first one
            lane.kill(signal.SIGTERM)
            assert await lane.ended() == 128 + signal.SIGTERM
            await lane.start(order)
            await _see(session.views, lambda view: view.last_turn is not None)
        await _kill(lane)
    events = [decode(data).event for data in read_log(folder, session.id)]
    assert [event.status for event in events if isinstance(event, ToolEnded)] == ["unknown"]


@pytest.mark.rules("C5.3")
async def test_a_second_server_on_a_store_names_the_first_one_and_ends(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = make_folder(tmp_path)
    async with asyncio.timeout(PATIENCE_S), open_lane() as one, open_lane() as two:
        ready = await one.start(make_order(folder))
        refused = await two.order(make_order(folder))
        assert (refused["word"], refused["status"]) == ("ended", 1)
        said = capfd.readouterr().err
        assert f"in use by process {ready['pid']} at {ready['url']}" in said
        await _kill(one)
        assert (await two.order(make_order(folder)))["word"] == "ready"
        await _kill(two)


def _write(gate: Path) -> None:
    with gate.open("w") as file:
        file.write("go on\n")


async def _kill(lane: Lane) -> None:
    lane.kill()
    await lane.ended()
