"""Turns with a model whose provider makes room in the window itself."""

import json
from typing import Any, Final

import pytest

from towline_agent.context.assemble import assemble
from towline_agent.context.compact import Compactor
from towline_agent.errors import ContextOverflow
from towline_agent.providers.base import Model, Request, StepAnswer, StepFailed, StepResult
from towline_agent.providers.openai_responses.provider import OpenAIResponses
from towline_agent.providers.room import CLEARED
from towline_agent.testing import (
    ScriptedHost,
    ScriptedProvider,
    ScriptedTransport,
    call,
    event_stream,
    say,
    scripted_plan,
)
from towline_agent.tools.function import tool
from towline_protocol import (
    Compacted,
    Context,
    Message,
    MessageEnded,
    MessageId,
    Notice,
    Opaque,
    StepEnded,
    Text,
    TurnCompleted,
    Usage,
    block_text,
)

SELF: Final = Model(provider="p", id="m", window=10_000, manages_context=True)
LONG: Final = "word " * 1_200


@tool(effect="read")
async def read(page: int) -> str:
    """Read a page."""
    return f"page {page}: {LONG}"


def with_room(answer: StepAnswer, told: str, *, used: int | None = None) -> StepAnswer:
    return StepAnswer(
        content=answer.content,
        stop_reason=answer.stop_reason,
        usage=answer.usage,
        made_room=told,
        used=used,
    )


def notices(host: ScriptedHost) -> list[tuple[str, str]]:
    return [(event.code, event.message) for event in host.events if isinstance(event, Notice)]


def compactions(host: ScriptedHost) -> list[Compacted]:
    return [event for event in host.events if isinstance(event, Compacted)]


def counted(tokens: int) -> Usage:
    return Usage(input=tokens, output=1)


def page(number: int, tokens: int) -> StepAnswer:
    answer = call("read", page=number)
    return StepAnswer(content=answer.content, stop_reason=answer.stop_reason, usage=counted(tokens))


@pytest.mark.rules("A4.40")
async def test_room_that_the_provider_makes_is_told_once_and_nothing_is_made_beside_it() -> None:
    pages = [with_room(page(n, 7_000), CLEARED) for n in range(8)]  # ten times what would fit
    provider = ScriptedProvider(*pages, say("Read.", usage=counted(7_000)), model=SELF)
    host = ScriptedHost("Read all.")
    end = await host.run(scripted_plan(provider, read))
    assert isinstance(end.event, TurnCompleted)
    assert notices(host) == [("provider_made_room", CLEARED)]
    assert compactions(host) == []
    last = provider.requests[-1]
    assert len(repr(last.messages)) > 8 * len(LONG)  # the conversation here is whole
    assert last.max_tokens is not None
    assert last.max_tokens > 2_000  # and leaves room for an answer all the same


@pytest.mark.rules("A4.40")
async def test_the_providers_summary_says_how_full_the_window_is_and_each_is_told() -> None:
    first = with_room(page(1, 9_900), "Summed up once.", used=800)
    second = with_room(page(2, 9_800), "Summed up twice.", used=700)
    provider = ScriptedProvider(first, second, say("Done.", usage=counted(900)), model=SELF)
    host = ScriptedHost("Go.")
    end = await host.run(scripted_plan(provider, read))
    assert isinstance(end.event, TurnCompleted)
    steps = [event.context for event in host.events if isinstance(event, StepEnded)]
    assert steps == [Context(used=n, window=10_000) for n in (800, 700, 901)]
    assert [told for _, told in notices(host)] == ["Summed up once.", "Summed up twice."]
    assert compactions(host) == []
    assert end.spent.usage.input == 9_900 + 9_800 + 900  # what was read is paid for


class Asked:
    """A model that is asked for summaries."""

    def __init__(self) -> None:
        self.requests: list[Request] = []

    async def ask(self, request: Request) -> StepResult:
        self.requests.append(request)
        return say("They read pages.")


def stand(host: ScriptedHost, tokens: int, *blocks: Text | Opaque) -> None:
    """An answer after which the provider counted so many tokens."""
    host.emit(MessageEnded(message=MessageId(f"msg_{len(host.events)}"), content=blocks))
    context = Context(used=tokens, window=10_000)
    host.emit(StepEnded(stop_reason="end_turn", usage=Usage(), context=context))


def talked(*, times: int = 12) -> ScriptedHost:
    texts = [Text(text=f"{n}: {'talk ' * 900}") for n in range(times)]
    turns = [Message("user" if n % 2 == 0 else "assistant", (texts[n],)) for n in range(times)]
    return ScriptedHost("Go on.", earlier=tuple(turns))


@pytest.mark.rules("A4.40", "A4.32")
@pytest.mark.parametrize(
    ("counts", "steps_in"),
    [
        (None, False),  # the provider has not seen it yet
        (7_000, False),  # it has had no cause to make room
        (8_500, False),  # it keeps it below what is too much
        (9_000, True),  # it could not
    ],
)
async def test_ours_stands_by_until_the_provider_had_its_chance(
    counts: int | None, *, steps_in: bool
) -> None:
    host = talked()
    if counts is not None:
        stand(host, counts, Text(text="Well."))
    model = Asked()
    plan = scripted_plan(ScriptedProvider(model=SELF))
    assert await Compactor(plan).make_room(host, model.ask) is None
    assert bool(model.requests) == steps_in
    assert [event.cut for event in compactions(host)] == [()] * steps_in


