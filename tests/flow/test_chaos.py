"""Fifty turns over a line that breaks all the time, to a server that is killed again and again."""

import asyncio
import functools
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from flow.chaos_client import WAITS, Bell, Desk, End, Reader, Way
from flow.crash_client import Stall, read_acts
from flow.crash_law import check_law, check_prompts
from flow.lane import PATIENCE_S, Lane, decode, make_folder, open_lane, read_log
from flow.rude_lane import pause

from towline_client import Client
from towline_client.testing import ChaosProxy, Faults
from towline_protocol import (
    ClientCallClaimed,
    Envelope,
    PromptAdmitted,
    SessionId,
    SessionView,
    ToolEnded,
    ToolProposed,
    TurnCompleted,
    block_text,
    empty_view,
    reduce,
)

TURNS: Final = 50
KILLS: Final = 5
LIMIT_S: Final = 120.0
"""The longest that all may take; it is some 15 s on an idle machine."""
SEEDS: Final = "TOWLINE_CHAOS_SEEDS"
"""The environment variable that names other seeds, with blanks between them."""
FAULTS: Final = Faults(
    cut=0.15, half_frame=0.1, double=0.15, unauthorized=0.02, portal=0.01, bad_gateway=0.05,
    black_hole=0.02, refuse=0.02, delay=0.05, double_frame=0.05, delay_s=0.02, hole_s=0.5,
    refuse_s=0.1,
)  # fmt: skip
WORDS: Final = ("tell 60", "mark {}", "ring", "everything", "tell 30", "put", "ring", "hello {}")
"""What is said, over and over: long talk, tools of each kind, permissions, questions."""

_SEEDS: Final = os.environ.get(SEEDS) or "2 600331"

pytestmark = pytest.mark.slow


