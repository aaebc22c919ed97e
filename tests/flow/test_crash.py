"""A server that dies with SIGKILL at every point of a turn, and a client that does not mind.

`crash_server.py` is the server: the real `serve()`, with a model that answers by what it is told
and a tool that leaves marks outside the store.
"""

import asyncio
import signal
import sys
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final

import msgspec
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

from towline_agent.workspaces.processes import list_processes
from towline_client import (
    Call,
    Client,
    ConnectionLost,
    LinkPolicy,
    Reply,
    Session,
    StreamReply,
)
from towline_client.http import HttpTransport
from towline_protocol import (
    TERMINAL_EVENTS,
    CreateSession,
    Envelope,
    MessageEnded,
    PermissionId,
    PermissionRequested,
    PermissionResolved,
    Process,
    PromptAccepted,
    PromptAdmitted,
    PromptDelivered,
    SseDecoder,
    Text,
    ToolEnded,
    ToolOutputDelta,
    ToolProposed,
    ToolStarted,
    TurnResumed,
    TurnStarted,
    block_text,
)

LANES: Final = 2
"""Points that are tried at once."""
QUICK: Final = LinkPolicy(first_ms=20, most_ms=100, patience=1_000_000, long_ms=100)
"""Comes back sooner than a person's client, so that a point does not wait for its turn."""

pytestmark = pytest.mark.slow


