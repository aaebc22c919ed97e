"""What becomes of a step's calls."""

import asyncio
import logging
from collections.abc import Callable
from threading import Event as ThreadEvent
from threading import Semaphore
from typing import Any

import pytest

from towline_agent.errors import AbortTurn, ToolDenied
from towline_agent.providers.base import Model, StepAnswer
from towline_agent.testing import (
    ScriptedHost,
    ScriptedProvider,
    scripted_plan,
)
from towline_agent.tools.function import THREADS, tool
from towline_agent.tools.tool import Tool
from towline_protocol import (
    CallId,
    Notice,
    ToolCall,
    ToolEnded,
    ToolProposed,
    ToolResult,
    ToolStarted,
    TurnCompleted,
    TurnFailed,
    Usage,
    block_text,
)


def wants(*calls: tuple[str, str], stop_reason: str = "tool_calls") -> StepAnswer:
    """An answer with these calls: names and arguments as the model wrote them."""
    content = tuple(
        ToolCall(id=CallId(""), name=name, arguments=arguments) for name, arguments in calls
    )
    return StepAnswer(content=content, stop_reason=stop_reason, usage=Usage(input=1, output=1))


async def run(
    answer: StepAnswer, *tools: Tool | Callable[..., Any], model: Model | None = None, **facts: Any
) -> ScriptedHost:
    """A turn of two steps: the calls, then words."""
    host = ScriptedHost()
    await host.run(scripted_plan(ScriptedProvider(answer, "Done.", model=model), *tools, **facts))
    return host


def ends(host: ScriptedHost) -> list[ToolEnded]:
    """How the calls ended, in the order in which the model asked for them."""
    order = [event.call for event in host.events if isinstance(event, ToolProposed)]
    found = {event.call: event for event in host.events if isinstance(event, ToolEnded)}
    return [found[call_id] for call_id in order]


def said(ended: ToolEnded) -> str:
    return block_text(ended.content)


@tool(effect="read")
async def look(at: str) -> str:
    """Look at something."""
    return f"{at} is there"


@pytest.mark.rules("A4.14", "A4.15")
async def test_reads_run_together_and_their_results_keep_the_models_order() -> None:
    begun: list[int] = []
    gates = [asyncio.Event() for _ in range(3)]

    @tool(effect="read")
    async def read(n: int) -> str:
        """Read, the last one first."""
        begun.append(n)
        if n < 2:
            async with asyncio.timeout(5):
                await gates[n + 1].wait()
        gates[n].set()
        return f"result {n}"

    provider = ScriptedProvider(wants(*[("read", f'{{"n": {n}}}') for n in range(3)]), "Done.")
    host = ScriptedHost()
    await host.run(scripted_plan(provider, read))
    finished = [said(event) for event in host.events if isinstance(event, ToolEnded)]
    assert begun == [0, 1, 2]
    assert finished == ["result 2", "result 1", "result 0"]
    results = [b for b in provider.requests[1].messages[-1].content if isinstance(b, ToolResult)]
    assert [block_text(result.content) for result in results] == [
        "result 0",
        "result 1",
        "result 2",
    ]


@pytest.mark.rules("A4.14")
async def test_at_most_sixteen_reads_run_at_once() -> None:
    go_on = asyncio.Event()
    running: list[int] = []

    @tool(effect="read")
    async def read() -> str:
        """Read."""
        running.append(1)
        await go_on.wait()
        running.pop()
        return "read"

    turn = asyncio.create_task(run(wants(*[("read", "{}")] * 40), read))
    async with asyncio.timeout(5):
        for _ in range(20):  # more turns of the loop than it takes to start them all
            await asyncio.sleep(0)
        assert len(running) == 16
        go_on.set()
        host = await turn
    assert [event.status for event in ends(host)] == ["completed"] * 40


@pytest.mark.rules("A4.14")
async def test_what_may_change_something_runs_alone_in_order_after_the_reads() -> None:
    running: list[str] = []
    order: list[str] = []

    def make(effect: str) -> Tool:
        @tool(name=effect, effect=effect)
        async def go() -> str:
            """Go, alone."""
            assert running == []
            running.append(effect)
            await asyncio.sleep(0)
            order.append(effect)
            running.remove(effect)
            return effect

        return go

    tools = [make(effect) for effect in ("write", "exec", "network", "own")]
    names = [("write", "{}"), ("look", '{"at": "a"}'), ("own", "{}"), ("exec", "{}")]
    host = await run(wants(*names, ("network", "{}"), ("write", "{}")), look, *tools)
    finished = [event.call for event in host.events if isinstance(event, ToolEnded)]
    proposed = [event.call for event in host.events if isinstance(event, ToolProposed)]
    assert order == ["write", "own", "exec", "network", "write"]
    assert finished == [proposed[1], proposed[0], *proposed[2:]]


