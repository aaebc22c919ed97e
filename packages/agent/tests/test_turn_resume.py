"""A turn that a crash cut goes on where its log ends."""

import asyncio
from typing import Any

import pytest

from towline_agent.limits import Spent
from towline_agent.permissions.gate import offered_options
from towline_agent.permissions.part import Part
from towline_agent.permissions.rules import Rule, parse_rule
from towline_agent.plan import CallRecord, Plan
from towline_agent.testing import Script, ScriptedHost, ScriptedProvider, call, scripted_plan
from towline_agent.tools.function import tool
from towline_agent.turn import Start
from towline_protocol import (
    CallId,
    Event,
    Limits,
    MessageEnded,
    MessageId,
    Option,
    PermissionId,
    PermissionRequested,
    PermissionResolved,
    Preview,
    PromptDelivered,
    StepEnded,
    StepStarted,
    Text,
    ToolCall,
    ToolEnded,
    ToolProposed,
    ToolStarted,
    TurnCompleted,
    TurnFailed,
    TurnResumed,
    TurnStarted,
    Usage,
    block_text,
)

ONE, TWO = CallId("call_one"), CallId("call_two")
ALLOW = offered_options("send", (Part(subject='{"to": "ann"}'),))


class Cut:
    """A turn whose log ends after a message with calls, and what its tools did since."""

    def __init__(
        self,
        *tools: str,
        before: tuple[Event, ...] = (),
        script: tuple[Script, ...] = ("All done.",),
        **facts: Any,
    ) -> None:
        self.ran: list[str] = []
        self.asked: list[PermissionRequested] = []
        self.option = "allow_once"
        self.host = ScriptedHost("Do it.", answer=self._answer)
        self.provider = ScriptedProvider(*script)
        self.plan = self._plan(**facts)
        self._begin(tools)
        for event in before:
            self.host.emit(event)
        self.before = len(self.host.events)

    async def resume(self, *records: CallRecord, **facts: Any) -> list[Event]:
        """Resume, and return what was emitted since."""
        start = Start(
            turn=self.host.turn,
            prompt=self.host.prompt,
            attempt=1,
            journal={record.call: record for record in records},
            **facts,
        )
        await self.host.run(self.plan, start)
        return self.host.events[self.before :]

    async def _answer(self, request: PermissionRequested) -> str:
        self.asked.append(request)
        return self.option

    def _plan(self, **facts: Any) -> Plan:
        @tool(effect="read")
        async def look() -> str:
            """Look."""
            self.ran.append("look")
            return "seen"

        @tool
        async def send(to: str) -> str:
            """Send."""
            self.ran.append(f"send {to}")
            return "sent"

        @tool(idempotent=True)
        async def put() -> str:
            """Put."""
            self.ran.append("put")
            return "put"

        return scripted_plan(self.provider, look, send, put, **facts)

    def _begin(self, tools: tuple[str, ...]) -> None:
        host = self.host
        host.emit(TurnStarted(prompt=host.prompt, model="scripted/scripted", limits=Limits()))
        host.emit(PromptDelivered(prompt=host.prompt, turn=host.turn, how="started"))
        host.emit(StepStarted(model="scripted/scripted"))
        calls = tuple(
            ToolCall(id=id_, name=name, arguments='{"to": "ann"}' if name == "send" else "{}")
            for id_, name in zip((ONE, TWO), tools, strict=False)
        )
        host.emit(MessageEnded(message=MessageId("msg_0"), content=calls))
        host.emit(StepEnded(stop_reason="tool_calls", usage=Usage(input=3)))


def ended(events: list[Event]) -> list[tuple[str, str]]:
    return [(event.call, event.status) for event in events if isinstance(event, ToolEnded)]


def result_of(events: list[Event], call_id: CallId = ONE) -> str:
    (found,) = [e for e in events if isinstance(e, ToolEnded) and e.call == call_id]
    return block_text(found.content)


def requested(call_id: CallId = ONE, options: tuple[Option, ...] = ALLOW) -> PermissionRequested:
    return PermissionRequested(
        permission=PermissionId("prm_old"),
        call=call_id,
        tool="send",
        title="send",
        preview=Preview(kind="text", text="to ann"),
        digest="d",
        options=options,
        expires_at="2026-01-01T00:00:00.000Z",
    )


def resolved(option: str, note: str | None = None) -> PermissionResolved:
    return PermissionResolved(
        permission=PermissionId("prm_old"), option=option, by="ann", note=note
    )


