"""Random sessions: turns that end, are stopped, steered, crash and are resumed."""

import asyncio
import json
import logging
from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec
import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from towline_agent.errors import AbortTurn, AuthenticationFailed, ProviderUnavailable
from towline_agent.plan import CallRecord, Plan
from towline_agent.providers.base import (
    Piece,
    Request,
    StepAnswer,
    StepFailed,
    StepResult,
    TextPiece,
)
from towline_agent.testing import (
    ScriptedHost,
    ScriptedProvider,
    counted_ids,
    say,
    scripted_plan,
)
from towline_agent.tools.function import tool
from towline_agent.turn import Start
from towline_protocol import (
    TERMINAL_EVENTS,
    Block,
    CallId,
    Event,
    Message,
    MessageDiscarded,
    MessageEnded,
    MessageStarted,
    PermissionId,
    PermissionRequested,
    PermissionResolved,
    Private,
    PromptId,
    Text,
    Thinking,
    ToolCall,
    ToolEnded,
    ToolProposed,
    ToolResult,
    ToolStarted,
    Transcript,
    TurnId,
    TurnStarted,
    Usage,
)

Entry = tuple[Event, tuple[Private, ...], TurnId]


class Drawn(NamedTuple):
    """An answer of the model."""

    words: str
    thought: str | None
    calls: list[tuple[str, str]]
    stop_reason: str


Script = list[Drawn | str]

CALLS = st.sampled_from(
    [
        ("look", "{}"),
        ("send", '{"n": 0}'),
        ("send", '{"n": 0}'),
        ("send", '{"n": 0}'),
        ("send", '{"n": '),
        ("put", "{}"),
        ("nothing", "{}"),
        ("fail", "{}"),
        ("abort", "{}"),
    ]
)
CALLING = st.builds(
    Drawn,
    words=st.sampled_from(["", "Some words.", "😀"]),
    thought=st.sampled_from([None, "hm"]),
    calls=st.lists(CALLS, min_size=1, max_size=3),
    stop_reason=st.sampled_from(["tool_calls", "tool_calls", "tool_calls", "max_tokens"]),
)
TALKING = st.builds(
    Drawn,
    words=st.sampled_from(["Some words.", ""]),
    thought=st.sampled_from([None, "hm"]),
    calls=st.just([]),
    stop_reason=st.sampled_from(["end_turn", "max_tokens", "refusal"]),
)
FAILURES = st.sampled_from(["down", "refused", "cut"])
SCRIPTS: st.SearchStrategy[Script] = st.lists(
    CALLING | CALLING | CALLING | TALKING | FAILURES, min_size=1, max_size=4
)
EFFECT = 0
"""Stands for the moment right after a tool had its effect."""
AWAITS = st.integers(EFFECT, 8)


class SessionHost(ScriptedHost):
    """The host of a whole session: many turns in one log, and a hook at each await."""

    def __init__(self, log: Sequence[Entry], answer: Callable[[], str]) -> None:
        self.entries: list[Entry] = []
        self.at_await: Callable[[], object] = lambda: None
        self.at_effect: Callable[[], object] = lambda: None
        self._decide = answer
        super().__init__(answer=self._answered)
        self.entries = list(log)
        self.log = [(event, private) for event, private, _ in log]
        self.settled = len(log)
        self.transcript = self.fold()

    def emit(self, event: Event, private: tuple[Private, ...] = ()) -> None:
        self.entries.append((event, private, self.turn))
        super().emit(event, private)

    async def settle(self) -> None:
        await self.pause()
        await super().settle()

    async def pause(self) -> None:
        self.at_await()
        await asyncio.sleep(0)

    def fold(self) -> Transcript:
        transcript = Transcript()
        for event, private, turn in self.entries:
            transcript.add(event, private, turn)
        return transcript

    async def _answered(self, _: PermissionRequested) -> str:
        await self.pause()
        return self._decide()


