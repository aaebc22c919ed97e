"""A server that dies with SIGKILL at random, again and again, while a client does what it likes."""

import asyncio
import os
import random
import signal
import time
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

import pytest
from flow.crash_client import POLICY, RING, HastyClock, Stall, Witness, read_acts
from flow.crash_law import check_law, check_prompts
from flow.lane import PATIENCE_S, Lane, decode, make_folder, open_lane, read_log

from towline_client import (
    CallOptions,
    Client,
    ClientError,
    CommandRejected,
    ConnectionLost,
    Session,
)
from towline_client.caller import Caller
from towline_protocol import (
    OPERATIONS,
    CallView,
    CloseSession,
    CreateSession,
    ForkSession,
    Interrupt,
    Interrupted,
    PromptAccepted,
    PromptId,
    QueueResumed,
    SendPrompt,
    SessionDeleted,
    SessionId,
    SessionInfo,
    SessionView,
    Text,
    ToolEnded,
    ToolProposed,
    Withdrawn,
)

KILLS: Final = 30
LIMIT_S: Final = 45.0
"""Seconds after which no server is killed any more, however few were."""
SEED: Final = "TOWLINE_CRASH_SEED"
"""The environment variable that has a run do the same again."""
MOST: Final = 3
"""Sessions that are open at once."""
TEXTS: Final = (
    "hello", "mark {}", "mark {}", "put", "ask why", "ring", "run true", "everything", "also {}",
)  # fmt: skip

pytestmark = pytest.mark.slow


class Reaper:
    """Starts one server after the other; each dies at a place that is drawn, or after so many
    frames, whatever comes first.
    """

    def __init__(self, lane: Lane, order: dict[str, object], chance: random.Random) -> None:
        self.kills: Counter[str] = Counter()
        """What killed a server: the commit or the answer or tool that was drawn, or a frame."""
        self.last = 1
        """The highest number that was seen: where the next events come."""
        self.calm = asyncio.Event()
        """No server is killed any more."""
        self._lane = lane
        self._order = order
        self._chance = chance
        self._frames = 0
        self._by = ""
        self._until = 0.0
        self._leaving = False

    async def start(self) -> str:
        """The first server's address."""
        self._until = time.monotonic() + LIMIT_S
        return await self._start()

    def on_frame(self) -> None:
        """A frame has come; it may be the last one of this server."""
        self._frames -= 1
        if self._frames == 0 and not self.calm.is_set():
            self._by = "frame"
            self._lane.kill()

    async def keep(self) -> None:
        """Start the next one, and the next one, until `leave`."""
        while True:
            status = await self._lane.ended()
            if self._leaving:
                return
            assert status == -signal.SIGKILL, status
            self.kills[self._by] += 1
            await self._start()

    def leave(self) -> None:
        """End the last one."""
        self._leaving = True
        self._lane.kill()

    async def _start(self) -> str:
        while True:
            line = await self._lane.order({**self._order, **self._draw()})
            if line["word"] == "ready":
                return line["url"]
            assert line["status"] == -signal.SIGKILL, line  # it did not get that far
            self.kills[self._by] += 1

    def _draw(self) -> dict[str, object]:
        """Where the next one dies."""
        self._by = ""
        if self.kills.total() >= KILLS or time.monotonic() > self._until:
            self.calm.set()
            return {}
        self._frames = self._chance.randint(5, 80)
        self._by = self._chance.choice(("before", "after", "inside"))
        if self._by == "inside":
            return {"inside": self._chance.randint(1, 6)}
        return {"kill": f"{self._by} {self.last + self._chance.randint(1, 20)}"}


