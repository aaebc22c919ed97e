"""Odd things that callers, tools and providers give: none slips by a rule or breaks a run raw."""

import enum
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from towline_agent.agent import Agent
from towline_agent.errors import AbortTurn, ModelNotFound, ProviderError, QuotaExhausted
from towline_agent.permissions.part import Part, read_subject
from towline_agent.permissions.rules import parse_rule
from towline_agent.providers.base import Model, StepFailed
from towline_agent.testing import ScriptedProvider, call
from towline_agent.tools.builtin import builtin_tools
from towline_agent.tools.function import make_tool, tool
from towline_agent.tools.tool import Look
from towline_protocol import (
    Event,
    Limits,
    Message,
    ToolResult,
    TowlineError,
    TurnFailed,
    UsageError,
    block_text,
    encode,
)


class Kind(str, enum.Enum):  # noqa: UP042 - a `StrEnum` writes itself as its value
    """A text by its class, but it writes itself as `Kind.FAST`."""

    FAST = "fast"


class Loud(str):
    """A text that writes itself in another way."""

    __slots__ = ()

    def __str__(self) -> str:
        return self.upper()


async def wait() -> str:
    return "fast"


def itself(kind: Kind) -> object:
    return kind


def loud(kind: Kind) -> object:
    return Loud(kind.value)


def listed(kind: Kind) -> object:
    return [kind]


def results(messages: tuple[Message, ...]) -> list[str]:
    blocks = [block for message in messages for block in message.content]
    return [block_text(block.content) for block in blocks if isinstance(block, ToolResult)]


@pytest.mark.rules("A5.47")
@pytest.mark.parametrize(
    ("given", "text"),
    [
        ("fast", "fast"),
        (Kind.FAST, "fast"),
        (Loud("fast"), "fast"),
        (enum.IntEnum("Level", ["LOW"]).LOW, "1"),  # pyright: ignore[reportAttributeAccessIssue]
        (3, "3"),
        (2.5, "2.5"),
        (None, "None"),
        (date(2026, 1, 2), "2026-01-02"),
        (Path("a/b"), "a/b"),
        ("\ud83d\ude00\ud800", "\N{GRINNING FACE}\N{REPLACEMENT CHARACTER}"),
    ],
)
def test_a_subject_is_the_text_that_a_rule_would_name(given: object, text: str) -> None:
    found = read_subject(given)
    assert (type(found), found) == (str, text)


@pytest.mark.rules("A5.47")
@pytest.mark.parametrize("given", [b"fast", ["fast"], ("fast",), {"fast": 1}, {"fast"}])
def test_a_subject_that_no_rule_could_name_is_refused(given: object) -> None:
    with pytest.raises(UsageError, match="return a text"):
        read_subject(given)


@pytest.mark.rules("A5.47", "A5.42")
@pytest.mark.parametrize("make", [itself, loud, listed])
async def test_no_odd_subject_slips_by_a_rule_that_denies(make: Callable[[Kind], Any]) -> None:
    ran: list[Kind] = []

    @tool(subject=lambda given: make(given["kind"]))
    async def go(kind: Kind) -> None:
        """Go."""
        ran.append(kind)

    provider = ScriptedProvider(call("go", kind="fast"), "Done.")
    await Agent(provider, tools=[go], rules=[parse_rule("deny go(fast)")]).run("Go.")
    assert ran == []


async def test_a_subject_of_an_async_function_runs_nothing() -> None:
    ran: list[int] = []
    waits: list[Any] = []

    def subject(_: dict[str, Any]) -> Any:
        waits.append(wait())
        return waits[-1]

    @tool(subject=subject)
    async def go() -> None:
        """Go."""
        ran.append(1)

    provider = ScriptedProvider(call("go"), "Done.")
    result = await Agent(provider, tools=[go]).run("Go.")
    assert results(result.messages) == ["go failed with UsageError."]
    assert ran == []
    for waiting in waits:
        waiting.close()


@pytest.mark.rules("A5.65")
@pytest.mark.parametrize(
    "found", [Look(parts=()), Look(parts=(Part(subject=cast("str", 5)),)), "x", None]
)
async def test_a_look_that_is_none_runs_nothing_and_the_log_says_why(
    found: Any, caplog: pytest.LogCaptureFixture
) -> None:
    ran: list[int] = []

    async def look(*_: object) -> Any:
        return found

    @tool(look=look)
    async def go() -> None:
        """Go."""
        ran.append(1)

    result = await Agent(ScriptedProvider(call("go"), "Done."), tools=[go]).run("Go.")
    assert results(result.messages) == ["go failed with UsageError."]
    assert "return a `Look` of one part or more" in caplog.text
    assert ran == []


