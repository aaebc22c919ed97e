"""The library's face: an agent that is run and streamed."""

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from towline_agent.agent import Agent, system_prompt
from towline_agent.errors import AbortTurn, AuthenticationFailed, ResponseMalformed
from towline_agent.permissions.rules import parse_rule
from towline_agent.providers.base import Controls, Model, StepFailed, TextPiece
from towline_agent.providers.openai_chat.provider import OpenAIChat
from towline_agent.result import AgentResult
from towline_agent.testing import FakeClock, ScriptedProvider, call, counted_ids, say
from towline_agent.tools.builtin import builtin_tools
from towline_agent.tools.builtin.todo import todo_write
from towline_agent.tools.function import tool
from towline_agent.tools.registry import find_tools
from towline_agent.workspaces.local import LocalWorkspace
from towline_agent.workspaces.memory import MemoryWorkspace
from towline_protocol import (
    INTERRUPTED,
    Event,
    Image,
    Limits,
    Message,
    PermissionRequested,
    PromptAdmitted,
    Text,
    TextDelta,
    ToolCall,
    ToolProposed,
    ToolResult,
    ToolStarted,
    TurnCompleted,
    TurnFailed,
    Usage,
    UsageError,
    block_text,
)


@tool(effect="read")
async def look(at: str) -> str:
    """Look at something."""
    return f"{at} is there"


@tool
async def write(at: str) -> str:
    """Write somewhere."""
    return f"wrote {at}"


@tool(effect="read")
async def wait() -> str:
    """Wait for ever."""
    await asyncio.Event().wait()
    return "never"


def agent(provider: ScriptedProvider, *tools: Any, **facts: Any) -> Agent:
    return Agent(provider, tools=tools, clock=FakeClock(), mint=counted_ids(), **facts)


def only_me() -> bool:
    return asyncio.all_tasks() == {asyncio.current_task()}


@pytest.mark.rules("A4.46", "A4.47")
async def test_a_run_returns_what_it_came_to() -> None:
    provider = ScriptedProvider(call("look", at="a"), say("It is there.", usage=Usage(input=3)))
    result = await agent(provider, look).run("Look at a.")
    assert result == AgentResult(
        final_message="It is there.",
        output=None,
        messages=result.messages,
        steps=2,
        tool_call_count=1,
        usage=Usage(input=13, output=5),
        cost=None,
        stop_reason="end_turn",
    )
    assert [message.role for message in result.messages] == [
        "user",
        "assistant",
        "tool",
        "assistant",
    ]
    assert only_me()


async def test_what_an_agent_is_told_between_two_runs_counts_for_the_next() -> None:
    provider = ScriptedProvider(call("look", at="a"), call("look", at="b"), "Done.")
    asked = agent(provider, look, instructions="Be brief.", hand_over=False)
    asked.limits = Limits(max_steps=1)
    assert (await asked.run("Look.")).stop_reason == "max_steps"
    asked.instructions, asked.limits = "Be long.", Limits(max_steps=5)
    assert (await asked.run("Look again.")).stop_reason == "end_turn"
    first, last = provider.requests[0].system, provider.requests[-1].system
    assert "Be brief." in str(first)
    assert "Be long." in str(last)


@pytest.mark.rules("A4.48", "A4.49")
async def test_the_cost_is_a_sum_when_prices_are_known() -> None:
    model = Model(provider="s", id="m", price_input=1.0, price_output=10.0)
    result = await agent(ScriptedProvider(call("look", at="a"), "Yes.", model=model), look).run("?")
    assert result.cost == pytest.approx(2 * (10 * 1.0 + 5 * 10.0) / 1e6)


@pytest.mark.rules("A4.50")
async def test_messages_can_be_fed_back() -> None:
    provider = ScriptedProvider(call("look", at="a"), "It is.", "As I said.")
    one = agent(provider, look)
    first = await one.run("Look at a.")
    second = await one.run("Really?", messages=first.messages)
    assert provider.requests[2].messages[:-1] == first.messages
    assert second.messages[: len(first.messages)] == first.messages
    assert (second.final_message, second.tool_call_count, second.steps) == ("As I said.", 0, 1)


