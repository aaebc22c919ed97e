"""A provider of one's own, for a model that runs in the same process.

`python examples/own_provider.py "a  b"`. Whoever keeps the promises of `Provider` can be asked: one
result for each step, pieces in order before it, nothing raised.
"""

import asyncio
import sys
from collections.abc import Callable

from towline_agent import Agent, Model, Piece, Request, StepAnswer, StepResult, TextPiece
from towline_protocol import Text, Usage, block_text


class Echo:
    """A model that says what it hears, word by word."""

    def __init__(self) -> None:
        self.model = Model(provider="own", id="echo", price_input=0.0, price_output=0.0)

    async def step(self, request: Request, on_piece: Callable[[Piece], None]) -> StepResult:
        words = block_text(request.messages[-1].content).split()
        for place, word in enumerate(words):
            on_piece(TextPiece(0, word if place == 0 else f" {word}"))
            await asyncio.sleep(0)  # a real model takes its time here
        return StepAnswer(
            content=(Text(text=" ".join(words)),),
            stop_reason="end_turn",
            usage=Usage(input=len(words), output=len(words)),
        )

    async def models(self) -> tuple[str, ...]:
        return (self.model.id,)

    async def aclose(self) -> None:
        """There is nothing to give back."""


result = Agent(Echo()).run_sync(sys.argv[1] if len(sys.argv) > 1 else "Hello there")
print(result.final_message)
print(f"cost: {result.cost}")
