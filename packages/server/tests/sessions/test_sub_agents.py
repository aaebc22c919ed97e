"""Agents that work for a session's turn, each in a session of its own."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from towline_agent import Piece, Request, StepAnswer, StepResult, Tool, Toolset, mint_now, tool
from towline_agent.testing import ScriptedProvider, call, say
from towline_protocol import (
    DENY,
    CallId,
    CreateSession,
    Limits,
    Parent,
    PermissionRequested,
    SessionClosed,
    SessionCreated,
    SessionId,
    SessionInfo,
    SessionList,
    SessionView,
    ToolEnded,
    ToolStarted,
    TurnCancelled,
    TurnCompleted,
    TurnResumed,
    Usage,
    UsageError,
    block_text,
)
from towline_server.main import BuiltApp
from towline_server.sessions.agents import AgentSpec
from towline_server.sessions.sub_agents import Order
from towline_server.store.sqlite_store import open_memory_store
from towline_server.testing import AppClient, open_test_app, ran

USED: Final = Usage(input=100, output=10)


class Script(ScriptedProvider):
    """Answers each conversation by its own script, chosen by its first words."""

    def __init__(self, scripts: Mapping[str, Sequence[StepAnswer]]) -> None:
        super().__init__()
        self._scripts = scripts

    async def step(self, request: Request, on_piece: Callable[[Piece], None]) -> StepResult:
        self.requests.append(request)
        said = sum(message.role == "assistant" for message in request.messages)
        answer = self._scripts[block_text(request.messages[0].content)][said]
        return msgspec.structs.replace(answer, usage=USED)

    def of(self, words: str) -> list[Request]:
        """The requests of one conversation."""
        return [one for one in self.requests if block_text(one.messages[0].content) == words]


def spawn(*prompts: str) -> StepAnswer:
    """One answer that spawns an agent for each task."""
    calls = [call("spawn_agent", prompt=prompt, agent="helper") for prompt in prompts]
    return msgspec.structs.replace(
        calls[0], content=tuple(block for one in calls for block in one.content)
    )


@tool(effect="write")
def change(word: str) -> str:
    """Change something."""
    return f"changed {word}"


class Gate:
    """A tool that waits until a test lets it go on."""

    def __init__(self) -> None:
        self.begun = asyncio.Semaphore(0)
        self.open = asyncio.Event()
        self.left = 0

    def tool(self) -> Tool:
        @tool(effect="read")
        async def hold() -> str:
            """Wait."""
            self.begun.release()
            try:
                await self.open.wait()
            finally:
                self.left += 1
            return "held"

        return hold


def helper(*tools: Tool, **facts: Any) -> AgentSpec:
    return AgentSpec(
        name="helper", description="Helps.", tools=Toolset(tools), hidden=True, **facts
    )


def children(built: BuiltApp) -> list[SessionId]:
    """The sub-agents' sessions in memory, in the order in which they were made."""
    return sorted(
        session.log.session for session in built.sessions.live if session.lead.parent is not None
    )


async def listed(client: AppClient) -> list[SessionId]:
    answer = await client.ask("GET", "/api/sessions")
    return [row.id for row in answer.read(SessionList).sessions]


async def begin(client: AppClient, prompt: str = "Go.", **facts: Any) -> SessionId:
    session = await client.create(CreateSession(**facts) if facts else None)
    await client.prompt(session, prompt)
    return session


def told(view: SessionView) -> list[str]:
    return [block_text(ended.content) for ended in view.calls]


@pytest.mark.rules("D5", "A4.61", "A5.T16")
async def test_a_task_is_done_in_a_session_of_its_own(tmp_path: Path) -> None:
    provider = Script(
        {
            "Go.": [spawn("Find it."), say("Found.")],
            "Find it.": [call("change", word="it"), say("It is there.")],
        }
    )
    async with open_test_app(provider, root=tmp_path, helpers=[helper(change)]) as built:
        client = AppClient(built)
        session = await begin(client)
        view = await client.until(session, ran(1))
        (spawned,) = view.calls
        assert told(view) == ["It is there."]
        assert spawned.child is not None
        log = [envelope.event for envelope in await client.log(spawned.child)]
        created = log[0]
        assert isinstance(created, SessionCreated)
        assert created.parent is not None
        assert (created.parent.session, created.parent.call) == (session, spawned.call)
        assert (created.agent, created.cwd) == ("helper", str(tmp_path))
        assert isinstance(log[-1], SessionClosed)
        events = [envelope.event for envelope in await client.log(session)]
        assert [event.child for event in events if isinstance(event, ToolStarted)] == [
            spawned.child
        ]
        lead, work = provider.of("Go."), provider.of("Find it.")
        assert "spawn_agent" in [spec.name for spec in lead[0].tools]
        assert [spec.name for spec in work[0].tools] == ["change", "ask_user"]  # and cannot spawn