async def test_all_calls_of_a_step_are_proposed_before_one_runs() -> None:
    host = await run(wants(("look", '{"at": "a"}'), ("look", '{"at": "b"}')), look)
    names = [type(event) for event in host.events if isinstance(event, ToolProposed | ToolStarted)]
    assert names == [ToolProposed, ToolProposed, ToolStarted, ToolStarted]


BAD_CALLS = {
    "unknown tool": ("loook", '{"at": "a"}', "There is no tool 'loook'. Did you mean 'look'?"),
    "broken JSON": ("look", '{"at": "a"', "not valid"),
    "no object": ("look", '["a"]', "a JSON object is expected"),
    "missing parameter": ("look", "{}", "`at`"),
    "wrong type": ("look", '{"at": 3}', "string"),
    "unknown parameter": ("look", '{"at": "a", "how": "well"}', "`how`"),
}


@pytest.mark.rules("A4.13", "A4.16", "A4.17", "R17")
@pytest.mark.parametrize("what", BAD_CALLS)
async def test_a_call_that_cannot_run_is_told_why_and_the_turn_goes_on(what: str) -> None:
    name, arguments, words = BAD_CALLS[what]
    host = await run(wants((name, arguments)), look)
    (ended,) = ends(host)
    assert (ended.status, ended.is_error, ended.duration_ms) == ("failed", True, 0)
    assert words in said(ended)
    assert not any(isinstance(event, ToolStarted) for event in host.events)
    assert isinstance(host.events[-1], TurnCompleted)


async def test_without_any_tool_a_call_is_told_so() -> None:
    (ended,) = ends(await run(wants(("look", "{}"))))
    assert "no tools at all" in said(ended)


@pytest.mark.rules("A4.16", "A4.18")
async def test_an_exception_is_told_by_its_class_and_its_text_goes_to_the_log_alone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    @tool(effect="read")
    async def fail() -> str:
        """Fail."""
        raise ValueError("sk-secret is no key")

    host = await run(wants(("fail", "{}")), fail)
    (ended,) = ends(host)
    assert (ended.status, ended.is_error) == ("failed", True)
    assert said(ended) == "fail failed with ValueError."
    assert not any("sk-secret" in repr(event) for event in host.events)
    (record,) = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert record.exc_info is not None
    assert "sk-secret" in caplog.text


@pytest.mark.rules("A4.16")
async def test_an_error_that_is_meant_for_the_model_is_told_as_it_is() -> None:
    @tool(effect="read")
    async def open_door() -> str:
        """Open a door."""
        raise ToolDenied("The door is locked; ask for the key.")

    (ended,) = ends(await run(wants(("open_door", "{}")), open_door))
    assert (ended.status, said(ended)) == ("failed", "The door is locked; ask for the key.")


@pytest.mark.rules("A4.16")
async def test_a_tool_that_takes_too_long_is_cut_and_told_so() -> None:
    @tool(effect="read", timeout_s=0.01)
    async def wait() -> str:
        """Wait."""
        await asyncio.Event().wait()
        return "never"

    (ended,) = ends(await run(wants(("wait", "{}")), wait))
    assert (ended.status, said(ended)) == ("failed", "wait took longer than 0.01 s.")


async def test_a_timeout_of_the_tools_own_is_not_taken_for_ours() -> None:
    @tool(effect="read")
    async def fetch() -> str:
        """Fetch."""
        raise TimeoutError("the peer")

    (ended,) = ends(await run(wants(("fetch", "{}")), fetch))
    assert said(ended) == "fetch failed with TimeoutError."


@pytest.mark.rules("A4.16", "A4.26")
async def test_a_thread_that_takes_too_long_ends_unknown(pass_hour: Callable[[], None]) -> None:
    release = ThreadEvent()
    loop = asyncio.get_running_loop()

    @tool(timeout_s=60)
    def wait() -> str:
        """Wait in a thread."""
        loop.call_soon_threadsafe(pass_hour)  # not before it runs: one that never began ends failed
        release.wait(10)
        return "late"

    host = ScriptedHost()
    try:
        plan = scripted_plan(ScriptedProvider(wants(("wait", "{}")), "Done."), wait)
        await host.run(plan, within_s=3610)  # 10 s after that hour
    finally:
        release.set()
    (ended,) = ends(host)
    assert ended.status == "unknown"
    assert "longer than 60 s" in said(ended)
    assert "still running in a thread" in said(ended)


