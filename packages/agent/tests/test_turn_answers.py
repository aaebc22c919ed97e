"""What a turn makes of an answer: words to say, a type, a search, a circle."""

from dataclasses import dataclass

import pytest

from towline_agent.errors import LimitReached, ResponseMalformed
from towline_agent.providers.base import Model, StepAnswer
from towline_agent.testing import (
    Script,
    ScriptedHost,
    ScriptedProvider,
    call,
    scripted_plan,
)
from towline_agent.tools.function import tool
from towline_agent.tools.output import OutputSpec
from towline_agent.turn import Start, TurnEnd
from towline_protocol import (
    SearchArtifact,
    SearchItem,
    Text,
    ToolEnded,
    ToolProposed,
    TurnCompleted,
    TurnFailed,
)


@tool(effect="read")
async def look(at: str = "") -> str:
    """Look."""
    return f"nothing {at}"


@dataclass
class Point:
    """Where."""

    x: int
    y: int


async def run(
    *script: Script, speak: bool = False, model: Model | None = None, **facts: object
) -> tuple[ScriptedHost, ScriptedProvider, TurnEnd]:
    provider = ScriptedProvider(*script, model=model)
    host = ScriptedHost()
    start = Start(turn=host.turn, prompt=host.prompt, speak=speak)
    end = await host.run(scripted_plan(provider, look, **facts), start)
    return host, provider, end


@pytest.mark.rules("A4.30", "A4.31")
async def test_words_to_say_are_made_only_when_the_prompt_asks_for_them() -> None:
    words = "<speak>It rains.</speak>\n| a | b |"
    _, provider, end = await run(words, speak=True)
    assert isinstance(end.event, TurnCompleted)
    assert end.event.speak == "It rains."
    assert "read aloud" in provider.requests[0].trailing
    _, provider, end = await run("It rains. See https://example.test.", speak=True)
    assert isinstance(end.event, TurnCompleted)
    assert end.event.speak == "It rains. See."
    _, provider, end = await run("It rains.")
    assert isinstance(end.event, TurnCompleted)
    assert end.event.speak is None
    assert "read aloud" not in provider.requests[0].trailing


@pytest.mark.rules("A4.11", "A4.12")
async def test_each_request_ends_with_the_date_and_what_the_host_adds() -> None:
    host, provider, _ = await run(call("look"), "Done.", reminders=lambda: ["Two files changed."])
    for request in provider.requests:
        assert "Today is Friday, 2027-01-15 (UTC)." in request.trailing
        assert "Two files changed." in request.trailing
    assert "system-reminder" not in str(host.transcript.messages())


@pytest.mark.rules("A4.11")
async def test_a_model_that_is_asked_in_its_own_words_gets_no_reminder() -> None:
    _, provider, _ = await run("Done.", model=Model(provider="p", id="m", bare_prompt=True))
    assert provider.requests[0].trailing == ""


@pytest.mark.rules("A4.60")
async def test_an_answer_of_another_type_is_asked_for_once_more() -> None:
    spec = OutputSpec.of(Point)
    host, provider, end = await run("Somewhere.", '{"x": 1, "y": 2}', output=spec)
    assert isinstance(end.event, TurnCompleted)
    assert provider.requests[0].output == spec.schema
    assert "JSON Schema" in provider.requests[0].trailing
    assert "not of the type that was asked for" in provider.requests[1].trailing
    assert spec.parse('{"x": 1, "y": 2}') == Point(1, 2)
    assert end.spent.steps == 2
    assert host.loose_ids() == set()


@pytest.mark.rules("A4.60")
async def test_a_model_that_never_gives_the_type_fails_the_turn() -> None:
    _, provider, end = await run("Somewhere.", "Elsewhere.", "x", output=OutputSpec.of(Point))
    assert len(provider.requests) == 2
    assert isinstance(end.error, ResponseMalformed)
    assert "'x'" in end.error.message or "x" in end.error.message
    assert ".." not in end.error.message


@pytest.mark.rules("A4.21", "A4.22", "D17")
async def test_a_model_that_goes_round_in_a_circle_is_told_and_then_stopped() -> None:
    host, provider, end = await run(*(call("look", at="a") for _ in range(9)))
    assert isinstance(end.event, TurnFailed)
    assert isinstance(end.error, LimitReached)
    assert len(provider.requests) == 5
    told = ["3 times in a row" in request.trailing for request in provider.requests]
    assert told == [False, False, False, True, False]
    assert "4 times in a row" in provider.requests[4].trailing
    assert host.loose_ids() == set()


@pytest.mark.rules("A4.22", "D17")
async def test_polling_goes_on_as_long_as_something_changes() -> None:
    seen = 0

    @tool(name="look", effect="read")
    async def changing(at: str = "") -> str:
        """Look."""
        nonlocal seen
        seen += 1
        return f"{seen} of 9 {at}"

    provider = ScriptedProvider(*(call("look", at="a") for _ in range(9)), "There.")
    end = await ScriptedHost().run(scripted_plan(provider, changing))
    assert isinstance(end.event, TurnCompleted)
    assert seen == 9


@pytest.mark.rules("A2.63")
async def test_what_the_providers_own_search_found_is_shown_as_a_call() -> None:
    found = SearchArtifact(query="rain", items=(SearchItem(title="Rain", url="https://a.test"),))
    answer = StepAnswer(content=(Text(text="Wet."),), stop_reason="end_turn", searches=(found,))
    host, _, end = await run(answer)
    assert isinstance(end.event, TurnCompleted)
    (proposed,) = [event for event in host.events if isinstance(event, ToolProposed)]
    (ended,) = [event for event in host.events if isinstance(event, ToolEnded)]
    assert (proposed.tool, proposed.arguments) == ("web_search", '{"query":"rain"}')
    assert ended.artifacts == (found,)
    assert host.loose_ids() == set()
    assert host.fold().messages() == host.transcript.messages()
    assert [message.role for message in host.transcript.messages()] == ["user", "assistant"]
