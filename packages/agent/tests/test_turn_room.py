"""A turn whose conversation outgrows the model's window."""

import pytest

from towline_agent.errors import ContextOverflow
from towline_agent.providers.base import Model, StepFailed
from towline_agent.testing import ScriptedHost, ScriptedProvider, call, say, scripted_plan
from towline_agent.tools.function import tool
from towline_protocol import (
    Compacted,
    Message,
    Notice,
    Text,
    TurnCompleted,
    TurnFailed,
    Usage,
    block_text,
)

SMALL = Model(provider="p", id="m", window=4_000)
LONG = "word " * 1_500


@tool(effect="read")
async def read(page: int) -> str:
    """Read a page."""
    return f"page {page}: {LONG}"


def earlier(count: int) -> tuple[Message, ...]:
    return tuple(
        Message("user" if n % 2 == 0 else "assistant", (Text(text=f"{n}: " + "talk " * 150),))
        for n in range(count)
    )


def too_long() -> StepFailed:
    return StepFailed(error=ContextOverflow("Too long.", reason="context_overflow"))


def compactions(host: ScriptedHost) -> list[Compacted]:
    return [event for event in host.events if isinstance(event, Compacted)]


@pytest.mark.rules("A4.2", "A4.32", "A4.36", "D6")
async def test_a_long_conversation_is_summed_up_before_it_is_sent() -> None:
    provider = ScriptedProvider(
        say("They talked about numbers.", usage=Usage(input=100, output=9)), "Here.", model=SMALL
    )
    host = ScriptedHost("And now?", earlier=earlier(20))
    end = await host.run(scripted_plan(provider))
    assert isinstance(end.event, TurnCompleted)
    (event,) = compactions(host)
    assert event.summary is not None
    assert "They talked about numbers." in event.summary
    assert event.after_tokens < event.before_tokens
    asked, answered = provider.requests
    assert asked.tool_choice == "none"
    sent = [block_text(message.content) for message in answered.messages]
    assert "They talked about numbers." in sent[0]
    assert sent[-1] == "And now?"
    assert host.fold().messages() == host.transcript.messages()
    assert end.spent.usage.input == 110  # the summary is paid for too (A4.48)
    assert [event.code for event in host.events if isinstance(event, Notice)] == ["compacting"]


@pytest.mark.rules("A4.32", "A4.33", "R27")
async def test_a_request_that_did_not_fit_is_made_smaller_and_sent_again() -> None:
    pages = tuple(call("read", page=n) for n in range(7))
    model = Model(provider="p", id="m")  # nobody knows its window
    provider = ScriptedProvider(*pages, too_long(), "Read.", model=model)
    host = ScriptedHost("Read all pages.")
    end = await host.run(scripted_plan(provider, read))
    assert isinstance(end.event, TurnCompleted)
    (event,) = compactions(host)
    assert len(event.cut) >= 2
    last = provider.requests[-1]
    texts = [block_text(b.content) for m in last.messages for b in m.content if m.role == "tool"]  # type: ignore[union-attr]
    assert sum("were cut to make room" in text for text in texts) == len(event.cut)
    assert "were cut" not in texts[-1]
    assert end.spent.steps == 8


@pytest.mark.rules("A4.39", "R29")
async def test_what_cannot_be_made_to_fit_ends_with_a_clear_error_and_no_endless_cost() -> None:
    provider = ScriptedProvider(
        too_long(), "No shorter: " + LONG, too_long(), too_long(), too_long(), model=SMALL
    )
    host = ScriptedHost("Hi " + "there " * 100, earlier=earlier(4))
    end = await host.run(scripted_plan(provider))
    assert isinstance(end.event, TurnFailed)
    assert end.event.fault.code == "provider_context_overflow"
    assert "new session" in end.event.fault.message
    assert len(provider.requests) <= 3
    again = ScriptedProvider("Fine.", model=Model(provider="q", id="large"))
    after = ScriptedHost("Go on.", earlier=host.transcript.messages())
    assert isinstance((await after.run(scripted_plan(again))).event, TurnCompleted)
