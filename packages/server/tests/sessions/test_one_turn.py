"""However much is asked of a session at once, one turn runs after the other."""

import asyncio
from pathlib import Path

import pytest

from towline_agent import StepAnswer, TextPiece
from towline_agent.testing import ScriptedProvider
from towline_protocol import (
    TERMINAL_EVENTS,
    Envelope,
    Text,
    TurnCompleted,
    TurnId,
    TurnStarted,
    Usage,
)
from towline_server.testing import AppClient, open_test_app, ran


def _overlaps(log: list[Envelope]) -> list[TurnId]:
    """Turns that began while another one ran, or that ended and did not run."""
    running: TurnId | None = None
    wrong: list[TurnId] = []
    for envelope in log:
        turn = envelope.turn or TurnId("none")
        if isinstance(envelope.event, TurnStarted):
            wrong += [turn] if running is not None else []
            running = turn
        elif isinstance(envelope.event, TERMINAL_EVENTS):
            wrong += [turn] if running != turn else []
            running = None
    return wrong


@pytest.mark.rules("C1.20", "C1.22", "C2.11", "S24")
async def test_whatever_is_asked_at_once_one_turn_runs_at_a_time_and_each_prompt_in_one(
    tmp_path: Path,
) -> None:
    gates = [asyncio.Event() for _ in range(40)]
    script = [[TextPiece(0, "a"), gate, TextPiece(0, "b")] for gate in gates]
    async with open_test_app(ScriptedProvider(*script), root=tmp_path) as built:
        client = AppClient(built)
        session = await client.create()
        path = f"/api/sessions/{session}"
        whens = ("auto", "queue", "steer", "reject") * 3
        asked = [client.prompt(session, f"{n}", when=when) for n, when in enumerate(whens)]
        others = [
            client.ask("POST", f"{path}/{name}")
            for name in ("retry", "queue/resume", "compact", "retry", "queue/resume")
        ]
        replies = await asyncio.gather(*asked, *others)
        assert {reply.status for reply in replies} <= {200, 202, 409, 422}
        taken = [reply for reply in replies[: len(asked)] if reply.status == 202]
        assert len(taken) >= 9  # `reject` alone may be refused
        await client.until(session, lambda view: bool(view.open_messages))
        again = await asyncio.gather(
            *(client.ask("POST", f"{path}/{name}") for name in ("retry", "compact", "queue/resume"))
        )
        assert [reply.status for reply in again] == [409, 409, 200]
        for gate in gates:
            gate.set()
        await client.until(session, ran(len(taken)))
        log = await client.log(session)
    assert _overlaps(log) == []
    assert len([e for e in log if isinstance(e.event, TurnStarted)]) > 1


@pytest.mark.rules("C1.22")
@pytest.mark.parametrize("word", ["cancelled", "failed", "tool_calls", "error", ""])
async def test_a_turn_that_completed_never_says_that_it_was_cancelled_or_failed(
    tmp_path: Path, word: str
) -> None:
    answer = StepAnswer(
        content=(Text(text="well"),), stop_reason=word, usage=Usage(input=1, output=1)
    )
    async with open_test_app(ScriptedProvider(answer), root=tmp_path) as built:
        client = AppClient(built)
        session = await client.create()
        await client.prompt(session, "go")
        await client.until(session, ran(1))
        log = await client.log(session)
    (end,) = [e.event for e in log if isinstance(e.event, TERMINAL_EVENTS)]
    assert isinstance(end, TurnCompleted)
    assert end.stop_reason == "end_turn"