@pytest.mark.rules("A5.46", "A5.48")
@pytest.mark.parametrize("named", ["there", "link"])
async def test_a_rule_names_a_root_behind_a_link_by_both_its_names(
    tmp_path: Path, named: str
) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "a.txt").write_text("secret words")
    (tmp_path / "link").symlink_to("there")
    provider = ScriptedProvider(call("read_file", path="a.txt"), "Done.")
    rule = parse_rule(f"deny read_file({tmp_path}/{named}/**)")
    made = Agent(provider, tools=builtin_tools(), root=str(tmp_path / "link"), rules=[rule])
    (told,) = results((await made.run("Read.")).messages)
    assert told.startswith("Denied by rule")


async def test_a_root_above_a_link_is_above_the_folder_that_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "far" / "inner").mkdir(parents=True)
    (tmp_path / "far" / "a.txt").write_text("far")
    (tmp_path / "a.txt").write_text("near")
    (tmp_path / "link").symlink_to("far/inner")
    provider = ScriptedProvider(call("read_file", path="a.txt"), "Done.")
    made = Agent(provider, tools=builtin_tools(), root=f"{tmp_path}/link/..")
    (told,) = results((await made.run("Read.")).messages)
    assert told.endswith("far")


@pytest.mark.rules("A4.52")
async def test_a_block_of_a_stream_is_entered_once() -> None:
    provider = ScriptedProvider("One.", "Two.")
    block = Agent(provider).stream("Go.")
    async with block as events:
        assert [event async for event in events]
    with pytest.raises(UsageError, match=r"call `agent\.stream\(\.\.\.\)` again"):
        async with block:
            pass
    assert len(provider.requests) == 1


@pytest.mark.rules("A1.24")
async def test_half_a_character_in_an_error_can_be_told_to_a_client() -> None:
    @tool
    async def go() -> None:
        """Go."""
        raise AbortTurn("no \ud800 more")

    events: list[Event] = []

    async def read() -> None:
        async with Agent(ScriptedProvider(call("go")), tools=[go]).stream("Go.") as stream:
            async for event in stream:
                events.append(event)  # noqa: PERF401 - those before the error count

    with pytest.raises(AbortTurn):
        await read()
    assert isinstance(events[-1], TurnFailed)
    assert events[-1].fault.message == "no ? more"
    for event in events:
        encode(event)


@pytest.mark.rules("A3.35")
async def test_an_error_that_comes_again_is_no_cause_of_its_own_cause() -> None:
    gone = ModelNotFound("There is none.", reason="model_not_found")
    spent = QuotaExhausted("No credit.", reason="quota")
    models = [
        ScriptedProvider(StepFailed(error=error), model=Model(provider="scripted", id=str(number)))
        for number, error in enumerate((gone, spent, gone))
    ]
    with pytest.raises(ProviderError) as caught:
        await Agent(models[0], fallbacks=models[1:]).run("Hi")
    assert caught.value is gone
    assert (gone.__cause__, spent.__cause__) == (None, gone)


@pytest.mark.rules("A4.53")
async def test_a_provider_that_does_not_close_keeps_no_other_open() -> None:
    closed: list[str] = []

    class Stuck(ScriptedProvider):
        async def aclose(self) -> None:
            closed.append(self.model.id)
            raise RuntimeError(self.model.id)

    first, second = (Stuck("Hi.", model=Model(provider="x", id=word)) for word in ("one", "two"))
    made = Agent(first, fallbacks=[second])
    await made.run("Hi")
    with pytest.raises(RuntimeError):
        await made.aclose()
    assert sorted(closed) == ["one", "two"]


@pytest.mark.rules("A4.8", "A4.49")
async def test_a_price_that_is_no_number_is_an_unknown_one() -> None:
    model = Model(provider="scripted", id="odd", price_input=float("nan"), price_output=1.0)
    result = await Agent(ScriptedProvider("Hi.", model=model)).run("Hi")
    assert result.cost is None


def test_the_least_of_limits_does_not_offer_to_be_none() -> None:
    with pytest.raises(TowlineError, match="give a whole number") as caught:
        Agent(
            ScriptedProvider(),
            limits=msgspec.structs.replace(Limits(), max_steps=cast("int", None)),
        )
    assert "for none" not in caught.value.message


@pytest.mark.rules("A4.45")
@pytest.mark.parametrize("name", [5, b"go", "", "a b"])
def test_a_name_that_no_provider_takes_is_refused(name: Any) -> None:
    with pytest.raises(UsageError, match="can't be a tool's name"):
        make_tool(name, "Go.", {"type": "object", "properties": {}}, wait)


@pytest.mark.rules("A4.60")
async def test_an_answer_of_a_type_that_is_not_there_is_refused() -> None:
    with pytest.raises(UsageError, match="An answer can't be of type"):
        await Agent(ScriptedProvider("Hi.")).run("Hi", output=cast("Any", list)["Nowhere"])