@pytest.mark.parametrize("part", ["title", "subject", "preview", "verify"])
async def test_a_tool_whose_own_words_fail_fails_and_the_turn_goes_on(part: str) -> None:
    def fail(_: dict[str, Any]) -> Any:
        raise KeyError("secret")

    facts: dict[str, Any] = {part: fail}

    @tool(**facts)
    async def odd() -> str:
        """Do something odd."""
        return "done"

    host = await run(wants(("odd", "{}"), ("look", '{"at": "a"}')), odd, look)
    assert [event.status for event in ends(host)] == ["failed", "completed"]
    assert said(ends(host)[0]) == "odd failed with KeyError."
    assert isinstance(host.events[-1], TurnCompleted)


@pytest.mark.rules("A4.13", "A2.21")
async def test_calls_of_an_answer_that_was_cut_by_length_never_run() -> None:
    calls = wants(("look", '{"at": "a"}'), ("look", '{"at": '), stop_reason="max_tokens")
    host = await run(calls, look)
    for ended in ends(host):
        assert ended.status == "failed"
        assert "cut at the token limit" in said(ended)
    assert not any(isinstance(event, ToolStarted) for event in host.events)
    assert isinstance(host.events[-1], TurnCompleted)
    assert host.events[-1].stop_reason == "end_turn"


async def test_a_model_that_gets_one_call_a_step_has_the_others_cut() -> None:
    model = Model(provider="s", id="small", one_call_per_step=True)
    host = await run(wants(*[("look", '{"at": "a"}')] * 3), look, model=model)
    assert len(ends(host)) == 1
    (notice,) = [event for event in host.events if isinstance(event, Notice)]
    assert notice.message.startswith("2 further calls")
    calls = [b for m in host.transcript.messages() for b in m.content if isinstance(b, ToolCall)]
    assert len(calls) == 1


@pytest.mark.rules("A4.59")
async def test_a_tool_ends_the_turn_as_failed_and_what_comes_after_it_does_not_run() -> None:
    ran: list[str] = []

    @tool
    async def abort() -> str:
        """End the turn."""
        raise AbortTurn("The licence has run out; renew it.")

    @tool
    async def write() -> str:
        """Write."""
        ran.append("write")
        return "written"

    host = await run(wants(("abort", "{}"), ("write", "{}")), abort, write)
    assert ran == []
    assert [event.status for event in ends(host)] == ["failed", "cancelled"]
    end = host.events[-1]
    assert isinstance(end, TurnFailed)
    assert end.fault.message == "The licence has run out; renew it."


@pytest.mark.rules("A4.59")
async def test_a_read_that_ends_the_turn_lets_the_other_reads_end_and_nothing_be_written() -> None:
    ran: list[str] = []

    @tool(effect="read")
    async def abort() -> str:
        """End the turn."""
        raise AbortTurn("Enough.")

    @tool
    async def write() -> str:
        """Write."""
        ran.append("write")
        return "written"

    answer = wants(("write", "{}"), ("abort", "{}"), ("look", '{"at": "a"}'))
    host = await run(answer, abort, write, look)
    assert ran == []
    assert [event.status for event in ends(host)] == ["cancelled", "failed", "completed"]


@pytest.mark.rules("A4.16", "A4.25", "A4.26")
async def test_a_call_that_found_no_thread_says_that_it_never_began() -> None:
    begun, release = Semaphore(0), ThreadEvent()
    ran: list[str] = []

    def hang() -> None:
        begun.release()
        release.wait(10)

    @tool(timeout_s=0.01)
    def late() -> None:
        """Run in a thread."""
        ran.append("late")

    hanging = [asyncio.create_task(THREADS.run(hang)) for _ in range(THREADS.limit)]
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(5):
            for _ in hanging:
                await loop.run_in_executor(None, begun.acquire)
            (ended,) = ends(await run(wants(("late", "{}")), late))
    finally:
        release.set()
        await asyncio.gather(*hanging)
    assert ended.status == "failed"
    assert said(ended) == (
        "late never began: all 16 threads for functions that block are busy with calls that do not "
        "end. late took longer than 0.01 s."
    )
    assert ran == []


@pytest.mark.rules("A4.16", "A4.28")
@pytest.mark.parametrize("waits", [True, False])
async def test_a_call_that_cancels_its_own_task_fails_and_the_turn_goes_on(waits: bool) -> None:
    @tool(effect="read")
    async def quit_now() -> str:
        """Cancel the task it runs in."""
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        if waits:
            await asyncio.sleep(0)
        return "returned"

    host = await run(wants(("quit_now", "{}"), ("look", '{"at": "a"}')), quit_now, look)
    first, second = ends(host)
    if waits:
        assert (first.status, said(first)) == ("failed", "quit_now was cancelled by its own code.")
    else:
        assert (first.status, said(first)) == ("completed", "returned")
    assert said(second) == "a is there"
    assert isinstance(host.events[-1], TurnCompleted)
