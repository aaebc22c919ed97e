"""A server that dies with SIGKILL at every point of a turn that holds everything, and a client that
does not mind.
"""

import asyncio
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final

import pytest
from flow.crash_client import Desk, Run, Stall, end_of_turn, read_marks
from flow.crash_law import check_law
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

from towline_agent.workspaces.processes import list_processes
from towline_client import Client, LinkPolicy, Session
from towline_protocol import (
    TERMINAL_EVENTS,
    ClientCallClaimed,
    ClientCallOffered,
    CreateSession,
    Envelope,
    MessageEnded,
    PermissionRequested,
    PermissionResolved,
    Process,
    PromptAdmitted,
    PromptDelivered,
    QuestionAsked,
    QuestionResolved,
    Text,
    ToolEnded,
    ToolOutputDelta,
    ToolProposed,
    ToolStarted,
    TurnCompleted,
    TurnResumed,
    block_text,
)

LANES: Final = 3
"""Points that are tried at once."""
AT: Final = "TOWLINE_CRASH_AT"
"""The environment variable that names the one point to try."""
QUICK: Final = LinkPolicy(first_ms=20, most_ms=100, patience=1_000_000, long_ms=100)
"""Comes back sooner than a person's client, so that a point does not wait for its turn."""

pytestmark = pytest.mark.slow


class Life:
    """One call of a run, from its proposal to its end."""

    def __init__(self, run: Run, proposed: ToolProposed) -> None:
        self.proposed = proposed
        self.places = {
            kind: [
                place
                for place, event in enumerate(run.events)
                if isinstance(event, kind) and event.call == proposed.call
            ]
            for kind in (ToolProposed, ToolStarted, ToolEnded)
        }
        (end,) = self.places[ToolEnded]  # exactly one
        self.ended: ToolEnded = run.events[end]
        resumed = [n for n, event in enumerate(run.events) if isinstance(event, TurnResumed)]
        started = self.places[ToolStarted]
        self.cut = any(started[0] < place < end for place in resumed)
        """Whether the server died while it ran, as far as the log knows."""

    @property
    def told(self) -> str:
        """What the model was told."""
        return block_text(self.ended.content)


def _of(run: Run, kind: type) -> list[Any]:
    return [event for event in run.events if isinstance(event, kind)]


def _check(run: Run) -> None:
    """What holds wherever the server died."""
    _check_frames(run)
    _check_prompts(run)
    _check_turns(run)
    _check_people(run)
    _check_calls(run)


def _check_frames(run: Run) -> None:
    """What was shown once is there for ever, and nothing was shown twice or left out."""
    assert [number for number, _ in run.seen] == list(range(2, len(run.log) + 1))
    for number, data in run.seen:
        assert run.log[number - 1] == data


def _check_prompts(run: Run) -> None:
    """None is lost or doubled, and each went where it was meant to."""
    admitted: list[PromptAdmitted] = _of(run, PromptAdmitted)
    assert [event.key for event in admitted][:-1] == ["prompt", "steer", "queue"]
    for event in admitted[:-1]:
        assert event.key is not None
        assert run.acked[event.key].prompt == event.prompt
    delivered: list[PromptDelivered] = _of(run, PromptDelivered)
    assert [event.prompt for event in delivered] == [event.prompt for event in admitted]
    assert [event.how for event in delivered] == ["started", "steered", "started", "started"]
    assert run.told == "and now?"


def _check_turns(run: Run) -> None:
    """Each has one end, and all of them are as they should be."""
    check_law([decode(data) for data in run.log])
    assert len(_of(run, TurnCompleted)) == 3
    assert len(_of(run, TurnResumed)) <= 1


def _check_people(run: Run) -> None:
    """Each request is one, however often it was shown, and has the answer that was given."""
    asked: list[PermissionRequested] = _of(run, PermissionRequested)
    ids = dict.fromkeys((event.permission, event.tool, event.digest) for event in asked)
    assert [tool for _, tool, _ in ids] == ["mark", "ring"]
    resolved: list[PermissionResolved] = _of(run, PermissionResolved)
    assert [event.permission for event in resolved] == [id_ for id_, _, _ in ids]
    assert [event.option for event in resolved] == ["allow_session", "allow_once"]
    questions: list[QuestionAsked] = _of(run, QuestionAsked)
    answers: list[QuestionResolved] = _of(run, QuestionResolved)
    assert {event.question for event in questions} == {event.question for event in answers}
    assert [event.answers for event in answers] == [{"item_1": ("option_1",)}]