class Storm:
    """Does what no plan does: kills the server, and all at once to the whole network."""

    def __init__(
        self,
        lane: Lane,
        order: dict[str, object],
        url: str,
        proxy: ChaosProxy,
        group: asyncio.TaskGroup,
    ) -> None:
        self.kills = 0
        self._lane = lane
        self._order = order
        self._url = url
        self._proxy = proxy
        self._group = group
        self._tasks: list[asyncio.Task[None]] = []
        every = TURNS // (KILLS + 1)
        self._deaths = {every * (number + 1) for number in range(KILLS)}

    def said(self, number: int) -> None:
        """A turn begins: time for harm."""
        if number in self._deaths:
            self._tasks.append(self._group.create_task(self._kill()))
        elif number % 3 == 1:
            harms: list[Callable[[], object]] = [
                self._proxy.black_hole,
                functools.partial(self._proxy.cut, reset=True),
                self._proxy.portal,
                functools.partial(self._proxy.cut, reset=False),
                self._proxy.refuse,
                functools.partial(self._proxy.unauthorized, 1, contract=True),
                self._proxy.bad_gateway,
                functools.partial(self._proxy.unauthorized, 3, contract=True),
                functools.partial(self._proxy.unauthorized, 2, contract=False),
            ]
            harm = harms[number // 3 % len(harms)]
            self._tasks.append(self._group.create_task(self._harm(harm)))

    async def over(self) -> None:
        """Wait for what is under way, and let the line be good."""
        if self._tasks:
            await asyncio.wait(self._tasks)
        self._proxy.faults = Faults()
        self._proxy.heal()

    async def _kill(self) -> None:
        await pause(0.02 * self.kills)  # anywhere in the turn
        self._lane.kill()
        assert await self._lane.ended() == -signal.SIGKILL
        assert (await self._lane.start(self._order))["url"] == self._url
        self.kills += 1

    async def _harm(self, harm: Callable[[], object]) -> None:
        await pause(0.05)
        harm()
        await pause(0.3)
        self._proxy.heal()


async def _begin(url: str, token: str) -> SessionId:
    async with Client(url, token) as client:
        return (await client.create_session()).id


async def _last_seq(url: str, token: str, session: SessionId) -> int:
    async with Client(url, token) as client:
        return (await client.get_view(session)).seq


def _fold(log: list[Envelope]) -> SessionView:
    return functools.reduce(reduce, log, empty_view())


def _of(log: list[Envelope], kind: type[Any]) -> list[Any]:
    return [envelope.event for envelope in log if isinstance(envelope.event, kind)]


def _check_log(log: list[Envelope], desk: Desk) -> None:
    """No prompt is lost or doubled, and each turn has its end."""
    check_law(log)
    check_prompts(log, [accepted.prompt for accepted in desk.accepted.values()])
    admitted: list[PromptAdmitted] = _of(log, PromptAdmitted)
    assert [event.key for event in admitted] == [f"prompt {number}" for number in range(TURNS)]
    assert {event.key: event.prompt for event in admitted} == {
        key: accepted.prompt for key, accepted in desk.accepted.items()
    }
    assert len(_of(log, TurnCompleted)) == TURNS


def _check_calls(log: list[Envelope], bell: Bell, folder: Path) -> None:
    """Nothing acted twice, and whatever is told as done was done."""
    tools = {event.call: event.tool for event in _of(log, ToolProposed)}
    ended: dict[str, ToolEnded] = {event.call: event for event in _of(log, ToolEnded)}
    rung, acts = Counter(bell.rung), Counter(call for _, call in read_acts(folder))
    claimed = {event.call for event in _of(log, ClientCallClaimed)}
    for call, tool in tools.items():
        done = rung[call] if tool == "ring" else acts[call]
        if tool in ("ring", "mark"):
            assert done <= 1, (tool, call)
            assert done == 1 or ended[call].status != "completed", (tool, call)
    assert set(rung) <= claimed
    rang = [call for call in rung if block_text(ended[call].content) == "rang"]
    assert len(rang) >= len(rung) - bell.lives  # each life may leave in the middle of one


def _check_views(log: list[Envelope], views: dict[str, SessionView]) -> None:
    for name, view in views.items():
        due = _fold(log[: view.seq])
        wrong = [
            field
            for field in SessionView.__struct_fields__
            if getattr(view, field) != getattr(due, field)
        ]
        assert wrong == [], name


@pytest.mark.rules("C1.3", "C1.20", "C2.5", "C4.2", "C4.3", "C4.6", "C4.7", "C4.9", "C5.4", "C5.12")
@pytest.mark.parametrize("seed", [int(seed) for seed in _SEEDS.split()])
async def test_fifty_turns_in_chaos_lose_nothing_and_do_nothing_twice(
    seed: int, tmp_path: Path, show_figures: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in WAITS.items():
        monkeypatch.setattr(name, value)
    chance = random.Random(seed)
    began = time.monotonic()
    try:
        async with open_lane() as lane, asyncio.timeout(LIMIT_S + PATIENCE_S):
            stall = await Stall.prepare(lane, make_folder(tmp_path, 0))
            folder = make_folder(tmp_path)
            order = stall.order(folder, mode="ask")
            url = (await lane.start(order))["url"]
            session = await _begin(url, stall.token)
            async with ChaosProxy(url, seed=seed, faults=FAULTS) as proxy:
                way = Way(proxy.url, stall.token, session)
                end = End()
                desk, bell = Desk(way), Bell(way, folder, chance)
                readers = [Reader(way, name, chance) for name in ("first", "second")]
                words = [WORDS[number % len(WORDS)].format(f"w{number}") for number in range(TURNS)]
                try:
                    async with asyncio.TaskGroup() as group:
                        storm = Storm(lane, order, url, proxy, group)
                        looking = [group.create_task(reader.look(end)) for reader in readers]
                        living = group.create_task(bell.live(end))
                        talking = group.create_task(desk.talk(words, storm.said, end))
                        await end.near.wait()
                        await storm.over()
                        end.seq.set_result(await _last_seq(url, stall.token, session))
                except BaseException as error:
                    error.add_note(way.tell())
                    raise
                views = {
                    "desk": talking.result(),
                    "bell": living.result(),
                    "first": looking[0].result(),
                    "second": looking[1].result(),
                    "first by events": readers[0].folded,
                    "second by events": readers[1].folded,
                }
            lane.kill(signal.SIGTERM)
            assert await lane.ended() == 0
        log = [decode(data) for data in read_log(folder, session)]
        _check_log(log, desk)
        _check_calls(log, bell, folder)
        _check_views(log, views)
        assert storm.kills == KILLS
    except BaseException as error:
        error.add_note(f"{SEEDS}={seed} does the same harm again, as far as time lets it.")
        raise
    took_s = time.monotonic() - began
    done = ", ".join(f"{name} {count}" for name, count in proxy.counts.most_common())
    show_figures(
        f"chaos, seed {seed}: {TURNS} turns, {len(log)} events, {storm.kills} kills, "
        f"{took_s:.0f} s; {done}; lines up {way.connects} times, given up {way.failures}; "
        f"{desk.answered} answers, {len(bell.rung)} client calls in {bell.lives} lives, "
        f"{sum(reader.pauses for reader in readers)} times in the background"
    )