class Witness:
    """A transport that notes every stored frame that came over the wire, byte for byte."""

    def __init__(self, url: str) -> None:
        self.seen: list[tuple[int, bytes]] = []
        self._http = HttpTransport(url)

    async def request(self, call: Call) -> Reply:
        return await self._http.request(call)

    @asynccontextmanager
    async def stream(self, call: Call) -> AsyncGenerator[StreamReply]:
        async with self._http.stream(call) as reply:
            yield msgspec.structs.replace(reply, chunks=self._note(reply.chunks))

    async def close(self) -> None:
        await self._http.close()

    async def _note(self, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        decoder = SseDecoder()
        async for chunk in chunks:
            for event in decoder.feed(chunk):
                if event.id is not None:
                    self.seen.append((int(event.id), event.data))
            yield chunk


async def _send(session: Session, text: str) -> PromptAccepted:
    """Send under one key until it is acknowledged, as an outbox does (C4.9)."""
    while True:
        try:
            return await session.prompt(text, key="the-first")
        except ConnectionLost:
            continue


async def _approve(session: Session) -> None:
    """Say yes to each request, once; a person does not mind asking twice for an answer."""
    said: set[PermissionId] = set()
    async for view in session.views:
        for request in view.permissions:
            while request.permission not in said:
                try:
                    await session.answer(request, "allow_once")
                except ConnectionLost:
                    continue
                said.add(request.permission)


async def _end_of_turn(session: Session) -> None:
    async for view in session.views:
        if view.last_turn is not None and view.turn is None and not view.queue:
            return


def _read_marks(folder: Path) -> list[str]:
    marks = folder / "marks"
    return marks.read_text(encoding="utf-8").split() if marks.exists() else []


class Run:
    """What one server life after the other left behind."""

    def __init__(
        self, log: list[bytes], marks: list[str], seen: list[tuple[int, bytes]], told: str
    ) -> None:
        self.log = log
        self.events = [decode(data).event for data in log]
        self.turns = [decode(data).turn for data in log]
        self.marks = marks
        self.seen = seen
        self.told = told
        """What the next prompt was answered."""

    def of(self, kind: type) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    def place(self, *kinds: type) -> int:
        return next(n for n, event in enumerate(self.events) if isinstance(event, kinds))


async def _live(lane: Lane, order: dict[str, object], folder: Path) -> Run:
    """Prompt a server that dies as its order says, start it again, and wait for the end."""
    order = {**make_order(folder), **order}
    ready = await lane.start(order)
    witness = Witness(ready["url"])
    token = await claim_token(ready["url"], ready["code"])
    async with Client(ready["url"], token, transport=witness, policy=QUICK) as client:
        session = await client.open()
        people = asyncio.create_task(_approve(session))
        prompt = asyncio.create_task(_send(session, "mark here"))
        if order.get("kill"):
            assert await lane.ended() == -signal.SIGKILL
            again = await lane.start({**order, "kill": ""})
            assert again["url"] == ready["url"]
        accepted = await prompt
        await _end_of_turn(session)
        told = await session.ask("and now?")
        await session.close()
        await people  # the views have ended
    lane.kill()
    await lane.ended()
    log = read_log(folder, session.id)
    run = Run(log, _read_marks(folder), witness.seen, told)
    assert run.of(PromptAdmitted)[0].prompt == accepted.prompt
    return run


def _check(run: Run) -> None:
    """What holds wherever the server died."""
    assert len(run.of(PromptAdmitted)) == len(run.of(PromptDelivered)) == 2  # none lost or doubled
    assert len(run.of(TurnStarted)) == 2
    for turn in {turn for turn in run.turns if turn is not None}:
        events = [e for e, of in zip(run.events, run.turns, strict=True) if of == turn]
        assert [isinstance(event, TERMINAL_EVENTS) for event in events].count(True) == 1
        assert isinstance(events[-1], TERMINAL_EVENTS)  # and it is the last one
    assert [event.call for event in run.of(ToolProposed)] == [e.call for e in run.of(ToolEnded)]
    assert [number for number, _ in run.seen] == list(range(2, len(run.log) + 1))
    for number, data in run.seen:
        assert run.log[number - 1] == data  # what was shown once is there for ever
    assert run.told == "and now?"
    _check_effect(run)


def _check_effect(run: Run) -> None:
    """The tool acted once; or nobody knows, and then the model was told so."""
    (ended,) = run.of(ToolEnded)
    resumed = [place for place, e in enumerate(run.events) if isinstance(e, TurnResumed)]
    started, end = run.place(ToolStarted), run.place(ToolEnded)
    if any(started < place < end for place in resumed):
        assert ended.status == "unknown"
        assert len(run.marks) <= 1
        assert "may or may not" in _answers(run)[-2]
    else:
        assert ended.status == "completed"
        assert run.marks == ["here"]
        assert _answers(run)[-2] == "It told me: marked here"


def _answers(run: Run) -> list[str]:
    return [block_text(event.content) for event in run.of(MessageEnded)]


def _points(run: Run) -> list[dict[str, object]]:
    """Every place to die at in the first turn, out of a run that nothing disturbed."""
    stored: list[dict[str, object]] = [
        {"kill": phase, "seq": number + 1}
        for number in range(run.place(PromptAdmitted), run.place(*TERMINAL_EVENTS) + 1)
        for phase in ("before", "after")
    ]
    return [*stored, {"kill": "enter"}, {"kill": "acted"}]


def _check_point(run: Run, point: dict[str, object]) -> None:
    """What the point itself decides."""
    if point["kill"] in ("enter", "acted"):
        assert run.of(ToolEnded)[0].status == "unknown"
        assert len(run.marks) == (point["kill"] == "acted")
    requests: list[PermissionRequested] = run.of(PermissionRequested)
    assert len({(request.permission, request.digest) for request in requests}) <= 1
    assert len(run.of(PermissionResolved)) == min(1, len(requests))


@pytest.mark.rules("C1.3", "C1.4", "C1.20", "C1.21", "C4.2", "C5.4", "C5.5", "S12", "S25")
@pytest.mark.parametrize(("mode", "events"), [("auto", 15), ("ask", 17)])
async def test_a_server_killed_at_any_point_of_a_turn_loses_and_doubles_nothing(
    mode: str, events: int, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    tried: list[dict[str, object]] = []

    async def work(lane: Lane, points: Iterator[dict[str, object]]) -> None:
        for point in points:
            tried.append(point)
            try:
                async with asyncio.timeout(PATIENCE_S):
                    run = await _live(
                        lane, {**point, "mode": mode}, make_folder(tmp_path, len(tried))
                    )
                _check(run)
                _check_point(run, point)
            except Exception as error:
                error.add_note(f"The server was killed at {point} in mode {mode!r}.")
                raise

    began = time.monotonic()
    async with AsyncExitStack() as stack:
        lanes = [await stack.enter_async_context(open_lane()) for _ in range(LANES)]
        baseline = await _live(lanes[0], {"mode": mode}, make_folder(tmp_path, 0))
        _check(baseline)
        points = _points(baseline)
        assert len(points) == 2 * events + 2
        async with asyncio.TaskGroup() as group:
            waiting = iter(points)
            for lane in lanes:
                group.create_task(work(lane, waiting))
    assert len(tried) == len(points)
    with capfd.disabled():
        took_s = time.monotonic() - began
        sys.stdout.write(f"[mode {mode}: killed at {len(tried)} points, {took_s:.0f} s] ")


@pytest.mark.rules("C2.5", "S25")
@pytest.mark.parametrize("kill", ["before", "after"])
async def test_a_session_made_with_its_first_prompt_is_made_once(kill: str, tmp_path: Path) -> None:
    folder = make_folder(tmp_path)
    order = make_order(folder)
    async with asyncio.timeout(PATIENCE_S), open_lane() as lane:
        ready = await lane.start({**order, "kill": kill, "seq": 1})
        async with Client(ready["url"], await claim_token(ready["url"], ready["code"])) as client:
            new = CreateSession(prompt=(Text(text="mark here"),))
            making = asyncio.create_task(client.create_session(new, key="once"))
            assert await lane.ended() == -signal.SIGKILL
            await lane.start(order)
            made = await making  # sent again by the client itself, under its key
            session = await client.open(made.id)
            await _end_of_turn(session)
            assert [row.id for row in (await client.list_sessions()).sessions] == [made.id]
        lane.kill()
        await lane.ended()
    events = [decode(data).event for data in read_log(folder, made.id)]
    assert [type(event) for event in events].count(PromptAdmitted) == 1
    assert _read_marks(folder) == ["here"]


@pytest.mark.rules("C5.5", "C5.6", "S12", "A5.25")
async def test_a_program_of_a_killed_server_does_not_run_beside_the_resumed_turn(
    tmp_path: Path,
) -> None:
    folder = make_folder(tmp_path)
    order = make_order(folder)
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
            assert _living(program)  # it outlives its server, until the next one comes
            await lane.start(order)
            async for event in session.events:
                if isinstance(event, Envelope) and isinstance(event.event, TurnResumed):
                    assert not _living(program)
                    break
            await _end_of_turn(session)
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