@pytest.mark.rules("C5.4", "C5.5")
async def test_a_resumed_turn_says_so_and_starts_nothing_twice() -> None:
    cut = Cut("look")
    events = await cut.resume()
    assert events[0] == TurnResumed(attempt=1)
    assert not any(isinstance(event, TurnStarted | PromptDelivered) for event in events)
    assert isinstance(events[-1], TurnCompleted)


@pytest.mark.rules("C5.5")
async def test_a_call_that_was_not_proposed_is_proposed_and_runs() -> None:
    cut = Cut("send")
    events = await cut.resume()
    assert [type(event) for event in events[1:4]] == [ToolProposed, ToolStarted, ToolEnded]
    assert cut.ran == ["send ann"]


@pytest.mark.rules("C5.5", "S12")
async def test_a_call_that_was_proposed_runs_without_a_second_proposal() -> None:
    cut = Cut("send")
    events = await cut.resume(CallRecord(call=ONE, proposed=True))
    assert not any(isinstance(event, ToolProposed) for event in events)
    assert cut.ran == ["send ann"]
    assert ended(events) == [(ONE, "completed")]


@pytest.mark.rules("C5.8")
async def test_a_request_that_was_open_is_offered_again_as_it_was() -> None:
    cut = Cut("send", mode="ask")
    await cut.resume(CallRecord(call=ONE, proposed=True, request=requested()))
    assert [request.permission for request in cut.asked] == ["prm_old"]
    assert cut.asked[0].digest == "d"
    assert cut.ran == ["send ann"]


@pytest.mark.rules("C1.23", "C5.8")
async def test_a_request_that_was_open_is_resolved_even_if_a_rule_would_allow_it_now() -> None:
    cut = Cut("send", mode="ask", rules=[Rule(action="allow", tool="send")])
    cut.option = "deny"
    events = await cut.resume(CallRecord(call=ONE, proposed=True, request=requested()))
    assert any(isinstance(event, PermissionResolved) for event in events)
    assert ended(events) == [(ONE, "denied")]


@pytest.mark.rules("C5.5", "R43")
async def test_a_decision_that_was_made_is_not_asked_for_again() -> None:
    cut = Cut("send", mode="ask")
    record = CallRecord(
        call=ONE, proposed=True, request=requested(), decision=resolved("allow_once")
    )
    events = await cut.resume(record)
    assert cut.asked == []
    assert cut.ran == ["send ann"]
    assert ended(events) == [(ONE, "completed")]


@pytest.mark.rules("C5.5")
async def test_a_denial_that_was_made_stands_with_its_note() -> None:
    cut = Cut("send", mode="ask")
    decision = resolved("deny", note="Write to bob instead.")
    events = await cut.resume(
        CallRecord(call=ONE, proposed=True, request=requested(), decision=decision)
    )
    assert cut.ran == []
    assert ended(events) == [(ONE, "denied")]
    assert "Write to bob instead." in result_of(events)


@pytest.mark.rules("R39")
async def test_a_rule_that_was_allowed_for_the_session_counts_once() -> None:
    rule = ALLOW[1].rule
    assert rule is not None
    for rules in ([], [parse_rule(rule)]):
        cut = Cut("send", mode="ask", rules=rules)
        await cut.resume(
            CallRecord(
                call=ONE, proposed=True, request=requested(), decision=resolved("allow_session")
            )
        )
        assert cut.plan.rules == [parse_rule(rule)]


@pytest.mark.rules("C5.5", "S12")
async def test_a_call_that_had_started_is_not_run_again_and_the_model_is_told() -> None:
    cut = Cut("send")
    events = await cut.resume(CallRecord(call=ONE, proposed=True, started=True))
    assert cut.ran == []
    assert ended(events) == [(ONE, "unknown")]
    assert "may or may not have had its effect" in result_of(events)
    assert "may or may not" in str(cut.provider.requests[0].messages[-1])


@pytest.mark.rules("C5.5")
@pytest.mark.parametrize("name", ["look", "put"])
async def test_a_call_that_does_no_harm_twice_runs_again(name: str) -> None:
    cut = Cut(name, mode="ask")
    events = await cut.resume(CallRecord(call=ONE, proposed=True, started=True))
    assert cut.ran == [name]
    assert cut.asked == []  # it was allowed before
    assert ended(events) == [(ONE, "completed")]


@pytest.mark.rules("C5.5")
async def test_a_call_that_had_started_is_unknown_even_if_its_tool_is_gone() -> None:
    cut = Cut("gone")
    events = await cut.resume(CallRecord(call=ONE, proposed=True, started=True))
    assert ended(events) == [(ONE, "unknown")]