@pytest.mark.rules("A4.40", "A4.39")
async def test_what_the_provider_refuses_for_its_size_is_summed_up_here() -> None:
    too_long = StepFailed(error=ContextOverflow("Too long.", reason="context_overflow"))
    provider = ScriptedProvider(too_long, say("They talked."), "Well.", model=SELF)
    host = talked()
    end = await host.run(scripted_plan(provider))
    assert isinstance(end.event, TurnCompleted)
    (event,) = compactions(host)
    assert event.summary is not None
    assert "They talked." in block_text(provider.requests[-1].messages[0].content)


@pytest.mark.rules("A4.40")
async def test_ours_counts_and_sums_up_only_what_the_provider_still_reads() -> None:
    host = talked()
    summed = Opaque(
        dialect="openai_responses", raw={"type": "compaction", "encrypted_content": "x"}
    )
    earlier = (*host.transcript.messages(), Message("assistant", (summed,), SELF.name))
    recent = [Message("user", (Text(text=f"{n}: {'new ' * 900}"),)) for n in range(10)]
    host = ScriptedHost("Go on.", earlier=(*earlier, *recent))
    stand(host, 9_500, Text(text="Well."))
    model = Asked()
    plan = scripted_plan(ScriptedProvider(model=SELF))
    assert await Compactor(plan).make_room(host, model.ask) is None
    (request,) = model.requests
    assert "talk talk" not in repr(request.messages)
    assert "new new" in repr(request.messages)
    assert "talk talk" not in repr(host.transcript.messages())  # the summary stands for it too


@pytest.mark.rules("A4.40", "A3.35")
async def test_a_model_that_stands_in_and_makes_no_room_gets_what_fits() -> None:
    """The last count was of one who leaves things out: the conversation is larger than it says."""
    too_long = StepFailed(error=ContextOverflow("Too long.", reason="context_overflow"))
    plain = Model(provider="p", id="m", window=10_000)
    provider = ScriptedProvider(too_long, say("They talked."), "Well.", model=plain)
    host = talked(times=40)
    stand(host, 2_000, Text(text="Well."))
    end = await host.run(scripted_plan(provider))
    assert isinstance(end.event, TurnCompleted)
    (event,) = compactions(host)
    assert event.before_tokens > 40_000
    assert event.after_tokens < 7_500
    assert len(json.dumps(block_text(provider.requests[-1].messages[0].content))) < 30_000


@pytest.mark.rules("A4.40")
async def test_a_whole_turn_with_openais_summary_goes_on_from_it() -> None:
    def answered(*items: dict[str, Any], tokens: int) -> bytes:
        usage = {"input_tokens": tokens, "output_tokens": 10}
        response = {"status": "completed", "output": items, "usage": usage}
        return event_stream({"type": "response.completed", "response": response}, done=False)

    summed = {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAA"}
    look = {
        "type": "function_call",
        "id": "fc_1",
        "call_id": "c1",
        "name": "read",
        "arguments": '{"page":1}',
    }
    words = {"type": "message", "content": [{"type": "output_text", "text": "Read."}]}
    transport = ScriptedTransport(answered(summed, look, tokens=7_600), answered(words, tokens=900))
    facts = Model(provider="openai", id="gpt-5", window=10_000)
    provider = OpenAIResponses("gpt-5", api_key="k", facts=facts, transport=transport)
    host = ScriptedHost("Read.", earlier=(Message("user", (Text(text="Old."),)),))
    end = await host.run(scripted_plan(provider, read))
    assert isinstance(end.event, TurnCompleted)
    first, second = [json.loads(sent.body or b"")["input"] for sent in transport.calls]
    assert [item["type"] for item in first] == ["message", "message"]
    kinds = ["compaction", "function_call", "function_call_output"]
    assert [item["type"] for item in second] == kinds
    assert [code for code, _ in notices(host)] == ["provider_made_room"]
    assert host.fold().messages() == host.transcript.messages()


@pytest.mark.rules("A4.40", "A1.20")
def test_what_is_sent_beyond_the_window_takes_no_room_from_the_answer() -> None:
    messages = (Message("user", (Text(text="x" * 400_000),)),)
    plan = scripted_plan(ScriptedProvider(model=SELF))
    asked = assemble(plan, messages).max_tokens
    assert asked is not None
    assert asked > 2_000
    plain = Model(provider="p", id="m", window=10_000)
    assert assemble(scripted_plan(ScriptedProvider(model=plain)), messages).max_tokens == 256


class Pacing(ScriptedProvider):
    """Writes down for how many tokens it might hold a request back."""

    def __init__(self, model: Model) -> None:
        super().__init__("Well.", model=model)
        self.asked: list[int] = []

    def pause_s(self, tokens: int) -> float:
        self.asked.append(tokens)
        return 0.0


@pytest.mark.rules("A4.40", "A3.25")
async def test_a_request_is_not_held_back_for_what_the_provider_leaves_out() -> None:
    earlier = (Message("user", (Text(text="x" * 400_000),)),)
    provider = Pacing(SELF)
    await ScriptedHost("Go on.", earlier=earlier).run(scripted_plan(provider))
    assert provider.asked == [7_500]