@pytest.mark.rules("A4.54")
async def test_the_step_limit_returns_the_work_and_raises_nothing() -> None:
    provider = ScriptedProvider(call("look", at="a"), "I looked at a; b is left.")
    result = await agent(provider, look, limits=Limits(max_steps=1)).run("Look at a and b.")
    assert (result.stop_reason, result.final_message) == ("max_steps", "I looked at a; b is left.")
    provider = ScriptedProvider(call("look", at="a"))
    bare = agent(provider, look, limits=Limits(max_steps=1), hand_over=False)
    result = await bare.run("Look at a and b.")
    assert (result.stop_reason, result.final_message) == ("max_steps", "")
    assert result.messages[-1].role == "tool"


async def test_the_last_words_are_those_of_this_run() -> None:
    one = agent(ScriptedProvider("Before."))
    earlier = (await one.run("Hi")).messages
    late = agent(ScriptedProvider([asyncio.Event()]), limits=Limits(wall_s=0.01))
    result = await late.run("And now?", messages=earlier)
    assert (result.stop_reason, result.final_message) == ("time_limit", "")


@pytest.mark.rules("A4.59")
async def test_a_failure_is_raised_as_what_it_is() -> None:
    @tool(effect="read")
    async def abort() -> str:
        """End the turn."""
        raise AbortTurn("The disk is on fire.")

    refused = StepFailed(error=AuthenticationFailed("The key is wrong."))
    with pytest.raises(AuthenticationFailed, match="The key is wrong"):
        await agent(ScriptedProvider(refused)).run("Hi")
    with pytest.raises(AbortTurn, match="on fire"):
        await agent(ScriptedProvider(call("abort")), abort).run("Hi")


async def test_a_callback_that_breaks_is_raised_as_it_was() -> None:
    async def broken(_: PermissionRequested) -> str:
        raise ZeroDivisionError("mine")

    one = agent(ScriptedProvider(call("write", at="a")), write, mode="ask", answer=broken)
    with pytest.raises(ZeroDivisionError, match="mine"):
        await one.run("Write.")
    assert only_me()


@pytest.mark.rules("A4.41", "A4.45")
def test_making_an_agent_does_no_io_and_needs_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    Agent("openai/gpt-5", instructions="Be brief.", tools=[look], limits=Limits(max_steps=3))
    Agent("nobody/nothing")
    Agent(OpenAIChat("m", base_url="http://127.0.0.1:1"), root="/nowhere")
    with pytest.raises(UsageError):
        Agent("openai/gpt-5", tools=[look, look])