class RandomProvider(ScriptedProvider):
    """Plays a drawn script, then says that it is done."""

    def __init__(self, host: SessionHost, script: Script, number: Callable[[], int]) -> None:
        super().__init__()
        self._host = host
        self._drawn = [*script]
        self._number = number

    async def step(self, request: Request, on_piece: Callable[[Piece], None]) -> StepResult:
        check_pairs(request.messages)
        await self._host.pause()
        drawn = self._drawn.pop(0) if self._drawn else None
        if drawn == "down":
            return StepFailed(error=ProviderUnavailable("It is down."))
        if drawn == "refused":
            return StepFailed(error=AuthenticationFailed("The key is wrong."))
        on_piece(TextPiece(0, "Well"))
        await self._host.pause()
        if drawn == "cut":
            return StepFailed(error=ProviderUnavailable("It broke."), streamed=True)
        return self._answer(drawn) if isinstance(drawn, Drawn) else say("Done.")

    def _answer(self, drawn: Drawn) -> StepAnswer:
        content: list[Block] = []
        if drawn.thought is not None:
            content.append(Thinking(text=drawn.thought, signature="proof"))
        if drawn.words:
            content.append(Text(text=drawn.words))
        for name, arguments in drawn.calls:
            text = arguments.replace("0", str(self._number()))
            content.append(ToolCall(id=CallId(""), name=name, arguments=text, wire_id="same"))
        return StepAnswer(
            content=tuple(content), stop_reason=drawn.stop_reason, usage=Usage(input=1, output=1)
        )


def check_pairs(messages: Sequence[Message]) -> None:
    for before, after in zip(messages, [*messages[1:], None], strict=False):
        calls = [block.id for block in before.content if isinstance(block, ToolCall)]
        found = after.content if after is not None and after.role == "tool" else ()
        assert [block.call for block in found if isinstance(block, ToolResult)] == calls


def journal(entries: Sequence[Entry]) -> dict[CallId, CallRecord]:
    """What a log says of the calls that have not ended."""
    records: dict[CallId, CallRecord] = {}
    asked: dict[PermissionId, CallId] = {}

    def note(call: CallId, **changes: object) -> None:
        record = records.get(call, CallRecord(call=call))
        records[call] = msgspec.structs.replace(record, **changes)

    for event, _, _ in entries:
        match event:
            case ToolProposed():
                note(event.call, proposed=True)
            case PermissionRequested():
                asked[event.permission] = event.call
                note(event.call, request=event)
            case PermissionResolved():
                note(asked[event.permission], decision=event)
            case ToolStarted():
                note(event.call, started=True)
            case ToolEnded():
                records.pop(event.call, None)
            case _:
                pass
    return records