class Crowd:
    """Everything that clients do at random, each thing until it is answered."""

    def __init__(
        self, client: Client, caller: Caller, reaper: Reaper, chance: random.Random
    ) -> None:
        self.acked: dict[SessionId, list[PromptId]] = defaultdict(list)
        self.deleted: set[SessionId] = set()
        self.known: set[SessionId] = set()
        self.rung: Counter[str] = Counter()
        self.done: Counter[str] = Counter()
        self._client = client
        self._caller = caller
        self._reaper = reaper
        self._chance = chance
        self._open: dict[SessionId, Session] = {}
        self._attending: list[asyncio.Task[None]] = []
        self._words = 0

    async def act(self) -> None:
        """Do something."""
        if not self._open:
            await self._begin()
            return
        session = self._chance.choice(list(self._open.values()))
        acts: list[Callable[[Session], Awaitable[object]]] = [
            self._prompt, self._prompt, self._prompt, self._prompt, self._interrupt,
            self._interrupt, self._withdraw, self._resume, self._retry, self._fork, self._end,
        ]  # fmt: skip
        act = self._chance.choice(acts)
        self.done[act.__name__.strip("_")] += 1
        await act(session)

    async def settle(self) -> None:
        """Have all that waits run, and see that each session takes the next prompt."""
        for id_, session in list(self._open.items()):
            accepted = await self._call("send_prompt", PromptAccepted, id_, _say("at last"))
            self.acked[id_].append(accepted.prompt)
            async for view in session.views:
                said = {entry.id for entry in view.messages}
                if accepted.prompt in said and view.turn is None and not view.queue:
                    break
            else:
                raise AssertionError(f"the line to {id_} ended before its last turn")
        for session in self._open.values():
            await session.close()
        await asyncio.gather(*self._attending)

    async def _call(
        self, name: str, answer: Any, session: SessionId | None, body: Any = None, **params: str
    ) -> Any:
        """What a call is answered; `None` for a refusal, which is an answer too."""
        named = params if session is None else {"session": session, **params}
        self._words += 1
        key = f"key {self._words}"
        options = CallOptions(key=key) if OPERATIONS[name].idempotent else CallOptions()
        while True:
            try:
                return await self._caller.call(
                    name, answer, params=named, body=body, options=options
                )
            except ConnectionLost:
                continue
            except CommandRejected:
                return None

    async def _begin(self) -> None:
        new = CreateSession(tools=(RING,))
        made = await self._call("create_session", SessionInfo, None, new)
        assert made is not None
        await self._follow(made.id)

    async def _follow(self, id_: SessionId) -> None:
        self.known.add(id_)
        while True:
            try:
                session = await self._client.open(id_)
            except ConnectionLost:
                continue
            self._open[id_] = session
            self._attending.append(asyncio.create_task(self._attend(session)))
            return

    async def _prompt(self, session: Session) -> None:
        self._words += 1
        text = self._chance.choice(TEXTS).format(f"word{self._words}")
        when = "steer" if text.startswith("also") else self._chance.choice(("auto", "queue"))
        accepted = await self._call("send_prompt", PromptAccepted, session.id, _say(text, when))
        if accepted is not None:
            self.acked[session.id].append(accepted.prompt)

    async def _interrupt(self, session: Session) -> None:
        await self._call("interrupt", Interrupted, session.id, Interrupt())

    async def _withdraw(self, session: Session) -> None:
        if session.view.queue:
            prompt = self._chance.choice(session.view.queue).prompt
            await self._call("withdraw_prompt", Withdrawn, session.id, prompt=prompt)

    async def _resume(self, session: Session) -> None:
        await self._call("resume_queue", QueueResumed, session.id)

    async def _retry(self, session: Session) -> None:
        accepted = await self._call("retry", PromptAccepted, session.id)
        if accepted is not None:
            self.acked[session.id].append(accepted.prompt)

    async def _fork(self, session: Session) -> None:
        fork = await self._call("fork_session", SessionInfo, session.id, ForkSession())
        if fork is None:
            return
        self.known.add(fork.id)
        if len(self._open) < MOST:
            await self._follow(fork.id)

    async def _end(self, session: Session) -> None:
        del self._open[session.id]
        if self._chance.random() < 0.5:
            ended = await self._call("close_session", SessionInfo, session.id, CloseSession())
        else:
            self.deleted.add(session.id)
            ended = await self._call("delete_session", SessionDeleted, session.id)
        assert ended is not None

    async def _attend(self, session: Session) -> None:
        """Answer what is asked and run what is called, once; refusals are answers."""
        done: set[str] = set()
        try:
            async for view in session.views:
                self._reaper.last = max(self._reaper.last, view.seq)
                await self._answer(session, view, done)
        except ClientError:
            assert session.id in self.deleted

    async def _answer(self, session: Session, view: SessionView, done: set[str]) -> None:
        for request in view.permissions:
            if request.permission not in done:
                done.add(request.permission)
                option = self._chance.choice(request.options).id
                await _persist(lambda r=request, o=option: session.answer(r, o))
        for question in view.questions:
            if question.question not in done:
                done.add(question.question)
                answers = {item.id: "option_1" for item in question.items}
                await _persist(lambda q=question, a=answers: session.answer_question(q, a))
        for call in view.open_calls:
            if call.expires_at is not None and call.call not in done:
                done.add(call.call)
                await self._ring(session, call)

    async def _ring(self, session: Session, call: CallView) -> None:
        if await _persist(lambda: session.claim(call.call)) is not None:
            self.rung[call.call] += 1
            await _persist(lambda: session.send_result(call.call, "rang"))