def _check_calls(run: Run) -> None:
    """Each has one end; what must not act twice did not; what is not known is told so."""
    lives = [Life(run, event) for event in _of(run, ToolProposed)]
    tools = [life.proposed.tool for life in lives]
    assert tools == ["look", "mark", "mark", "put", "ask_user", "ring"]
    assert len(_of(run, ToolEnded)) == len(lives)
    look, one, two, put, question, ring = lives
    for word, life in (("one", one), ("two", two)):
        if life.cut:
            assert life.ended.status == "unknown"
            assert run.marks.count(word) <= 1
            assert "may or may not" in life.told
        else:
            assert (life.ended.status, life.told) == ("completed", f"marked {word}")
            assert run.marks.count(word) == 1
    for word, life in (("looked", look), ("put", put)):
        assert (life.ended.status, life.told) == ("completed", word)
        assert 1 <= run.marks.count(word) <= 1 + life.cut
    assert question.told == "Which way?\n→ left"
    assert (ring.ended.status, ring.told, run.rung) == ("completed", "rang", 1)
    assert [event.by for event in _of(run, ClientCallClaimed)] == [run.reader]
    offers: list[ClientCallOffered] = _of(run, ClientCallOffered)
    assert {offer.to for offer in offers} <= {None, run.reader}
    said = [block_text(event.content) for event in _of(run, MessageEnded)]
    told = " ".join(life.told for life in lives)
    assert said[2:] == [f"It told me: {told} also this", "later", "and now?"]


def _check_point(run: Run, point: str) -> None:
    """What the point itself decides."""
    name, _, phase = point.partition(": ")
    if name.startswith("mark "):
        life = next(
            life
            for life in (Life(run, event) for event in _of(run, ToolProposed))
            if life.proposed.arguments == f'{{"word": "{name.removeprefix("mark ")}"}}'
        )
        assert life.cut
        assert run.marks.count(name.removeprefix("mark ")) == (phase == "acted")
    if name in ("look", "put"):
        word = {"look": "looked", "put": "put"}[name]
        assert run.marks.count(word) == 1 + (phase == "acted")


def _points(folder: Path, run: Run) -> list[str]:
    """Every place to die at up to the end of the queued turn, out of a run that nothing disturbed.

    Each stored event has two, and what the server and the client do beside it has its own.
    """
    ends = [n for n, event in enumerate(run.events, 1) if isinstance(event, TERMINAL_EVENTS)]
    passed = (folder / "places").read_text(encoding="utf-8").splitlines()
    server = list(dict.fromkeys(passed[: passed.index(f"after {ends[1]}") + 1]))
    commits = [place for place in server if place.startswith(("before ", "after "))]
    assert sorted(commits) == sorted(
        f"{phase} {number}" for number in range(1, ends[1] + 1) for phase in ("before", "after")
    )
    effects = [place for place in server if place not in commits]
    assert len(effects) == 2 * len(("look", "mark one", "mark two", "put")) + 4  # and four answers
    assert len(run.places) == 2 + len(run.acked)  # in the handler, and after each answer
    return [*server, *run.places]


async def _try_all(lane: Lane, parent: Path, points: Iterator[tuple[int, str]]) -> None:
    stall = await Stall.prepare(lane, make_folder(parent, -id(lane)))
    for number, point in points:
        folder = make_folder(parent, number)
        order = stall.order(folder, mode="ask", kill=point)
        try:
            async with asyncio.timeout(PATIENCE_S):
                run = await Desk(stall, order).live()
            _check(run)
            _check_point(run, point)
        except Exception as error:
            error.add_note(f"The server was killed at {point!r}; {AT}={point!r} tries it alone.")
            raise


async def _enumerate(lane: Lane, parent: Path) -> Sequence[str]:
    stall = await Stall.prepare(lane, make_folder(parent, -1))
    folder = make_folder(parent, 0)
    order = stall.order(folder, mode="ask", kill="", trace=True)
    async with asyncio.timeout(PATIENCE_S):
        run = await Desk(stall, order).live()
    _check(run)
    return _points(folder, run)


