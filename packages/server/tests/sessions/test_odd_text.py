"""Text that no UTF-8 can hold, such as file names of other systems: it must not harm the log."""

from collections.abc import Callable
from pathlib import Path

import pytest

from towline_agent import Model, Piece, Request, StepAnswer, StepResult, TextPiece, tool
from towline_agent.testing import ScriptedProvider, call
from towline_protocol import Text, ToolEnded, Usage, block_text
from towline_server.testing import AppClient, open_test_app, ran


@pytest.mark.rules("C1.3", "C1.23")
async def test_a_tool_that_answers_with_half_a_surrogate_pair_ends_and_so_does_the_turn(
    tmp_path: Path,
) -> None:
    @tool(name="names", effect="read")
    async def names() -> str:
        """File names."""
        return b"caf\xe9.txt".decode("utf-8", "surrogateescape")

    provider = ScriptedProvider(call("names"), "I see", "well")
    async with open_test_app(provider, root=tmp_path, tools=[names]) as built:
        client = AppClient(built)
        session = await client.create()
        await client.prompt(session, "look")
        await client.until(session, ran(1))
        await client.prompt(session, "and now?")
        view = await client.until(session, ran(2))
        log = await client.log(session)
    (ended,) = [e.event for e in log if isinstance(e.event, ToolEnded)]
    assert "caf" in block_text(ended.content)  # pyright: ignore[reportArgumentType] - blocks of text
    assert block_text(view.messages[-1].content) == "well"
    assert [envelope.seq for envelope in log] == list(range(1, len(log) + 1))


class Odd:
    """A provider that says what cannot be said."""

    model = Model(provider="scripted", id="odd")

    async def step(self, request: Request, on_piece: Callable[[Piece], None]) -> StepResult:
        del request
        on_piece(TextPiece(0, "half \ud83d"))
        content = (Text(text="half \ud83d"),)
        return StepAnswer(content=content, stop_reason="end_turn", usage=Usage())

    async def models(self) -> tuple[str, ...]:
        return ()

    async def aclose(self) -> None:
        pass


@pytest.mark.rules("C1.3")
async def test_a_model_that_says_half_a_surrogate_pair_is_heard(tmp_path: Path) -> None:
    async with open_test_app(Odd(), root=tmp_path) as built:
        client = AppClient(built)
        session = await client.create()
        for count in (1, 2):
            await client.prompt(session, "speak")
            view = await client.until(session, ran(count))
    assert view.last_turn is not None
    assert view.last_turn.outcome == "completed"
    assert block_text(view.messages[-1].content).startswith("half ")