@pytest.mark.rules("D5")
async def test_the_session_of_a_sub_agent_is_in_no_list(tmp_path: Path) -> None:
    gate = Gate()
    provider = Script(
        {"Go.": [spawn("Wait."), say("Done.")], "Wait.": [call("hold"), say("Waited.")]}
    )
    async with open_test_app(provider, root=tmp_path, helpers=[helper(gate.tool())]) as built:
        client = AppClient(built)
        async with client.follow_all() as feed:
            session = await begin(client)
            await gate.begun.acquire()
            (child,) = children(built)
            assert await listed(client) == [session]
            info = (await client.ask("GET", f"/api/sessions/{child}")).read(SessionInfo)
            assert (info.agent, info.title) == ("helper", "Wait.")
            gate.open.set()
            await client.until(session, ran(1))
            assert await listed(client) == [session]
            fed = b"".join(feed.pieces)
            assert session.encode() in fed
            assert child.encode() not in fed


@pytest.mark.rules("D5", "C5.10")
@pytest.mark.parametrize("at_child", [False, True])
async def test_what_a_sub_agent_wants_to_do_is_asked_in_the_session_that_people_see(
    tmp_path: Path, at_child: bool
) -> None:
    provider = Script(
        {
            "Go.": [spawn("Change."), call("change", word="a"), say("Done.")],
            "Change.": [call("change", word="a"), call("change", word="a"), say("I did.")],
        }
    )
    helpers = [helper(change)]
    async with open_test_app(
        provider, root=tmp_path, tools=[change], helpers=helpers, mode="ask"
    ) as built:
        client = AppClient(built)
        session = await begin(client)
        view = await client.until(session, lambda view: bool(view.permissions))
        (request,) = view.permissions
        (spawned,) = view.open_calls
        assert (request.title, request.call) == ("helper: change", spawned.call)
        (child,) = children(built)
        (same,) = (await client.until(child, lambda view: bool(view.permissions))).permissions
        assert (same.permission, same.digest) == (request.permission, request.digest)
        rows = msgspec.json.decode((await client.ask("GET", "/api/requests")).body)["requests"]
        assert [row["session"] for row in rows] == [session]
        await client.answer(child if at_child else session, request, option="allow_session")
        view = await client.until(session, ran(1))
        assert told(view) == ["I did.", "changed a"]  # the rule counts for both
        assert not (await client.view(child)).permissions


@pytest.mark.rules("D5")
async def test_a_denial_reaches_the_sub_agent(tmp_path: Path) -> None:
    provider = Script(
        {
            "Go.": [spawn("Change."), say("Done.")],
            "Change.": [call("change", word="a"), say("It may not be.")],
        }
    )
    async with open_test_app(
        provider, root=tmp_path, helpers=[helper(change)], mode="ask"
    ) as built:
        client = AppClient(built)
        session = await begin(client)
        (request,) = (await client.until(session, lambda v: bool(v.permissions))).permissions
        await client.answer(session, request, option=DENY)
        assert told(await client.until(session, ran(1))) == ["It may not be."]
        assert "denied" in repr(provider.of("Change.")[1].messages[-1])


@pytest.mark.rules("D5", "C5.8")
async def test_a_question_of_a_sub_agent_is_asked_in_its_name(tmp_path: Path) -> None:
    items = [{"prompt": "Which colour?", "options": ["red", "blue"]}]
    provider = Script(
        {
            "Go.": [spawn("Paint."), say("Done.")],
            "Paint.": [call("ask_user", items=items), say("Painted.")],
        }
    )
    async with open_test_app(provider, root=tmp_path, helpers=[helper()]) as built:
        client = AppClient(built)
        session = await begin(client)
        (asked,) = (await client.until(session, lambda view: bool(view.questions))).questions
        assert asked.items[0].prompt == "helper: Which colour?"
        await client.answer_question(session, asked.question, {"item_1": ["option_2"]})
        assert told(await client.until(session, ran(1))) == ["Painted."]
        assert "blue" in repr(provider.of("Paint.")[1].messages[-1])


@pytest.mark.rules("D5", "A4.8", "A4.48")
async def test_what_a_sub_agent_uses_counts_in_the_turn_and_once_in_the_day(
    tmp_path: Path,
) -> None:
    provider = Script(
        {
            "Go.": [spawn("Change."), say("Done.")],
            "Change.": [call("change", word="a"), say("I did.")],
        }
    )
    async with open_test_app(provider, root=tmp_path, helpers=[helper(change)]) as built:
        client = AppClient(built)
        session = await begin(client)
        await client.until(session, ran(1))
        events = [envelope.event for envelope in await client.log(session)]
        (ended,) = [event for event in events if isinstance(event, ToolEnded)]
        assert ended.usage == USED + USED
        assert isinstance(events[-1], TurnCompleted)
        assert events[-1].usage == USED + USED + USED + USED
        report = msgspec.json.decode((await client.ask("GET", "/api/usage")).body)
        assert report["total"]["usage"]["input"] == 400