class Sessions(RuleBasedStateMachine):
    """One session with its log; the process behind it comes and goes."""

    @initialize(allowed=st.lists(st.sampled_from([True, True, False]), min_size=1, max_size=5))
    def begin(self, allowed: list[bool]) -> None:
        self.runner = asyncio.Runner()
        self.allowed = allowed
        self.asked = 0
        self.numbers = 0
        self.effects: list[int] = []
        self.dead = False
        self.turns = 0
        self.attempt = 0
        self.mint = counted_ids()
        self.host = SessionHost((), self.decide)

    def teardown(self) -> None:
        self.runner.close()

    def decide(self) -> str:
        self.asked += 1
        return "allow_once" if self.allowed[self.asked % len(self.allowed)] else "deny"

    def number(self) -> int:
        self.numbers += 1
        return self.numbers

    def plan(self, script: Script) -> Plan:
        host = self.host

        @tool(effect="read")
        async def look() -> str:
            """Look."""
            await host.pause()
            return "seen"

        @tool
        async def send(n: int) -> str:
            """Do something that must not be done twice."""
            if not self.dead:  # a process that was killed does nothing more
                self.effects.append(n)
            host.at_effect()
            await host.pause()
            return json.dumps({"sent": n})

        @tool(idempotent=True)
        async def put() -> None:
            """Do something that may be done twice."""
            await host.pause()

        @tool(effect="read")
        async def fail() -> str:
            """Fail."""
            raise ZeroDivisionError

        @tool(effect="own")
        async def abort() -> str:
            """End the turn."""
            raise AbortTurn("That is enough.")

        provider = RandomProvider(host, script, self.number)
        tools = (look, send, put, fail, abort)
        return scripted_plan(provider, *tools, mode="ask", mint=self.mint)

    def start_turn(self) -> None:
        self.turns += 1
        self.host.turn = TurnId(f"trn_{self.turns}")
        self.host.prompt = PromptId(f"pmt_{self.turns}")
        self.host.admit(f"Prompt {self.turns}.")

    @precondition(lambda self: not self.attempt)
    @rule(script=SCRIPTS)
    def end_turn(self, script: Script) -> None:
        """A turn that nobody disturbs."""
        self.start_turn()
        self.runner.run(self.host.run(self.plan(script)))

    @precondition(lambda self: not self.attempt)
    @rule(script=SCRIPTS, at=AWAITS)
    def stop_turn(self, script: Script, at: int) -> None:
        """A turn that somebody stops."""
        self.start_turn()
        self.act(at, self.host.stop)
        self.runner.run(self.host.run(self.plan(script)))
        self.host = SessionHost(self.host.entries, self.decide)

    @precondition(lambda self: not self.attempt)
    @rule(script=SCRIPTS, at=AWAITS)
    def steer_turn(self, script: Script, at: int) -> None:
        """A turn that somebody says something into."""
        self.start_turn()
        self.act(at, lambda: self.host.steer("And this."))
        self.runner.run(self.host.run(self.plan(script)))

    @precondition(lambda self: not self.attempt)
    @rule(script=SCRIPTS, at=AWAITS, lost=st.integers(0, 3))
    def crash_in_turn(self, script: Script, at: int, lost: int) -> None:
        """A turn that ends with its process."""
        self.start_turn()
        self.crash(script, None, at, lost)

    @precondition(lambda self: self.attempt)
    @rule(script=SCRIPTS, at=st.one_of(st.none(), AWAITS), lost=st.integers(0, 3))
    def resume_turn(self, script: Script, at: int | None, lost: int) -> None:
        """The turn goes on after a restart, to its end or to the next crash."""
        turn, prompt = self.host.turn, self.host.prompt
        begin = max(n for n, e in enumerate(self.host.entries) if isinstance(e[0], TurnStarted))
        start = Start(
            turn=turn,
            prompt=prompt,
            attempt=self.attempt,
            journal=journal(self.host.entries[begin:]),
        )
        for id_ in self.host.loose_ids() & self.open_messages():
            self.host.emit(MessageDiscarded(message=id_, reason="restart"))  # type: ignore[arg-type]
        self.attempt = 0
        if at is None:
            self.runner.run(self.host.run(self.plan(script), start))
        else:
            self.crash(script, start, at, lost)

    def open_messages(self) -> set[str]:
        return {e.message for e in self.host.events if isinstance(e, MessageStarted | MessageEnded)}

    def act(self, at: int, what: Callable[[], object]) -> None:
        """Do something at the n-th await from now on."""
        if at == EFFECT:
            self.host.at_effect = what
            return
        left = [at]

        def at_await() -> None:
            left[0] -= 1
            if left[0] == 0:
                what()

        self.host.at_await = at_await

    def crash(self, script: Script, start: Start | None, at: int, lost: int) -> None:
        """Kill the process at an await: some of what is not settled yet is lost."""
        host = self.host
        kept: list[int] = []

        async def run() -> None:
            turn = asyncio.create_task(host.run(self.plan(script), start))

            def kill() -> None:
                if turn.cancelling():
                    return
                kept.append(max(host.settled, len(host.entries) - lost))
                self.dead = True
                turn.cancel()

            self.act(at, kill)
            await asyncio.wait({turn})

        self.runner.run(run())
        self.dead = False
        entries = host.entries[: kept[0]] if kept else host.entries
        self.host = SessionHost(entries, self.decide)
        self.host.turn, self.host.prompt = host.turn, host.prompt
        kinds = {type(event) for event, _, turn in entries if turn == host.turn}
        if TurnStarted in kinds and not kinds & set(TERMINAL_EVENTS):
            self.attempt = 1 if start is None else start.attempt + 1

    @invariant()
    def the_log_says_what_the_process_knows(self) -> None:
        assert self.host.fold().messages() == self.host.transcript.messages()
        check_pairs(self.host.transcript.messages())

    @invariant()
    def nothing_is_open_but_the_turn_that_a_crash_cut(self) -> None:
        if self.attempt:
            return
        assert self.host.loose_ids() == set()
        started = [turn for e, _, turn in self.host.entries if isinstance(e, TurnStarted)]
        ended = [turn for e, _, turn in self.host.entries if isinstance(e, TERMINAL_EVENTS)]
        assert started == ended
        assert len(set(ended)) == len(ended)

    @invariant()
    def no_effect_happens_twice(self) -> None:
        assert len(set(self.effects)) == len(self.effects)


SETTINGS = settings(
    max_examples=100,
    stateful_step_count=10,
    phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],  # explaining takes minutes
)


@pytest.mark.rules("C1.20", "C1.23", "C5.5", "C5.7", "S12", "S14")
def test_a_session_says_the_same_after_any_restart_and_repeats_no_effect(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.CRITICAL)  # the tool that fails would say so a thousand times
    run_state_machine_as_test(Sessions, settings=SETTINGS)  # pyright: ignore[reportUnknownMemberType]
