"""What the readers of a session are shown, as they want it."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from towline_client import Client, Session
from towline_client.testing import ScriptedServer, ScriptedTransport
from towline_protocol import (
    Envelope,
    MessageEnded,
    MessageId,
    MessageStarted,
    Presentation,
    Text,
    TextDelta,
    Thinking,
    ThinkingDelta,
    TurnId,
)

_TURN = TurnId("trn_1")


@asynccontextmanager
async def _open(
    server: ScriptedServer, presentation: Presentation | None = None
) -> AsyncGenerator[Session]:
    client = Client("", "token", transport=ScriptedTransport(server))
    async with asyncio.timeout(10), server, client:
        id_ = server.add_session().id
        yield await client.open(id_, presentation=presentation)


def _write(server: ScriptedServer, name: str, thought: str, said: str) -> None:
    """Begin a message with a thought and words."""
    (log,) = server.sessions.values()
    message = MessageId(name)
    log.emit(MessageStarted(message=message, role="assistant"), _TURN)
    log.emit(ThinkingDelta(message=message, block=0, at=0, text=thought), _TURN)
    log.emit(TextDelta(message=message, block=1, at=0, text=said), _TURN)


def _end(server: ScriptedServer, name: str, thought: str, said: str) -> None:
    (log,) = server.sessions.values()
    content = (Thinking(text=thought), Text(text=said))
    log.emit(MessageEnded(message=MessageId(name), content=content), _TURN)


async def _shown(session: Session, server: ScriptedServer) -> list[tuple[str, ...]]:
    """The texts of all messages, finished and open, once the view is as far as the log."""
    (log,) = server.sessions.values()
    for _ in range(100):
        await asyncio.sleep(0)
    assert session.view.seq == log.view.seq
    entries = (*session.view.messages, *session.view.open_messages)
    return [
        tuple(block.text for block in entry.content if isinstance(block, (Text, Thinking)))
        for entry in entries
    ]


async def test_the_presentation_can_be_chosen_when_the_session_is_opened() -> None:
    server = ScriptedServer()
    async with _open(server, Presentation(text="final", thinking="off")) as session:
        _write(server, "msg_1", "hm", "Hel")
        assert await _shown(session, server) == [("",)]
        _end(server, "msg_1", "hm", "Hello")
        assert await _shown(session, server) == [("Hello",)]


async def test_the_presentation_changes_from_the_next_block_on_and_for_what_is_shown_alone() -> (
    None
):
    server = ScriptedServer()
    async with _open(server) as session:
        assert session.presentation == Presentation()
        _write(server, "msg_1", "hm", "Hel")
        assert await _shown(session, server) == [("hm", "Hel")]
        session.presentation = Presentation(text="final", thinking="final")
        assert session.presentation.text == "final"
        assert await _shown(session, server) == [("hm", "Hel")], "begun under the old one"
        _end(server, "msg_1", "hm", "Hello")
        _write(server, "msg_2", "so", "Wor")
        assert await _shown(session, server) == [("hm", "Hello"), ("", "")]
        _end(server, "msg_2", "so", "World")
        assert await _shown(session, server) == [("hm", "Hello"), ("so", "World")]
        deltas = [
            event.event.text
            for _ in range(8)
            if isinstance(event := await anext(session.events), Envelope)
            and isinstance(event.event, (TextDelta, ThinkingDelta))
        ]
        assert deltas == ["hm", "Hel", "so", "Wor"]


async def test_a_change_reaches_who_reads_the_views() -> None:
    server = ScriptedServer()
    async with _open(server) as session:
        views = session.views
        before = await anext(views)
        session.presentation = Presentation(thinking="off")
        assert await anext(views) == before


@pytest.mark.rules("C1.5", "C4.3")
async def test_of_many_frames_at_once_those_before_a_hole_are_passed_on() -> None:
    server = ScriptedServer()
    async with _open(server) as session:
        (log,) = server.sessions.values()
        message = MessageId("msg_1")
        _write(server, "msg_1", "hm", "Hel")
        log.emit(TextDelta(message=message, block=1, at=3, text="lo"), _TURN)
        whole = b"".join(_frames(server))
        hole = whole.replace(b'"at":3', b'"at":9')
        assert hole != whole
        for reader in log.readers:  # all in one chunk
            while not reader.empty():
                reader.get_nowait()
            reader.put_nowait(hole)
        assert await _shown(session, server) == [("hm", "Hello")]
        kinds = [
            event.event.text
            if isinstance(event, Envelope) and isinstance(event.event, (TextDelta, ThinkingDelta))
            else type(event).__name__
            for event in [await anext(session.events) for _ in range(4)]
        ]
        assert kinds == ["Envelope", "hm", "Hel", "Rebuilt"]
        assert _count(server, "get_view") == 2


@pytest.mark.rules("C1.3", "C4.2")
async def test_what_came_at_once_with_bytes_that_are_no_frame_comes_again_once() -> None:
    server = ScriptedServer()
    async with _open(server) as session:
        (log,) = server.sessions.values()
        _write(server, "msg_1", "hm", "Hel")
        _end(server, "msg_1", "hm", "Hello")
        whole = b"".join(_frames(server)) + b"data: " + b"x" * 2**25
        for reader in log.readers:
            while not reader.empty():
                reader.get_nowait()
            reader.put_nowait(whole)
        assert await _shown(session, server) == [("hm", "Hello")]
        events = [await anext(session.events) for _ in range(2)]
        assert [event.seq for event in events if isinstance(event, Envelope)] == [2, 3]
        assert _count(server, "follow") == 2
        assert _count(server, "get_view") == 1


def _count(server: ScriptedServer, name: str) -> int:
    return sum(call.operation.name == name for call in server.calls)


def _frames(server: ScriptedServer) -> list[bytes]:
    """What waits for the one reader."""
    (log,) = server.sessions.values()
    (reader,) = log.readers
    frames = [reader.get_nowait() for _ in range(reader.qsize())]
    for frame in frames:
        reader.put_nowait(frame)
    return [frame for frame in frames if frame is not None]
