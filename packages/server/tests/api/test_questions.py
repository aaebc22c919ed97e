"""Questions over HTTP: asked by the agent, answered once, or left to it."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from towline_agent import Model, tool
from towline_agent.testing import FakeClock, ScriptedProvider, call
from towline_protocol import (
    Envelope,
    Problem,
    QuestionAnswered,
    QuestionAsked,
    QuestionResolved,
    SessionInfo,
    SessionView,
    ToolEnded,
    ToolResult,
    TurnCancelled,
    block_text,
    parse_time,
)
from towline_server.build import BuiltApp
from towline_server.sessions.deadline import BLIP_S
from towline_server.sessions.question import MAX_ANSWER
from towline_server.stream.testing import Wire
from towline_server.testing import AppClient, open_test_app, ran

GRACE_S = 60.0
AWAY_S = 1800.0

COLOUR: dict[str, Any] = {"prompt": "Which colour?", "options": ["red", "blue"], "free_text": False}
SIZES: dict[str, Any] = {"prompt": "Which sizes?", "options": ["S", "M", "L"], "multiple": True}
NAME: dict[str, Any] = {"prompt": "What is it called?"}
FIT = {"item_1": ["option_2"], "item_2": ["option_1", "option_3", "also XL"], "item_3": ["Ada"]}


class Asked:
    """A session whose agent has asked, and somebody who reads along."""

    def __init__(self, built: BuiltApp, provider: ScriptedProvider, clock: FakeClock) -> None:
        self.built = built
        self.client = AppClient(built)
        self.provider = provider
        self.clock = clock
        self.session = ""
        self.question: QuestionAsked
        self._reading: AbstractAsyncContextManager[Wire] | None = None
        self.wire: Wire

    async def begin(self) -> None:
        self.session = await self.client.create()
        await self.attach()
        await self.client.prompt(self.session, "make one")
        await self.wire.until(lambda: b"question_asked" in b"".join(self.wire.pieces))
        (self.question,) = (await self.client.view(self.session)).questions

    async def attach(self) -> None:
        """Read along."""
        self._reading = self.client.follow(self.session)
        self.wire = await self._reading.__aenter__()
        await self.wire.take(1)

    async def leave(self) -> None:
        """Read no more."""
        if self._reading is not None:
            await self._reading.__aexit__(None, None, None)
            self._reading = None

    async def pass_on(self, seconds: float) -> None:
        """Let time pass, and everybody take note; what they say of it is in the store then."""
        await self._take_note()
        self.clock.advance(seconds)
        await self._take_note()

    async def _take_note(self) -> None:
        for _ in range(50):
            await asyncio.sleep(0)
        for session in self.built.sessions.live:
            await session.log.settle()

    async def answer(self, answers: dict[str, list[str]], key: str | None = None) -> Any:
        return await self.client.answer_question(
            self.session, self.question.question, answers, key=key
        )

    async def end(self) -> SessionView:
        return await self.client.until(self.session, ran(1))

    def told(self) -> str:
        """What the model was told of its call."""
        (result,) = self.provider.requests[1].messages[-1].content
        assert isinstance(result, ToolResult)
        return block_text(result.content)

    async def events(self, *kinds: type) -> list[Any]:
        log = await self.client.log(self.session)
        return [envelope.event for envelope in log if isinstance(envelope.event, kinds)]


@pytest.fixture
async def asked(tmp_path: Path) -> AsyncGenerator[Asked]:
    provider = ScriptedProvider(call("ask_user", items=[COLOUR, SIZES, NAME]), "done", "next")
    clock = FakeClock(held=True)
    async with open_test_app(provider, root=tmp_path, clock=clock) as built:
        asked = Asked(built, provider, clock)
        await asked.begin()
        yield asked
        await asked.leave()


def _unfit(reply: Any) -> str:
    problem = reply.read(Problem)
    assert (reply.status, problem.code) == (422, "rejected")
    return problem.detail


@pytest.mark.rules("A5.36", "C5.10")
async def test_the_model_is_told_the_answers_in_words_and_the_same_again_is_no_conflict(
    asked: Asked,
) -> None:
    assert asked.question.question.startswith("qst_")
    assert [item.id for item in asked.question.items] == ["item_1", "item_2", "item_3"]
    assert [item.free_text for item in asked.question.items] == [False, True, True]
    row = (await asked.client.ask("GET", f"/api/sessions/{asked.session}")).read(SessionInfo)
    assert (row.pending, row.live) == (1, True)
    for _ in range(2):
        reply = await asked.answer(FIT)
        assert reply.status == 200
        assert reply.read(QuestionAnswered).answers["item_3"] == ("Ada",)
    view = await asked.end()
    assert (await asked.answer(FIT)).status == 200
    assert asked.told() == (
        "Which colour?\n→ blue\n\nWhich sizes?\n→ S, L, also XL\n\nWhat is it called?\n→ Ada"
    )
    assert [one.status for one in view.calls] == ["completed"]
    assert [one.by for one in await asked.events(QuestionResolved)] == ["owner"]


@pytest.mark.rules("C5.10")
async def test_no_answers_at_all_leave_the_whole_question_to_the_agent(asked: Asked) -> None:
    reply = await asked.answer({})
    assert (reply.status, reply.read(QuestionAnswered).answers) == (200, {})
    await asked.end()
    assert asked.told() == (
        "They leave it to you. Decide yourself, and say what you decided and why."
    )
    assert (await asked.answer(FIT)).status == 409


@pytest.mark.rules("C5.10", "S17", "S21")
async def test_another_answer_after_the_first_is_a_conflict(asked: Asked) -> None:
    await asked.answer(FIT)
    other = {**FIT, "item_1": ["option_1"]}
    for _ in range(2):
        problem = (await asked.answer(other)).read(Problem)
        assert (problem.status, problem.code, problem.reason) == (
            409,
            "conflict",
            "already_resolved",
        )
        await asked.end()
    assert "blue" in asked.told()


@pytest.mark.rules("C5.10", "S10", "S21")
async def test_of_two_devices_that_answer_at_once_the_first_counts_and_both_see_it_resolved(
    asked: Asked,
) -> None:
    async with asked.client.follow(asked.session) as other:
        replies = await asyncio.gather(
            *(asked.answer({**FIT, "item_3": [name]}) for name in ("Ada", "Bob", "Cleo"))
        )
        assert sorted(reply.status for reply in replies) == [200, 409, 409]
        for reader in (asked.wire, other):
            await reader.until(lambda reader=reader: b"turn_completed" in b"".join(reader.pieces))
            assert b"".join(reader.pieces).count(b'"type":"question_resolved"') == 1
    assert (await asked.client.view(asked.session)).questions == ()


@pytest.mark.rules("C5.10")
@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"item_1": []}, "'item_1' is missing"),
        ({"item_1": ["option_1", "option_2"]}, "'item_1' has several values"),
        ({"item_1": ["option_3"]}, "'option_3', which was not offered"),
        ({"item_1": ["green"]}, "'green', which was not offered"),
        ({"item_2": ["option_1", "option_1"]}, "twice"),
        ({"item_2": ["one", "two"]}, "twice"),
        ({"item_3": [" "]}, "is empty"),
        ({"item_3": ["x" * (MAX_ANSWER + 1)]}, "10001 characters"),
        ({"item_4": ["x"]}, "'item_4' is none"),
    ],
)
async def test_answers_that_do_not_fit_are_refused_and_the_question_stays_open(
    asked: Asked, change: dict[str, list[str]], why: str
) -> None:
    assert why in _unfit(await asked.answer({**FIT, **change}))
    assert (await asked.client.view(asked.session)).questions == (asked.question,)
    assert (await asked.answer(FIT)).status == 200
    await asked.end()


@pytest.mark.rules("C2.3", "C2.9")
async def test_a_question_that_never_was_is_not_found(asked: Asked) -> None:
    reply = await asked.client.answer_question(asked.session, "qst_other", FIT)
    assert (reply.status, reply.read(Problem).code) == (404, "not_found")
    stranger = await asked.client.create()
    reply = await asked.client.answer_question(stranger, asked.question.question, FIT)
    assert reply.status == 404


@pytest.mark.rules("C2.5", "S25")
async def test_an_answer_sent_twice_under_one_key_counts_once(asked: Asked) -> None:
    other = {**FIT, "item_3": ["Bob"]}
    replies = [await asked.answer(answers, key="k") for answers in (FIT, FIT, other)]
    assert [reply.status for reply in replies] == [200, 200, 409]
    assert replies[0].body == replies[1].body
    assert replies[2].read(Problem).code == "idempotency_conflict"
    await asked.end()
    assert len(await asked.events(QuestionResolved)) == 1


@pytest.mark.rules("C5.9", "C5.16")
async def test_a_question_waits_without_an_end_while_somebody_is_attached(asked: Asked) -> None:
    assert asked.question.expires_at is None
    await asked.pass_on(100_000)
    assert len((await asked.client.view(asked.session)).questions) == 1
    assert (await asked.answer(FIT)).status == 200
    await asked.end()


@pytest.mark.rules("C5.8", "C5.9", "C5.16", "S17", "S19")
async def test_a_question_that_nobody_is_left_to_answer_is_left_to_the_agent(asked: Asked) -> None:
    left_ms = asked.clock.now_ms()
    await asked.leave()
    await asked.pass_on(BLIP_S)
    (dated,) = (await asked.client.view(asked.session)).questions
    assert dated.question == asked.question.question
    assert dated.expires_at is not None
    assert parse_time(dated.expires_at) - left_ms == GRACE_S * 1000
    await asked.pass_on(GRACE_S - BLIP_S)
    await asked.end()
    assert "Decide yourself" in asked.told()
    late = await asked.answer(FIT)
    assert (late.status, late.read(Problem).reason) == (410, "expired")
    assert [one.by for one in await asked.events(QuestionResolved)] == ["deadline"]


@pytest.mark.rules("C5.8", "C5.9", "C5.16")
async def test_a_reader_that_comes_in_time_takes_the_deadline_away_again(asked: Asked) -> None:
    await asked.leave()
    await asked.pass_on(GRACE_S - 1)
    await asked.attach()
    await asked.wire.until(
        lambda: b"".join(asked.wire.pieces).count(b'"type":"question_asked"') == 3
    )
    await asked.pass_on(10_000)
    (open_,) = (await asked.client.view(asked.session)).questions
    assert open_ == asked.question
    assert (await asked.answer(FIT)).status == 200
    await asked.end()


@pytest.mark.rules("C5.9")
async def test_people_who_were_called_from_elsewhere_have_half_an_hour(asked: Asked) -> None:
    await asked.leave()
    await asked.pass_on(30)
    (session,) = asked.built.sessions.live
    session.waiting.note_wake_up()
    called_ms = asked.clock.now_ms()
    await asked.pass_on(0)
    (dated,) = (await asked.client.view(asked.session)).questions
    assert dated.expires_at is not None
    assert parse_time(dated.expires_at) - called_ms == AWAY_S * 1000
    await asked.pass_on(AWAY_S)
    await asked.end()
    assert "Decide yourself" in asked.told()


@pytest.mark.rules("C1.23", "C5.10", "S17", "S28")
async def test_a_stop_while_a_question_waits_takes_it_back(asked: Asked) -> None:
    await asked.client.interrupt(asked.session)
    view = await asked.end()
    assert (view.questions, view.open_calls, view.turn) == ((), (), None)
    kinds = (QuestionResolved, ToolEnded, TurnCancelled)
    ends = await asked.events(*kinds)
    assert [type(event) for event in ends] == list(kinds)
    assert (ends[0].by, ends[1].status) == ("cancel", "cancelled")
    late = await asked.answer(FIT)
    assert (late.status, late.read(Problem).reason) == (410, "expired")
    await asked.client.prompt(asked.session, "go on")
    await asked.client.until(asked.session, ran(2))


@pytest.mark.rules("C5.8", "S20", "S24")
async def test_a_prompt_is_taken_while_a_question_is_open(asked: Asked) -> None:
    assert (await asked.client.prompt(asked.session, "and then?")).status == 202
    view = await asked.client.view(asked.session)
    assert (len(view.queue), len(view.questions)) == (1, 1)
    assert (await asked.answer(FIT)).status == 200
    view = await asked.client.until(asked.session, ran(2))
    assert block_text(view.messages[-1].content) == "next"


@pytest.mark.parametrize(
    ("items", "why"),
    [
        ([], "length"),
        ([COLOUR] * 9, "length"),
        ([{"prompt": " "}], "is empty"),
        ([{"prompt": "Which?", "options": ["a", ""]}], "length"),
        ([{"prompt": "Which?", "options": ["a", "a"]}], "offers an option twice"),
        ([{"prompt": "Which?", "options": ["a"] * 13}], "length"),
        ([{"prompt": "x" * 2001}], "length"),
    ],
)
async def test_what_nobody_could_answer_is_not_asked(
    tmp_path: Path, items: list[dict[str, Any]], why: str
) -> None:
    provider = ScriptedProvider(call("ask_user", items=items), "well")
    async with open_test_app(provider, root=tmp_path) as built:
        client = AppClient(built)
        session = await client.create()
        await client.prompt(session, "go")
        view = await client.until(session, ran(1))
        log: list[Envelope] = await client.log(session)
    assert not [one for one in log if isinstance(one.event, QuestionAsked)]
    (ended,) = view.calls
    assert ended.status == "failed"
    assert why in block_text(ended.content)


@pytest.mark.parametrize(
    ("bare_prompt", "offered"),
    [(False, ["ask_user"]), (True, [])],
)
async def test_a_model_too_small_to_know_when_to_ask_is_not_given_the_tool(
    tmp_path: Path, offered: list[str], *, bare_prompt: bool
) -> None:
    provider = ScriptedProvider("well", model=Model(provider="a", id="b", bare_prompt=bare_prompt))
    async with open_test_app(provider, root=tmp_path) as built:
        client = AppClient(built)
        session = await client.create()
        await client.prompt(session, "go")
        await client.until(session, ran(1))
    assert [one.name for one in provider.requests[0].tools] == offered


async def test_an_agent_that_has_a_tool_of_that_name_keeps_its_own(tmp_path: Path) -> None:
    @tool(name="ask_user", effect="read")
    async def mine() -> str:
        """Ask in my own way."""
        return "mine"

    provider = ScriptedProvider(call("ask_user"), "well")
    async with open_test_app(provider, root=tmp_path, tools=[mine]) as built:
        client = AppClient(built)
        session = await client.create()
        await client.prompt(session, "go")
        view = await client.until(session, ran(1))
    assert block_text(view.calls[0].content) == "mine"