def _say(text: str, when: str = "auto") -> SendPrompt:
    return SendPrompt(content=(Text(text=text),), when=when)


async def _persist(ask: Callable[[], Awaitable[object]]) -> object:
    while True:
        try:
            return await ask()
        except ConnectionLost:
            continue
        except CommandRejected:
            return None


def _check(folder: Path, crowd: Crowd, seen: list[tuple[int, bytes]]) -> None:
    """What holds of all sessions, whatever was done and whenever the server died."""
    logs = {
        id_: [] if id_ in crowd.deleted else read_log(folder, id_)
        for id_ in sorted(crowd.known | crowd.deleted)
    }
    for number, data in seen:
        log = logs[decode(data).session]
        assert not log or log[number - 1] == data  # what was shown once is there for ever
    done = Counter(call for _, call in read_acts(folder))
    for id_, log in logs.items():
        envelopes = [decode(data) for data in log]
        check_law(envelopes)
        if log:
            check_prompts(envelopes, crowd.acked[id_])
        tools = {e.event.call: e.event.tool for e in envelopes if isinstance(e.event, ToolProposed)}
        ends = {e.event.call: e.event for e in envelopes if isinstance(e.event, ToolEnded)}
        for call, tool in tools.items():
            if tool == "mark":
                assert done[call] <= 1
                assert done[call] == 1 or ends[call].status != "completed"
    assert all(times == 1 for times in crowd.rung.values())


@pytest.mark.rules("C1.3", "C1.4", "C1.20", "C1.23", "C5.4", "C5.5", "C5.7", "S12", "S14", "S25")
async def test_a_server_killed_at_random_again_and_again_keeps_the_law(
    tmp_path: Path, show_figures: Callable[[str], None]
) -> None:
    seed = int(os.environ.get(SEED) or random.SystemRandom().randrange(1_000_000))
    chance = random.Random(seed)
    began = time.monotonic()
    try:
        async with open_lane() as lane, asyncio.timeout(LIMIT_S + PATIENCE_S):
            stall = await Stall.prepare(lane, make_folder(tmp_path, 0))
            folder = make_folder(tmp_path)
            reaper = Reaper(lane, stall.order(folder, mode="ask"), chance)
            url = await reaper.start()
            witness = Witness(url, reaper.on_frame)
            clock = HastyClock()
            caller = Caller(witness, stall.token, clock=clock, mint_key=lambda: "")
            async with asyncio.TaskGroup() as group:
                keeping = group.create_task(reaper.keep())
                async with Client(
                    url, stall.token, transport=witness, clock=clock, policy=POLICY
                ) as client:
                    crowd = Crowd(client, caller, reaper, chance)
                    while not reaper.calm.is_set():
                        await crowd.act()
                    await crowd.settle()
                reaper.leave()
                await keeping
        _check(folder, crowd, witness.seen)
    except BaseException as error:
        error.add_note(f"{SEED}={seed} does the same again, as far as time lets it.")
        raise
    took_s = time.monotonic() - began
    did = ", ".join(f"{name} {count}" for name, count in crowd.done.most_common())
    kills = ", ".join(f"{count} {by}" for by, count in reaper.kills.most_common())
    show_figures(f"seed {seed}: killed {kills}; {took_s:.0f} s; {did}")