async def test_the_root_may_be_a_path(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("There is tea.")
    provider = ScriptedProvider(call("read_file", path="a.txt"), "Tea.")
    result = await Agent(provider, tools=builtin_tools(), root=tmp_path).run("What is there?")
    assert f"in the folder {tmp_path};" in provider.requests[0].system
    (told,) = result.messages[2].content
    assert isinstance(told, ToolResult)
    assert "There is tea." in block_text(told.content)


async def test_a_model_that_nobody_knows_is_told_at_the_first_run() -> None:
    with pytest.raises(UsageError, match="nobody"):
        await Agent("nobody/nothing").run("Hi")


async def test_a_missing_key_is_told_at_the_first_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(AuthenticationFailed, match="OPENAI_API_KEY"):
        await Agent("openai/gpt-5").run("Hi")


@pytest.mark.rules("A4.56")
async def test_any_function_can_be_a_tool() -> None:
    def shout(text: str) -> str:
        """Shout."""
        return text.upper()

    result = await agent(ScriptedProvider(call("shout", text="hey"), "Done."), shout).run("Shout.")
    (found,) = [b for m in result.messages for b in m.content if isinstance(b, ToolResult)]
    assert block_text(found.content) == "HEY"


@pytest.mark.rules("A5.44", "A5.68")
async def test_in_mode_ask_a_callback_decides_and_without_one_it_is_denied() -> None:
    asked: list[str] = []

    async def answer(request: PermissionRequested) -> str:
        asked.append(request.title)
        return "allow_once"

    def result_of(result: AgentResult[None]) -> str:
        found = [b for m in result.messages for b in m.content if isinstance(b, ToolResult)]
        return block_text(found[0].content)

    allowed = agent(
        ScriptedProvider(call("write", at="a"), "Done."), write, mode="ask", answer=answer
    )
    assert result_of(await allowed.run("Write.")) == "wrote a"
    assert asked == ["write"]
    alone = agent(ScriptedProvider(call("write", at="a"), "Done."), write, mode="ask")
    assert result_of(await alone.run("Write.")).startswith("Nobody is there to allow it")
    rules = [parse_rule("allow write")]
    ruled = agent(ScriptedProvider(call("write", at="a"), "Done."), write, mode="ask", rules=rules)
    assert result_of(await ruled.run("Write.")) == "wrote a"


async def test_what_is_allowed_for_the_session_ends_with_the_run() -> None:
    asked: list[str] = []

    async def answer(request: PermissionRequested) -> str:
        asked.append(request.permission)
        return "allow_session"

    provider = ScriptedProvider(
        call("write", at="a"), call("write", at="a"), "Done.", call("write", at="a"), "Done."
    )
    one = agent(provider, write, mode="ask", answer=answer)
    await one.run("Write twice.")
    assert len(asked) == 1
    await one.run("Write again.")
    assert len(asked) == 2


@pytest.mark.rules("A4.9", "A4.10")
async def test_the_prefix_names_the_agent_and_the_machine(tmp_path: Path) -> None:
    provider = ScriptedProvider("Hi.", "Hi.", "Hi.")
    facts: dict[str, Any] = {"name": "Tow", "instructions": "Be brief.", "root": str(tmp_path)}
    await agent(provider, *find_tools().tools, **facts).run("Hi")
    await agent(provider, **facts).run("Hi")
    await agent(provider, look, **facts).run("Hi")
    with_tools, without, elsewhere = (request.system for request in provider.requests)
    assert with_tools.startswith("You are Tow.\n\nBe brief.\n\n")
    assert str(tmp_path) in with_tools
    assert without == "You are Tow.\n\nBe brief."
    assert elsewhere == without  # a tool that cannot reach the folder tells nobody where it is
    assert system_prompt("Tow", "", MemoryWorkspace()).count("/memory") == 1


@pytest.mark.rules("A4.9", "A4.10", "A5.44")
async def test_a_model_is_told_of_the_mode_and_of_what_programs_may_do(tmp_path: Path) -> None:
    workspace = LocalWorkspace(tmp_path, sandbox="off")
    limits = await workspace.tell_limits()
    told = system_prompt("Tow", "", workspace, mode="plan", limits=limits)
    assert "without a sandbox" in told
    assert "You may only read now." in told
    assert told.index("without a sandbox") < told.index("You may only read")


@pytest.mark.rules("A4.52")
async def test_a_stream_gives_the_events_as_they_come_and_then_the_result() -> None:
    gate = asyncio.Event()
    provider = ScriptedProvider([TextPiece(0, "Hel"), gate, TextPiece(0, "lo.")])
    seen: list[Event] = []
    async with asyncio.timeout(5), agent(provider).stream("Hi") as events:
        async for event in events:
            seen.append(event)
            if isinstance(event, TextDelta):
                assert events.result is None
                gate.set()
    assert isinstance(seen[0], PromptAdmitted)
    assert isinstance(seen[-1], TurnCompleted)
    assert [event.text for event in seen if isinstance(event, TextDelta)] == ["Hel", "lo."]
    assert events.result is not None
    assert events.result.final_message == "Hello."
    assert only_me()


async def test_a_stream_that_is_over_says_so_as_often_as_it_is_asked() -> None:
    async with asyncio.timeout(5), agent(ScriptedProvider("Hi.")).stream("Hi") as events:
        assert [event async for event in events]
        assert [event async for event in events] == []
        assert events.result is not None


async def test_a_stream_raises_a_failure_after_its_last_event() -> None:
    refused = StepFailed(error=AuthenticationFailed("The key is wrong."))
    async with asyncio.timeout(5), agent(ScriptedProvider(refused)).stream("Hi") as events:
        while not isinstance(event := await anext(events), TurnFailed):
            assert not isinstance(event, TurnCompleted)
        for _ in range(2):
            with pytest.raises(AuthenticationFailed):
                await anext(events)
    assert only_me()


@pytest.mark.rules("A4.23", "R25")
async def test_a_stream_that_is_left_early_is_cancelled_and_its_history_takes_a_new_prompt() -> (
    None
):
    one = agent(ScriptedProvider(call("wait"), "never said"), wait)
    async with asyncio.timeout(5), one.stream("Wait.") as events:
        async for event in events:
            if isinstance(event, ToolStarted):
                break
    assert only_me()
    assert events.result is None
    provider = ScriptedProvider("On we go.")
    result = await agent(provider, wait).run("Go on.", messages=events.messages)
    assert result.final_message == "On we go."
    sent = provider.requests[0].messages
    assert [message.role for message in sent] == ["user", "assistant", "tool", "user"]
    (asked,) = [block for block in sent[1].content if isinstance(block, ToolCall)]
    (told,) = [block for block in sent[2].content if isinstance(block, ToolResult)]
    assert (told.call, told.is_error) == (asked.id, True)


@pytest.mark.rules("A4.23", "A4.52")
async def test_a_stream_that_was_left_early_is_read_to_its_end_without_a_result() -> None:
    one = agent(ScriptedProvider(call("wait"), "never said"), wait)
    async with asyncio.timeout(5), one.stream("Wait.") as events:
        async for event in events:
            if isinstance(event, ToolStarted):
                break
    for _ in range(2):
        assert not [event async for event in events if isinstance(event, TurnCompleted)]
    assert events.result is None


@pytest.mark.parametrize("prompt", [None, 3, ["Hi"]])
async def test_a_prompt_that_is_no_text_is_refused(prompt: Any) -> None:
    one = agent(ScriptedProvider("Hi."))
    with pytest.raises(UsageError, match="prompt"):
        await one.run(prompt)
    with pytest.raises(UsageError, match="prompt"):
        one.run_sync(prompt)
    with pytest.raises(UsageError, match="prompt"):
        async with one.stream(prompt):
            pass


@pytest.mark.rules("R25", "S14")
async def test_a_history_with_an_open_call_takes_a_new_prompt() -> None:
    one = agent(ScriptedProvider(call("look", at="a"), "never said"), look)
    async with asyncio.timeout(5), one.stream("Look.") as events:
        async for event in events:
            if isinstance(event, ToolProposed):
                break
        history = events.messages[:2]  # as a process that was killed would have kept it
    provider = ScriptedProvider("On we go.")
    await agent(provider, look).run("Go on.", messages=history)
    (told,) = [
        b for m in provider.requests[0].messages for b in m.content if isinstance(b, ToolResult)
    ]
    assert block_text(told.content) == INTERRUPTED


async def test_leaving_a_stream_by_an_exception_cancels_it_too() -> None:
    with pytest.raises(KeyError):
        async with agent(ScriptedProvider(call("wait")), wait).stream("Wait."):
            raise KeyError
    assert only_me()


async def test_a_cancelled_run_leaves_nothing() -> None:
    started = asyncio.Event()

    @tool(effect="read")
    async def hang() -> str:
        """Hang."""
        started.set()
        await asyncio.Event().wait()
        return "never"

    running = asyncio.create_task(agent(ScriptedProvider(call("hang")), hang).run("Hang."))
    async with asyncio.timeout(5):
        await started.wait()
        running.cancel()
        await asyncio.wait({running})
    assert running.cancelled()
    assert only_me()


@pytest.mark.rules("A4.53")
async def test_a_closed_agent_may_run_again() -> None:
    provider = ScriptedProvider("One.", "Two.")
    one = agent(provider)
    await one.run("Hi")
    await one.aclose()
    await one.aclose()
    assert (await one.run("Hi")).final_message == "Two."
    assert provider.closed == 2
    await Agent("openai/gpt-5").aclose()


async def test_one_agent_runs_many_conversations_at_once() -> None:
    provider = ScriptedProvider(*["Hi."] * 20)
    one = agent(provider)
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        runs = [group.create_task(one.run(f"Prompt {n}")) for n in range(20)]
    for n, done in enumerate(runs):
        result = done.result()
        assert block_text(result.messages[0].content) == f"Prompt {n}"
        assert len(result.messages) == 2


@pytest.mark.rules("A1.16", "A1.18", "A4.41")
async def test_controls_go_with_every_request() -> None:
    provider = ScriptedProvider(call("look", at="a"), "Done.")
    controls = Controls(max_tokens=50, temperature=0.1, top_p=0.9, stop=("x",), thinking_budget=9)
    await agent(provider, look, controls=controls, effort="low").run("Go.")
    for request in provider.requests:
        assert (request.max_tokens, request.temperature, request.top_p) == (50, 0.1, 0.9)
        assert (request.stop, request.thinking_budget, request.effort) == (("x",), 9, "low")


@pytest.mark.rules("A1.4", "A4.46")
async def test_a_prompt_may_be_a_picture_and_words() -> None:
    provider = ScriptedProvider("A cat.")
    blocks = (Image(media_type="image/png", data="eA=="), Text(text="What is this?"))
    result = await agent(provider).run(blocks)
    assert provider.requests[0].messages == (Message("user", blocks),)
    assert result.final_message == "A cat."


@pytest.mark.rules("A4.45")
@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"mode": "yolo"}, "no mode 'yolo'; it is one of: ask, accept_edits, auto, plan"),
        ({"effort": "huge"}, "no effort 'huge'"),
        ({"limits": {"max_steps": 1}}, "give `Limits(...)`"),
        ({"controls": {"top_p": 1}}, "give `Controls(...)`"),
        ({"fallbacks": "p/m"}, "give a list of models"),
        ({"instructions": ["a"]}, "'instructions' can't be"),
        ({"tools": look}, "'tools' can't be"),
    ],
)
def test_what_an_agent_cannot_be_made_of_is_named(given: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageError, match=re.escape(told)):
        Agent(ScriptedProvider(), **given)


