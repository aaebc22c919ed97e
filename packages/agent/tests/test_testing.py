"""The public fakes do what they say."""

import asyncio

import pytest

from towline_agent.errors import RateLimited
from towline_agent.providers.base import Piece, Request, StepAnswer, StepFailed, TextPiece
from towline_agent.providers.transport import HttpCall, TransportFailed
from towline_agent.testing import (
    FakeClock,
    Scripted,
    ScriptedProvider,
    ScriptedTransport,
    call,
    event_stream,
    say,
)
from towline_protocol import Message, SseEvent, Text, ToolCall, UsageError

ASK = Request(model="m", messages=(Message("user", (Text(text="Hi"),)),))
CALL = HttpCall(url="https://x.test")


async def test_a_scripted_provider_plays_one_entry_a_step() -> None:
    failed = StepFailed(error=RateLimited("wait"))
    provider = ScriptedProvider("Hello", call("add", a=1), failed, say("Bye"))
    pieces: list[Piece] = []
    first = await provider.step(ASK, pieces.append)
    assert first.content == (Text(text="Hello"),)
    assert pieces == [TextPiece(0, "Hello")]
    second = await provider.step(ASK, pieces.append)
    (block,) = second.content
    assert isinstance(block, ToolCall)
    assert (block.name, block.arguments) == ("add", '{"a": 1}')
    assert await provider.step(ASK, pieces.append) is failed
    assert isinstance(await provider.step(ASK, pieces.append), StepAnswer)
    assert provider.requests == [ASK] * 4
    with pytest.raises(UsageError):
        await provider.step(ASK, pieces.append)
    await provider.aclose()
    assert (provider.closed, await provider.models()) == (1, ("scripted",))


async def test_a_scripted_provider_can_wait_and_break_in_the_middle() -> None:
    go_on = asyncio.Event()
    failed = StepFailed(error=RateLimited("wait"), streamed=True)
    provider = ScriptedProvider(
        [TextPiece(0, "a"), go_on, TextPiece(0, "b")], [TextPiece(0, "c"), failed]
    )
    pieces: list[Piece] = []
    task = asyncio.create_task(provider.step(ASK, pieces.append))
    await asyncio.sleep(0)
    assert pieces == [TextPiece(0, "a")]
    go_on.set()
    assert (await task).content == (Text(text="ab"),)
    assert await provider.step(ASK, pieces.append) is failed


async def test_a_scripted_transport_plays_streams_documents_and_failures() -> None:
    transport = ScriptedTransport(
        event_stream({"a": 1}),
        b' {"b":2}',
        Scripted(status=500, parts=(b"no", b"pe")),
        Scripted(parts=(b"data: 1\n", b"\ndata: 2", TransportFailed("lost"))),
        b"data: last",
    )
    told: list[bytes] = []

    def on_event(event: SseEvent) -> bool:
        told.append(event.data)
        return False

    assert (await transport.sse(CALL, on_event)).body == b""
    assert told == [b'{"a": 1}', b"[DONE]"]
    assert (await transport.sse(CALL, on_event)).body == b' {"b":2}'
    answer = await transport.sse(CALL, on_event)
    assert (answer.status, answer.body) == (500, b"nope")
    with pytest.raises(TransportFailed):
        await transport.sse(CALL, on_event)
    await transport.sse(CALL, on_event)
    assert told[2:] == [b"1", b"last"]
    assert transport.calls == [CALL] * 5
    with pytest.raises(UsageError):
        await transport.json(CALL)


async def test_a_clock_that_nobody_waits_for() -> None:
    clock = FakeClock(1000)
    await clock.sleep(2.5)
    assert (clock.now_ms(), clock.monotonic(), clock.sleeps) == (3500, 2.5, [2.5])


async def test_a_held_clock_wakes_those_whose_time_has_come() -> None:
    clock = FakeClock(held=True)
    short, long = asyncio.create_task(clock.sleep(1)), asyncio.create_task(clock.sleep(9))
    async with asyncio.timeout(5):
        await clock.wait_for_sleeper()
        clock.advance(1)
        await short
        assert not long.done()
        long.cancel()
        with pytest.raises(asyncio.CancelledError):
            await long
    clock.advance(100)
    assert clock.monotonic() == 101