@pytest.mark.rules("D5", "A4.8")
async def test_the_bounds_of_the_turn_hold_for_its_sub_agents(tmp_path: Path) -> None:
    provider = Script(
        {
            "Go.": [spawn("Change.")],
            "Change.": [call("change", word=str(number)) for number in range(9)],
        }
    )
    async with open_test_app(provider, root=tmp_path, helpers=[helper(change)]) as built:
        client = AppClient(built)
        session = await begin(client, limits=Limits(max_tokens=300))
        view = await client.until(session, ran(1))
        assert told(view) == ["The agent ended without an answer.\n[it stopped early: budget]"]
        assert view.last_turn is not None
        assert view.last_turn.stop_reason == "budget"
        assert len(provider.requests) == 3


@pytest.mark.rules("D5", "S28")
async def test_a_stop_of_the_turn_stops_its_sub_agents(tmp_path: Path) -> None:
    gate = Gate()
    provider = Script({"Go.": [spawn("Wait.", "Wait.")], "Wait.": [call("hold")]})
    async with open_test_app(provider, root=tmp_path, helpers=[helper(gate.tool())]) as built:
        client = AppClient(built)
        session = await begin(client)
        await gate.begun.acquire()
        await gate.begun.acquire()
        both = children(built)
        await client.interrupt(session)
        view = await client.until(session, ran(1))
        assert [ended.status for ended in view.calls] == ["cancelled", "cancelled"]
        assert gate.left == 2
        assert view.last_turn is not None
        assert view.last_turn.usage == USED + USED + USED
        for child in both:
            events = [type(envelope.event) for envelope in await client.log(child)]
            assert events[-2:] == [TurnCancelled, SessionClosed]


@pytest.mark.rules("D5")
async def test_a_sub_agent_that_is_stopped_by_itself_ends_its_call_alone(tmp_path: Path) -> None:
    gate = Gate()
    provider = Script({"Go.": [spawn("Wait."), say("I go on.")], "Wait.": [call("hold")]})
    async with open_test_app(provider, root=tmp_path, helpers=[helper(gate.tool())]) as built:
        client = AppClient(built)
        session = await begin(client)
        await gate.begun.acquire()
        await client.interrupt(children(built)[0])
        view = await client.until(session, ran(1))
        assert told(view) == ["The agent was stopped"]
        assert view.last_turn is not None
        assert view.last_turn.outcome == "completed"


@pytest.mark.rules("D5")
async def test_four_sub_agents_work_at_once_and_they_take_no_place_of_the_users(
    tmp_path: Path,
) -> None:
    gate = Gate()
    tasks = [f"Task {number}." for number in range(6)]
    scripts: dict[str, Sequence[StepAnswer]] = {task: [call("hold"), say(task)] for task in tasks}
    provider = Script({"Go.": [spawn(*tasks), say("Done.")], "Hi.": [say("Hi.")], **scripts})
    async with open_test_app(
        provider, root=tmp_path, helpers=[helper(gate.tool())], live_sessions=2
    ) as built:
        client = AppClient(built)
        session = await begin(client)
        for _ in range(4):
            await gate.begun.acquire()
        assert len(children(built)) == 4
        other = await begin(client, "Hi.")
        await client.until(other, ran(1))
        gate.open.set()
        assert sorted(told(await client.until(session, ran(1)))) == tasks
        assert len(provider.requests) == 2 + 12 + 1


@pytest.mark.rules("D5", "C2.10")
@pytest.mark.parametrize("end", ["close", "delete"])
@pytest.mark.parametrize("busy", [True, False])
async def test_what_ends_a_session_ends_those_of_its_sub_agents(
    tmp_path: Path, end: str, busy: bool
) -> None:
    gate = Gate()
    provider = Script(
        {"Go.": [spawn("Wait."), say("Done.")], "Wait.": [call("hold"), say("Waited.")]}
    )
    async with open_test_app(provider, root=tmp_path, helpers=[helper(gate.tool())]) as built:
        client = AppClient(built)
        session = await begin(client)
        await gate.begun.acquire()
        (child,) = children(built)
        if not busy:
            gate.open.set()
            await client.until(session, ran(1))
        if end == "close":
            await client.ask("POST", f"/api/sessions/{session}/close", b"{}")
            assert (await client.view(session)).closed is not None
            assert (await client.view(child)).closed is not None
        else:
            await client.ask("DELETE", f"/api/sessions/{session}")
            for gone in (session, child):
                assert (await client.ask("GET", f"/api/sessions/{gone}")).status in (404, 410)
        assert gate.left == 1


