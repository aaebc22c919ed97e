"""A server that dies with SIGKILL while it starts: on a new folder, and on a store of the first
schema, which it brings to the newest one.
"""

import asyncio
import os
import shutil
import signal
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack, closing
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
from flow.crash_client import Stall
from flow.lane import PATIENCE_S, Lane, make_folder, make_order, open_lane, read_log

from towline_client import Client
from towline_protocol import CreateSession, SessionId
from towline_server import RunFile
from towline_server.store.migration import migrate
from towline_server.store.statements import load_migrations

LANES: Final = 3
"""Points that are tried at once."""
AT: Final = "TOWLINE_CRASH_AT"
"""The environment variable that names the one point to try."""
KEPT: Final = ("events", "sessions", "tokens")
"""Tables that the first schema had."""

pytestmark = pytest.mark.slow


class Past:
    """What the store held before: one session, and a device that has a token."""

    def __init__(self, data: Path, token: str, session: SessionId) -> None:
        self.data = data
        self.token = token
        self.session = session


async def _make_past(lane: Lane, parent: Path) -> Past:
    """A store as the first towline left it, with what a server of today wrote put into it."""
    stall = await Stall.prepare(lane, make_folder(parent, -1), _talk)
    data = make_folder(parent, -2)
    with (
        closing(sqlite3.connect(data / "towline.db", isolation_level=None)) as old,
        closing(sqlite3.connect(stall.data / "towline.db")) as new,
    ):
        old.execute("PRAGMA journal_mode = WAL")
        migrate(old, load_migrations()[:1])
        for table in KEPT:
            names = [row[1] for row in old.execute(f"PRAGMA table_info({table})")]
            for row in new.execute(f"SELECT {', '.join(names)} FROM {table}"):
                marks = ", ".join("?" * len(names))
                old.execute(f"INSERT INTO {table} ({', '.join(names)}) VALUES ({marks})", row)
        (session,) = old.execute("SELECT id FROM sessions").fetchone()
    return Past(data, stall.token, session)


async def _talk(client: Client) -> None:
    session = await client.open(new=CreateSession(title="First"))
    assert await session.ask("hello") == "hello"


async def _look(folder: Path, ready: dict[str, Any], past: Past | None) -> None:
    """The server serves, lets in whom it let in before, and has lost nothing."""
    run = msgspec.json.decode((folder / "run.json").read_bytes(), type=RunFile)
    assert (run.url, run.token, run.pid) == (ready["url"], ready["token"], ready["pid"])
    token = run.token if past is None else past.token
    async with Client(run.url, token) as client:
        if past is None:
            session = await client.open()
        else:
            (row,) = (await client.list_sessions(search="first")).sessions
            assert row.id == past.session
            session = await client.open(row.id)
            assert [entry.role for entry in session.view.messages] == ["user", "assistant"]
        assert await session.ask("and now?") == "and now?"


def _check(folder: Path, past: Past | None) -> None:
    """The store is of the newest schema, whole, and nothing half made lies beside it."""
    with closing(sqlite3.connect(folder / "data" / "towline.db")) as store:
        versions = store.execute("SELECT version FROM schema_version ORDER BY version").fetchall()
        assert versions == [(number,) for number, _, _ in load_migrations()]
        assert store.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        (session,) = store.execute("SELECT id FROM sessions").fetchone()
    assert past is None or session == past.session
    assert read_log(folder, session)
    assert not [path for path in folder.rglob("*") if path.suffix == ".new"]


def _order(folder: Path, port: object, past: Past | None, **more: object) -> dict[str, object]:
    if past is not None:
        shutil.copytree(past.data, folder / "data")
    began = "" if past is None else str(folder.parent)
    return {"folder": str(folder), "root": began, "port": port, "watch": "start", **more}


async def _start_and_look(lane: Lane, order: dict[str, object], past: Past | None) -> None:
    folder = Path(str(order["folder"]))
    ready = await lane.start({**order, "kill": ""})
    await _look(folder, ready, past)
    lane.kill(signal.SIGTERM)
    assert await lane.ended() == 0
    _check(folder, past)


def _points(folder: Path) -> Sequence[str]:
    """Every place of a start that nothing disturbed, but those inside a transaction.

    What was not committed leaves nothing, wherever it was cut; the place before the commit stands
    for all of these.
    """
    points: list[str] = []
    inside = False
    for place in (folder / "places").read_text(encoding="utf-8").splitlines():
        kind, _, what = place.partition(": ")
        if kind.startswith("start ") and (not inside or what == "COMMIT"):
            points.append(place)
        inside = what.startswith("BEGIN") or (inside and what != "COMMIT")
    return points


async def _try_all(
    lane: Lane, parent: Path, past: Past | None, points: Iterator[tuple[int, str]]
) -> None:
    port = make_order(parent)["port"]
    for number, point in points:
        order = _order(make_folder(parent, number), port, past, kill=point)
        try:
            async with asyncio.timeout(PATIENCE_S):
                line = await lane.order(order)
                assert (line["word"], line["status"]) == ("ended", -signal.SIGKILL)
                await _start_and_look(lane, order, past)
        except Exception as error:
            error.add_note(f"The server was killed at {point!r}; {AT}={point!r} tries it alone.")
            raise


@pytest.mark.rules("C1.3", "S12")
@pytest.mark.parametrize("old", [False, True], ids=["new", "old"])
async def test_a_start_that_was_cut_anywhere_is_made_up_for_by_the_next_one(
    old: bool, tmp_path: Path, show_figures: Callable[[str], None]
) -> None:
    began = time.monotonic()
    async with AsyncExitStack() as stack:
        lanes = [await stack.enter_async_context(open_lane()) for _ in range(LANES)]
        async with asyncio.timeout(PATIENCE_S):
            past = await _make_past(lanes[0], tmp_path) if old else None
            clean = make_folder(tmp_path, 0)
            order = _order(clean, make_order(clean)["port"], past, trace=True)
            await _start_and_look(lanes[0], order, past)
        points = _points(clean)
        assert sum(point.endswith(": COMMIT") for point in points) >= len(load_migrations()) - old
        if AT in os.environ:
            points = [os.environ[AT]]
        waiting = iter(enumerate(points, 1))
        async with asyncio.TaskGroup() as group:
            for lane in lanes:
                group.create_task(_try_all(lane, tmp_path, past, waiting))
    took_s = time.monotonic() - began
    show_figures(f"start: killed at {len(points)} points, {took_s:.0f} s")
