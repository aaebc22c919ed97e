"""What is told of a call: its title, its output, its result."""

from collections.abc import Callable
from typing import Any

import pytest

from towline_agent.errors import OutcomeUnknown, ToolDenied
from towline_agent.host import Clock
from towline_agent.limits import MAX_RESULT_CHARS
from towline_agent.providers.base import Model, StepAnswer
from towline_agent.testing import FakeClock, ScriptedHost, ScriptedProvider, scripted_plan
from towline_agent.tools.function import tool
from towline_agent.tools.tool import Tool, ToolContext, ToolOutput
from towline_protocol import (
    CallId,
    FileChange,
    FilesChanged,
    Image,
    Process,
    Text,
    ToolCall,
    ToolEnded,
    ToolOutputDelta,
    ToolProgress,
    ToolProposed,
    ToolResult,
    ToolStarted,
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


@pytest.mark.rules("A4.19", "A4.20", "R49")
@pytest.mark.parametrize(
    ("window", "cap"), [(None, MAX_RESULT_CHARS), (1_000_000, MAX_RESULT_CHARS), (8192, 4915)]
)
async def test_a_long_result_is_cut_in_its_middle(window: int | None, cap: int) -> None:
    @tool(effect="read")
    async def build(context: ToolContext) -> str:
        """Build."""
        assert context.result_limit == cap
        return "begin" + "x" * 90_000 + "error: build failed"

    model = Model(provider="s", id="m", window=window)
    (ended,) = ends(await run(wants(("build", "{}")), build, model=model))
    assert cap - 64 < len(said(ended)) <= cap
    assert said(ended).startswith("begin")
    assert said(ended).endswith("error: build failed")
    assert "characters left out" in said(ended)


@pytest.mark.rules("A1.12")
async def test_a_result_that_the_model_is_told_in_part_is_kept_whole() -> None:
    @tool(effect="read")
    async def build() -> list[Text]:
        """Build."""
        return [Text(text="x" * 40_000), Text(text="y" * 40_000)]

    kept: list[tuple[str, str]] = []

    def keep(text: str, name: str) -> str | None:
        kept.append((text, name))
        return "a hash" if len(kept) == 1 else None

    calls = wants(("build", "{}"), ("look", '{"at": "home"}'), ("build", "{}"))
    first, short, second = ends(await run(calls, build, look, keep=keep))
    assert [text for text, _ in kept] == ["x" * 40_000 + "y" * 40_000] * 2
    assert [name for _, name in kept] == [f"{e.call}-output.txt" for e in (first, second)]
    assert (first.files, short.files, second.files) == (("a hash",), (), ())


@pytest.mark.rules("A4.19", "S33")
async def test_the_cap_holds_for_all_blocks_of_a_result_together() -> None:
    picture = Image(media_type="image/png", data="AAAA")

    @tool(effect="read")
    async def many() -> list[Text | Image]:
        """Give many blocks."""
        return [*[Text(text=f"{n:04}" * 100) for n in range(1000)], picture]

    (ended,) = ends(await run(wants(("many", "{}")), many))
    assert len(said(ended)) <= MAX_RESULT_CHARS
    assert said(ended).startswith("0000")
    assert said(ended).endswith("0999")
    assert said(ended).count("characters left out") == 1
    assert ended.content[-1] == picture


@pytest.mark.rules("S33")
async def test_an_empty_result_is_a_result() -> None:
    @tool(effect="read")
    async def nothing() -> ToolOutput:
        """Give nothing."""
        return ToolOutput(content=())

    provider = ScriptedProvider(wants(("nothing", "{}")), "Done.")
    host = ScriptedHost()
    await host.run(scripted_plan(provider, nothing))
    (ended,) = ends(host)
    assert (ended.status, ended.content) == ("completed", ())
    (result,) = provider.requests[1].messages[-1].content
    assert result == ToolResult(call=ended.call, content=())


async def test_long_errors_are_cut_too_and_broken_characters_mended() -> None:
    @tool(effect="read")
    async def fail() -> str:
        """Fail at length."""
        raise ToolDenied("\ud800" + "x" * 90_000)

    (ended,) = ends(await run(wants(("fail", "{}")), fail))
    assert len(said(ended)) <= MAX_RESULT_CHARS
    assert said(ended).encode().startswith("\ufffd".encode())


async def test_what_a_tool_shows_while_it_runs_is_told_until_it_ends() -> None:
    kept: list[ToolContext] = []

    @tool(effect="read")
    async def talk(context: ToolContext) -> str:
        """Talk."""
        kept.append(context)
        context.output("a😀")
        context.output("")
        context.output("b\ud800")
        context.progress("half", 0.5)
        return "talked"

    host = await run(wants(("talk", "{}")), talk)
    kept[0].output("late")
    kept[0].progress("late")
    (ended,) = ends(host)
    shown = [event for event in host.events if isinstance(event, ToolOutputDelta | ToolProgress)]
    assert shown == [
        ToolOutputDelta(call=ended.call, at=0, text="a😀"),
        ToolOutputDelta(call=ended.call, at=2, text="b\ufffd"),
        ToolProgress(call=ended.call, text="half", fraction=0.5),
    ]


@pytest.mark.rules("C5.5", "C5.6")
async def test_a_tool_that_starts_a_program_tells_the_process_before_its_effect() -> None:
    program = Process(pid=7, group=7, started="now")
    settled: list[int] = []

    @tool(effect="exec", journals=True)
    async def build(context: ToolContext) -> str:
        """Build."""
        await context.start(program)
        settled.append(host.settled)
        return "built"

    host = ScriptedHost()
    await host.run(scripted_plan(ScriptedProvider(wants(("build", "{}")), "Done."), build))
    starts = [event for event in host.events if isinstance(event, ToolStarted)]
    assert starts == [ToolStarted(call=ends(host)[0].call, process=program)]
    assert settled == [host.events.index(starts[0]) + 1]


async def test_files_that_a_tool_changed_are_told_before_its_end() -> None:
    changes = (FileChange(path="a.py", kind="changed"),)

    @tool
    async def edit() -> ToolOutput:
        """Edit."""
        return ToolOutput(content=(Text(text="edited"),), changes=changes)

    host = await run(wants(("edit", "{}")), edit)
    (ended,) = ends(host)
    place = host.events.index(FilesChanged(call=ended.call, changes=changes))
    assert isinstance(host.events[place + 1], ToolEnded)


async def test_a_result_that_a_tool_calls_an_error_is_a_failed_call() -> None:
    @tool(effect="read")
    async def check() -> ToolOutput:
        """Check."""
        return ToolOutput(content=(Text(text="3 tests failed"),), is_error=True)

    (ended,) = ends(await run(wants(("check", "{}")), check))
    assert (ended.status, ended.is_error, said(ended)) == ("failed", True, "3 tests failed")


@pytest.mark.rules("C5.5")
async def test_a_tool_that_cannot_tell_its_outcome_ends_unknown() -> None:
    @tool(name="send")
    async def send() -> str:
        """Send it."""
        raise OutcomeUnknown("The line went down; it may or may not have been sent.")

    (ended,) = ends(await run(wants(("send", "{}")), send))
    assert (ended.status, ended.is_error) == ("unknown", True)
    assert said(ended) == "The line went down; it may or may not have been sent."


async def test_a_call_tells_its_title_effect_and_how_long_it_took() -> None:
    clock: Clock = FakeClock()

    @tool(title=lambda arguments: f"Write {arguments['at']}" + "!" * 300)
    async def write(at: str) -> str:
        """Write."""
        await clock.sleep(1.25)
        return at

    host = await run(wants(("write", '{"at": "a"}')), write, clock=clock)
    (proposed,) = [event for event in host.events if isinstance(event, ToolProposed)]
    assert (proposed.tool, proposed.effect) == ("write", "write")
    assert proposed.title.startswith("Write a!")
    assert len(proposed.title) == 200
    assert proposed.arguments == '{"at": "a"}'
    assert ends(host)[0].duration_ms == 1250


async def test_a_calls_arguments_stay_as_the_model_wrote_them() -> None:
    host = ScriptedHost()
    spaced = wants(("look", '{ "at" :  "\\u0061" }'))
    provider = ScriptedProvider(spaced, "Done.")
    await host.run(scripted_plan(provider, look))
    assert said(ends(host)[0]) == "a is there"
    sent = provider.requests[1].messages[1].content[0]
    assert isinstance(sent, ToolCall)
    assert sent.arguments == '{ "at" :  "\\u0061" }'