@pytest.mark.rules("A4.60")
async def test_an_answer_of_another_type_is_kept_in_the_error() -> None:
    with pytest.raises(ResponseMalformed) as caught:
        await agent(ScriptedProvider("seven", "eight")).run("How many?", output=int)
    assert caught.value.body == "eight"
    assert ".." not in caught.value.message


async def test_a_run_in_a_folder_that_is_gone_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(UsageError, match="The current folder is gone"):
        await Agent(ScriptedProvider("Hi.")).run("Hi")
    with pytest.raises(UsageError, match="The current folder is gone"):
        await Agent(ScriptedProvider("Hi."), root=".").run("Hi")
    result = await Agent(ScriptedProvider("Hi."), root=str(tmp_path)).run("Hi")
    assert result.final_message == "Hi."


@pytest.mark.rules("A4.12")
async def test_a_run_is_reminded_of_the_plan_that_its_model_keeps() -> None:
    lines = [{"id": "1", "content": "Look", "status": "in_progress"}]
    provider = ScriptedProvider(call("todo_write", todos=lines), "well")
    agent = Agent(provider, tools=[todo_write])
    await agent.run("Do it")
    first, second = provider.requests
    assert "Your todos" not in str(first.messages)
    assert "Your todos (change them with todo_write):" in str(second)
    assert "1: Look" in str(second)