@pytest.mark.rules(
    "C1.3", "C1.4", "C1.20", "C1.21", "C1.23", "C4.2", "C5.4", "C5.5", "C5.7", "C5.8", "C5.10",
    "C5.12", "S12", "S14", "S20", "S23", "S25",
)  # fmt: skip
async def test_a_server_killed_at_any_point_of_a_turn_loses_and_doubles_nothing(
    tmp_path: Path, show_figures: Callable[[str], None]
) -> None:
    began = time.monotonic()
    async with AsyncExitStack() as stack:
        lanes = [await stack.enter_async_context(open_lane()) for _ in range(LANES)]
        points = await _enumerate(lanes[0], tmp_path)
        if AT in os.environ:
            points = [os.environ[AT]]
        waiting = iter(enumerate(points, 1))
        async with asyncio.TaskGroup() as group:
            for lane in lanes:
                group.create_task(_try_all(lane, tmp_path, waiting))
    assert next(waiting, None) is None
    took_s = time.monotonic() - began
    show_figures(f"killed at {len(points)} points, {took_s:.0f} s")


@pytest.mark.rules("C2.5", "S25")
@pytest.mark.parametrize("kill", ["before", "after"])
async def test_a_session_made_with_its_first_prompt_is_made_once(kill: str, tmp_path: Path) -> None:
    folder = make_folder(tmp_path)
    order = make_order(folder)
    async with asyncio.timeout(PATIENCE_S), open_lane() as lane:
        ready = await lane.start({**order, "kill": f"{kill} 1"})
        async with Client(ready["url"], await claim_token(ready["url"], ready["code"])) as client:
            new = CreateSession(prompt=(Text(text="mark here"),))
            making = asyncio.create_task(client.create_session(new, key="once"))
            assert await lane.ended() == -signal.SIGKILL
            await lane.start(order)
            made = await making  # sent again by the client itself, under its key
            session = await client.open(made.id)
            await end_of_turn(session)
            assert [row.id for row in (await client.list_sessions()).sessions] == [made.id]
        lane.kill()
        await lane.ended()
    events = [decode(data).event for data in read_log(folder, made.id)]
    assert [type(event) for event in events].count(PromptAdmitted) == 1
    assert read_marks(folder) == ["here"]


@pytest.mark.rules("C5.5", "C5.6", "S12", "A5.25")
@pytest.mark.parametrize("sandbox", ["off", "auto"])
@pytest.mark.alone
async def test_a_program_of_a_killed_server_does_not_run_beside_the_resumed_turn(
    sandbox: str, tmp_path: Path
) -> None:
    folder = make_folder(tmp_path)
    order = make_order(folder, sandbox=sandbox)
    async with asyncio.timeout(PATIENCE_S), open_lane() as lane:
        ready = await lane.start(order)
        token = await claim_token(ready["url"], ready["code"])
        async with Client(ready["url"], token, policy=QUICK) as client:
            session = await client.open()
            await session.prompt("run sh -c 'echo here; sleep 600; echo >late'")
            program = await _see_it_run(session)
            assert _living(program)
            lane.kill()
            assert await lane.ended() == -signal.SIGKILL
            if sandbox == "off":  # it outlives its server; in bubblewrap it ends with it
                assert _living(program)
            await lane.start(order)
            async for event in session.events:
                if isinstance(event, Envelope) and isinstance(event.event, TurnResumed):
                    assert not _living(program)
                    break
            await end_of_turn(session)
            (ended,) = session.view.calls
            assert ended.status == "unknown"
            assert await session.ask("and now?") == "and now?"
        lane.kill()
        await lane.ended()
    assert not (folder / "late").exists()


async def _see_it_run(session: Session) -> Process:
    """The program's process, once it has said something."""
    process: Process | None = None
    async for event in session.events:
        match event:
            case Envelope(event=PermissionRequested() as request):
                await session.answer(request, "allow_once")  # outside a sandbox it asks
            case Envelope(event=ToolStarted(process=started)):
                process = started
            case Envelope(event=ToolOutputDelta()):
                assert process is not None
                return process
            case _:
                pass
    raise AssertionError("the session ended before the program began")


def _living(process: Process) -> bool:
    """Whether the program or anything that it started is alive."""
    return any(
        not row.zombie and process.pid in (row.pid, row.group, row.session)
        for row in list_processes()
    )
