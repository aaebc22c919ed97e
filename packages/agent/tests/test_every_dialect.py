"""Recorded answers of all four dialects say the same however the network cuts them."""

import asyncio
import functools
from collections.abc import Callable
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from towline_agent.providers.anthropic.provider import Anthropic
from towline_agent.providers.base import Piece, Provider, Request, StepAnswer
from towline_agent.providers.gemini.provider import Gemini
from towline_agent.providers.openai_chat.flags import ChatFlags
from towline_agent.providers.openai_chat.provider import OpenAIChat
from towline_agent.providers.openai_responses.provider import OpenAIResponses
from towline_agent.testing import Scripted, ScriptedTransport
from towline_protocol import Message, Text

Stream = tuple[str, str, bytes]
"""The name of a recorded answer, the address that it came from, and its bytes."""
PROVIDERS: dict[str, Callable[..., Provider]] = {
    "openai_chat": functools.partial(OpenAIChat, flags=ChatFlags(replay="reasoning_details")),
    "openai_responses": OpenAIResponses,
    "anthropic": Anthropic,
    "gemini": Gemini,
}
MAX_PIECES: Final = 3000
"""Small pieces of one stream, so that the longest recordings take no seconds."""


async def _read(dialect: str, stream: Stream, chunks: list[bytes]) -> tuple[object, ...]:
    provider = PROVIDERS[dialect](
        "m",
        base_url=stream[1],
        api_key="k",
        transport=ScriptedTransport(*[Scripted(parts=tuple(chunks))] * 10),  # one may pause
    )
    pieces: list[Piece] = []
    request = Request(model="m", messages=(Message("user", (Text(text="Hi"),)),))
    result = await provider.step(request, pieces.append)
    if isinstance(result, StepAnswer):
        return (*pieces, result)
    error = result.error
    told = (type(error), error.message, error.reason, error.retry_after_s, error.body)
    return (*pieces, result.content, result.streamed, result.usage, told)


def read(dialect: str, stream: Stream, chunks: list[bytes]) -> tuple[object, ...]:
    """All that comes of an answer: its pieces in order, then its one result."""
    return asyncio.run(_read(dialect, stream, chunks))


@functools.cache
def read_whole(dialect: str, stream: Stream) -> tuple[object, ...]:
    return read(dialect, stream, [stream[2]])


@st.composite
def chunks_of(draw: st.DrawFn, body: bytes) -> list[bytes]:
    """A body, cut at some places, and perhaps into small pieces from the last of them on."""
    cuts = sorted(draw(st.lists(st.integers(0, len(body)), max_size=30)))
    steps = draw(st.lists(st.integers(1, 90), max_size=8))
    at = cuts[-1] if cuts else 0
    for turn in range(MAX_PIECES if steps else 0):
        at += steps[turn % len(steps)]
        if at >= len(body):
            break
        cuts.append(at)
    return [body[a:b] for a, b in zip([0, *cuts], [*cuts, len(body)], strict=True)]


@pytest.mark.rules("A1.22", "A1.23", "R03")
@pytest.mark.parametrize("dialect", PROVIDERS)
@settings(max_examples=100)
@given(data=st.data())
def test_a_recorded_stream_says_the_same_however_it_is_cut(
    dialect: str, data: st.DataObject, recorded_streams: Callable[[str], list[Stream]]
) -> None:
    stream = data.draw(st.sampled_from(recorded_streams(dialect)))
    chunks = data.draw(chunks_of(stream[2]))
    assert b"".join(chunks) == stream[2]
    assert read(dialect, stream, chunks) == read_whole(dialect, stream), stream[0]
