"""Permission requests over HTTP: answered once, in time, for what was shown."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import msgspec
import pytest

from towline_agent import tool
from towline_agent.testing import FakeClock, ScriptedProvider, call
from towline_protocol import (
    DENY,
    AnswerPermission,
    PermissionAnswered,
    PermissionId,
    PermissionRequested,
    PermissionResolved,
    Problem,
    SessionInfo,
    SessionView,
    ToolResult,
    block_text,
    parse_time,
)
from towline_server.build import BuiltApp
from towline_server.testing import AppClient, open_test_app

WINDOW_S = 120.0


@tool(name="change")
async def _change(what: str) -> str:
    """Change something."""
    return f"changed {what}"


class Asked:
    """A session in which a permission request is open."""

    def __init__(self, built: BuiltApp, provider: ScriptedProvider, clock: FakeClock) -> None:
        self.built = built
        self.client = AppClient(built)
        self.provider = provider
        self.clock = clock
        self.session = ""
        self.request: PermissionRequested

    async def begin(self) -> None:
        self.session = await self.client.create()
        await self.client.prompt(self.session, "change a")
        view = await self.client.until(self.session, lambda view: bool(view.permissions))
        (self.request,) = view.permissions

    async def end(self) -> SessionView:
        return await self.client.until(self.session, lambda view: view.last_turn is not None)

    def told(self) -> str:
        """What the model was told of its call."""
        (result,) = self.provider.requests[1].messages[-1].content
        assert isinstance(result, ToolResult)
        return block_text(result.content)

    async def resolutions(self) -> list[PermissionResolved]:
        log = await self.client.log(self.session)
        return [e.event for e in log if isinstance(e.event, PermissionResolved)]


@pytest.fixture
async def asked(tmp_path: Path) -> AsyncGenerator[Asked]:
    provider = ScriptedProvider(call("change", what="a"), "done", call("change", what="a"), "done")
    clock = FakeClock(held=True)
    async with open_test_app(
        provider,
        root=tmp_path,
        tools=[_change],
        mode="ask",
        clock=clock,
        permission_window_s=WINDOW_S,
    ) as built:
        asked = Asked(built, provider, clock)
        await asked.begin()
        yield asked


@pytest.mark.rules("C5.10", "A5.56")
async def test_an_allowed_call_runs_and_the_same_answer_again_is_no_conflict(asked: Asked) -> None:
    row = (await asked.client.ask("GET", f"/api/sessions/{asked.session}")).read(SessionInfo)
    assert (row.pending, row.live) == (1, True)
    for _ in range(2):
        reply = await asked.client.answer(asked.session, asked.request, "allow_once")
        assert (reply.status, reply.read(PermissionAnswered).option) == (200, "allow_once")
    view = await asked.end()
    again = await asked.client.answer(asked.session, asked.request, "allow_once")
    assert again.status == 200
    assert asked.told() == "changed a"
    assert [call.status for call in view.calls] == ["completed"]
    assert [(r.option, r.by) for r in await asked.resolutions()] == [("allow_once", "owner")]


@pytest.mark.rules("C5.10", "S17", "S21")
async def test_another_answer_after_the_first_is_a_conflict(asked: Asked) -> None:
    await asked.client.answer(asked.session, asked.request, "allow_once")
    for _ in range(2):
        reply = await asked.client.answer(asked.session, asked.request, DENY)
        problem = reply.read(Problem)
        assert (reply.status, problem.code, problem.reason) == (409, "conflict", "already_resolved")
        await asked.end()
    assert asked.told() == "changed a"


@pytest.mark.rules("C5.10", "S21")
async def test_of_two_clients_that_answer_at_once_the_first_one_counts_for_both(
    asked: Asked,
) -> None:
    async with (
        asked.client.follow(asked.session) as one,
        asked.client.follow(asked.session) as two,
    ):
        replies = await asyncio.gather(
            *(
                asked.client.answer(asked.session, asked.request, option)
                for option in ("allow_once", DENY, "allow_session", DENY)
            )
        )
        assert sorted(reply.status for reply in replies) == [200, 409, 409, 409]
        for reader in (one, two):
            await reader.until(lambda reader=reader: b"turn_completed" in b"".join(reader.pieces))
            assert b"".join(reader.pieces).count(b'"type":"permission_resolved"') == 1
    assert len(await asked.resolutions()) == 1


@pytest.mark.rules("C5.11")
async def test_an_answer_to_something_else_than_was_shown_keeps_the_request_open(
    asked: Asked,
) -> None:
    reply = await asked.client.answer(asked.session, asked.request, "allow_once", digest="0" * 64)
    assert (reply.status, reply.read(Problem).reason) == (409, "wrong_digest")
    reply = await asked.client.answer(asked.session, asked.request, "allow_all")
    assert (reply.status, reply.read(Problem).code) == (422, "rejected")
    assert (await asked.client.view(asked.session)).permissions == (asked.request,)
    assert (await asked.client.answer(asked.session, asked.request, DENY)).status == 200
    view = await asked.end()
    assert [call.status for call in view.calls] == ["denied"]


@pytest.mark.rules("C2.3")
async def test_a_request_that_never_was_is_not_found(asked: Asked) -> None:
    other = msgspec.structs.replace(asked.request, permission=PermissionId("prm_other"))
    reply = await asked.client.answer(asked.session, other, "allow_once")
    assert (reply.status, reply.read(Problem).code) == (404, "not_found")
    stranger = await asked.client.create()
    assert (await asked.client.answer(stranger, asked.request, "allow_once")).status == 404
    assert len((await asked.client.view(asked.session)).permissions) == 1


@pytest.mark.rules("C5.9", "S19", "S17")
async def test_what_nobody_answers_is_denied_at_its_deadline_and_the_model_is_told(
    asked: Asked,
) -> None:
    assert parse_time(asked.request.expires_at) - asked.clock.now_ms() == WINDOW_S * 1000
    asked.clock.advance(WINDOW_S - 1)
    for _ in range(50):
        await asyncio.sleep(0)
    assert len((await asked.client.view(asked.session)).permissions) == 1
    asked.clock.advance(1)
    view = await asked.end()
    assert [call.status for call in view.calls] == ["denied"]
    assert "Nobody answered in time" in asked.told()
    assert [(r.option, r.by) for r in await asked.resolutions()] == [(DENY, "deadline")]
    late = await asked.client.answer(asked.session, asked.request, "allow_once")
    assert (late.status, late.read(Problem).reason) == (410, "expired")


@pytest.mark.rules("C5.8", "C5.9", "S19")
async def test_people_who_were_called_are_offered_the_same_request_again_and_have_half_an_hour(
    asked: Asked,
) -> None:
    (session,) = asked.built.sessions.live
    asked.clock.advance(WINDOW_S - 1)
    session.waiting.note_wake_up()
    view = await asked.client.until(
        asked.session,
        lambda v: bool(v.permissions) and v.permissions[0].expires_at > asked.request.expires_at,
    )
    (again,) = view.permissions
    assert msgspec.structs.replace(again, expires_at=asked.request.expires_at) == asked.request
    assert parse_time(again.expires_at) - asked.clock.now_ms() == 1800 * 1000
    asked.clock.advance(1799)
    for _ in range(50):
        await asyncio.sleep(0)
    assert len((await asked.client.view(asked.session)).permissions) == 1
    asked.clock.advance(1)
    view = await asked.end()
    assert [call.status for call in view.calls] == ["denied"]
    assert "Nobody answered in time" in asked.told()


@pytest.mark.rules("C1.23", "S28", "S17")
async def test_a_stop_while_a_request_is_open_denies_it_and_nothing_runs(asked: Asked) -> None:
    await asked.client.interrupt(asked.session)
    view = await asked.end()
    assert (view.permissions, view.open_calls) == ((), ())
    assert [(r.option, r.by) for r in await asked.resolutions()] == [(DENY, "cancel")]
    late = await asked.client.answer(asked.session, asked.request, "allow_once")
    assert (late.status, late.read(Problem).reason) == (410, "expired")
    await asked.client.prompt(asked.session, "go on")
    await asked.client.until(asked.session, lambda view: bool(view.permissions))


@pytest.mark.rules("A5.55")
async def test_words_to_a_decision_reach_the_model(asked: Asked) -> None:
    body = AnswerPermission(option=DENY, digest=asked.request.digest, note="Take b instead.")
    path = f"/api/sessions/{asked.session}/permissions/{asked.request.permission}"
    long = msgspec.structs.replace(body, note="x" * 4001)
    assert (await asked.client.ask("POST", path, long)).status == 400
    assert (await asked.client.ask("POST", path, body)).status == 200
    await asked.end()
    assert "Take b instead." in asked.told()


@pytest.mark.rules("A5.55")
async def test_what_is_allowed_for_the_session_is_not_asked_again(asked: Asked) -> None:
    await asked.client.answer(asked.session, asked.request, "allow_session")
    await asked.end()
    await asked.client.prompt(asked.session, "again")
    view = await asked.client.until(asked.session, lambda view: len(view.calls) == 2)
    assert [call.status for call in view.calls] == ["completed", "completed"]
    assert len(await asked.resolutions()) == 1


@pytest.mark.rules("C2.5", "S25")
async def test_an_answer_sent_twice_under_one_key_counts_once_and_another_one_is_refused(
    asked: Asked,
) -> None:
    replies = [
        await asked.client.answer(asked.session, asked.request, option, key="k")
        for option in ("allow_once", "allow_once", DENY)
    ]
    assert [reply.status for reply in replies] == [200, 200, 409]
    assert replies[0].body == replies[1].body
    assert replies[2].read(Problem).code == "idempotency_conflict"
    await asked.end()
    assert len(await asked.resolutions()) == 1


@pytest.mark.rules("C5.8", "S20", "S24")
async def test_a_prompt_is_taken_while_a_request_is_open(asked: Asked) -> None:
    assert (await asked.client.prompt(asked.session, "and then?")).status == 202
    view = await asked.client.view(asked.session)
    assert (len(view.queue), len(view.permissions)) == (1, 1)