@pytest.mark.rules("C5.5", "R43")
async def test_a_call_that_had_ended_is_done_and_only_the_other_one_runs() -> None:
    done = ToolEnded(call=ONE, status="completed", content=(Text(text="sent before"),))
    cut = Cut("send", "send", before=(done,))
    events = await cut.resume(CallRecord(call=TWO, proposed=True))
    assert cut.ran == ["send ann"]
    assert ended(events) == [(TWO, "completed")]
    results = cut.provider.requests[0].messages[-1].content
    assert [str(block).count("sent before") for block in results] == [1, 0]


@pytest.mark.rules("C5.4")
async def test_an_answer_that_was_whole_ends_the_turn_without_asking_again() -> None:
    cut = Cut()
    cut.host.emit(MessageEnded(message=MessageId("msg_1"), content=(Text(text="Done so."),)))
    cut.before = len(cut.host.events)
    events = await cut.resume(stop_reason="end_turn")
    assert cut.provider.requests == []
    (end,) = events[1:]
    assert isinstance(end, TurnCompleted)
    assert (end.stop_reason, end.summary) == ("end_turn", "Done so.")


@pytest.mark.rules("A1.14", "C5.4")
async def test_a_refusal_that_was_whole_is_still_one_after_a_crash() -> None:
    cut = Cut()
    cut.host.emit(MessageEnded(message=MessageId("msg_1"), content=(Text(text="I will not."),)))
    cut.before = len(cut.host.events)
    events = await cut.resume(stop_reason="refusal")
    assert isinstance(events[-1], TurnCompleted)
    assert events[-1].stop_reason == "refusal"


@pytest.mark.rules("A4.13")
async def test_calls_of_an_answer_that_was_cut_by_length_do_not_run_after_a_crash() -> None:
    cut = Cut("send")
    events = await cut.resume(stop_reason="max_tokens")
    assert cut.ran == []
    assert ended(events) == [(ONE, "failed")]
    assert isinstance(events[-1], TurnCompleted)
    assert events[-1].stop_reason == "end_turn"


@pytest.mark.rules("A4.8", "A4.48")
async def test_what_was_used_before_a_crash_counts() -> None:
    cut = Cut("look", limits=Limits(max_steps=2), hand_over=False)
    spent = Spent(steps=2, usage=Usage(input=100), cost=None)
    events = await cut.resume(spent=spent)
    end = events[-1]
    assert isinstance(end, TurnCompleted)
    assert (end.stop_reason, end.usage, end.cost) == ("max_steps", Usage(input=100), None)
    assert ended(events) == [(ONE, "completed")]


async def test_what_was_used_before_is_not_counted_into() -> None:
    cut = Cut("look")
    spent = Spent(steps=1, usage=Usage(input=100), cost=None)
    events = await cut.resume(spent=spent)
    assert spent == Spent(steps=1, usage=Usage(input=100), cost=None)
    end = events[-1]
    assert isinstance(end, TurnCompleted)
    assert end.usage == Usage(input=110, output=5)


@pytest.mark.rules("A4.8")
async def test_time_that_passed_before_a_crash_counts() -> None:
    cut = Cut(limits=Limits(wall_s=3600.0), script=([asyncio.Event()],))
    events = await cut.resume(elapsed_s=3601.0)
    end = events[-1]
    assert isinstance(end, TurnCompleted)
    assert end.stop_reason == "time_limit"


@pytest.mark.rules("C5.7", "S14")
async def test_a_resumed_turn_sends_what_the_cut_one_would_have_sent() -> None:
    """The same conversation, once in one go and once with a crash between call and result."""

    @tool(effect="read")
    async def look() -> str:
        """Look."""
        return "seen"

    whole = ScriptedHost("Do it.")
    at_once = ScriptedProvider(call("look"), "All done.")
    await whole.run(scripted_plan(at_once, look))
    end = next(n for n, event in enumerate(whole.events) if isinstance(event, ToolProposed))
    cut = ScriptedHost("Do it.")
    for event, private in whole.log[1:end]:
        cut.emit(event, private)
    later = ScriptedProvider("All done.")
    await cut.run(scripted_plan(later, look), Start(turn=cut.turn, prompt=cut.prompt, attempt=1))
    assert later.requests == at_once.requests[1:]


async def test_calls_run_again_only_once_for_each_turn() -> None:
    """The journal speaks of the cut calls alone, not of those that come later."""
    cut = Cut("look", script=(call("look"), "All done."))
    events = await cut.resume(CallRecord(call=ONE, proposed=True, started=True))
    assert cut.ran == ["look", "look"]
    assert sum(isinstance(event, ToolProposed) for event in events) == 1
    assert not isinstance(events[-1], TurnFailed)