@pytest.mark.rules("D5", "C5.4")
@pytest.mark.parametrize("child_first", [True, False])
async def test_a_restart_takes_up_a_sub_agent_and_the_call_that_waits_for_it(
    tmp_path: Path, child_first: bool
) -> None:
    gate = Gate()
    provider = Script(
        {"Go.": [spawn("Wait."), say("Done.")], "Wait.": [call("hold"), say("Waited.")]}
    )
    store = await open_memory_store(mint=mint_now)
    helpers = [helper(gate.tool())]
    async with open_test_app(provider, root=tmp_path, helpers=helpers, store=store) as built:
        client = AppClient(built)
        session = await begin(client)
        await gate.begun.acquire()
        (child,) = children(built)
        if child_first:  # its row is the newer one, so it is taken up first
            await client.prompt(child, "More.")
    gate.open.set()
    provider = Script(
        {"Go.": [spawn("Wait."), say("Done.")], "Wait.": [call("hold"), say("Waited."), say("Ok.")]}
    )
    async with open_test_app(provider, root=tmp_path, helpers=helpers, store=store) as built:
        client = AppClient(built)
        view = await client.until(session, ran(1))
        assert view.last_turn is not None
        assert view.last_turn.outcome == "completed"
        assert told(view) == ["Ok." if child_first else "Waited."]
        (spawned,) = view.calls
        assert spawned.child == child
        events = [envelope.event for envelope in await client.log(child)]
        assert sum(isinstance(event, TurnResumed) for event in events) == 1
        assert sum(isinstance(event, SessionCreated) for event in events) == 1
        assert not [one for one in provider.requests if len(one.messages) == 1]  # none began anew
    await store.close()


@pytest.mark.rules("D5", "C5.8", "S20")
async def test_a_request_of_a_sub_agent_outlives_any_number_of_restarts(tmp_path: Path) -> None:
    scripts = {
        "Go.": [spawn("Change."), say("Done.")],
        "Change.": [call("change", word="a"), say("I did.")],
    }
    store = await open_memory_store(mint=mint_now)
    facts: dict[str, Any] = {"root": tmp_path, "helpers": [helper(change)], "mode": "ask"}
    ids: set[str] = set()
    session = SessionId("")
    for life in range(6):
        async with open_test_app(Script(scripts), store=store, **facts) as built:
            client = AppClient(built)
            session = session or await begin(client)
            view = await client.until(session, lambda view: bool(view.permissions))
            (request,) = view.permissions
            ids.add(request.permission)
            if life == 5:
                await client.answer(session, request, option="allow_once")
                assert told(await client.until(session, ran(1))) == ["I did."]
                events = [envelope.event for envelope in await client.log(session)]
                assert isinstance(events[-1], TurnCompleted)
                assert {e.call for e in events if isinstance(e, PermissionRequested)} == {
                    e.call for e in events if isinstance(e, ToolEnded)
                }
    assert len(ids) == 1
    await store.close()


def lost_order(user: str, session: SessionId) -> Order:
    """A task of a call that is not open."""
    created = SessionCreated(
        agent="helper",
        model="scripted/scripted",
        mode="auto",
        parent=Parent(session=session, call=CallId("call_1")),
    )
    return Order(id=SessionId("ses_orphan"), user=user, created=created, prompt="Wait.")


@pytest.mark.rules("D5")
async def test_a_sub_agent_whose_call_has_ended_ends_too(tmp_path: Path) -> None:
    provider = Script({"Wait.": [say("Nobody hears.")]})
    store = await open_memory_store(mint=mint_now)
    async with open_test_app(provider, root=tmp_path, helpers=[helper()], store=store) as built:
        client = AppClient(built)
        session = await client.create()
        (owner,) = built.sessions.live
        orphan = await built.sessions.staff.hire(lost_order(owner.log.user, session))
        await orphan.runner.idle()
        last = orphan.log.ahead.view.last_turn
        assert last is not None
        assert last.fault is not None
        assert "waits for it no more" in last.fault.message
        assert provider.requests == []
    await store.close()


@pytest.mark.rules("D5")
async def test_people_begin_no_session_with_a_hidden_agent(tmp_path: Path) -> None:
    async with open_test_app(Script({}), root=tmp_path, helpers=[helper()]) as built:
        client = AppClient(built)
        info = msgspec.json.decode((await client.ask("GET", "/api/server")).body)
        assert "helper" not in repr(info)
        answer = await client.ask("POST", "/api/sessions", CreateSession(agent="helper"))
        assert answer.status == 400
    lost = AgentSpec(name="helper", hidden=True, agents=("nobody",))
    with pytest.raises(UsageError, match="nobody"):
        async with open_test_app(Script({}), root=tmp_path, helpers=[lost]):
            pass
