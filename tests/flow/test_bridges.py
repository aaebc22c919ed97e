"""Programs with tools and answers of their own: before a real server that dies, on a torn line."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
from flow.crash_client import Keeper, Stall
from flow.lane import PATIENCE_S, decode, make_folder, open_lane, read_log

from towline_client import (
    Call,
    Client,
    ConnectionLost,
    LinkPolicy,
    Reply,
    Scrollback,
    Session,
    StreamReply,
)
from towline_client.http import HttpTransport
from towline_protocol import (
    ClientCallClaimed,
    Envelope,
    PermissionRequested,
    QuestionAsked,
    SessionId,
    SessionView,
    Text,
    ToolEnded,
)

POLICY: Final = LinkPolicy(first_ms=20, most_ms=100, patience=1_000_000)
ANYWHERE: Final = "anywhere"
"""The order's word for a server that is killed from here."""


class Torn:
    """A transport whose streams are cut after some chunks, and whose replies get lost."""

    def __init__(self, url: str) -> None:
        self._http = HttpTransport(url)
        self.lose: set[str] = set()
        """Operations whose next reply is lost after it was carried out."""
        self.cuts = 0
        """Streams that are cut at their third chunk from here on."""

    async def request(self, call: Call) -> Reply:
        """Carry out a call."""
        reply = await self._http.request(call)
        if call.operation.name in self.lose:
            self.lose.remove(call.operation.name)
            raise ConnectionLost("The reply was lost.")
        return reply

    @asynccontextmanager
    async def stream(self, call: Call) -> AsyncGenerator[StreamReply]:
        """Open a stream."""
        async with self._http.stream(call) as reply:
            yield msgspec.structs.replace(reply, chunks=self._cut(reply.chunks))

    async def close(self) -> None:
        """Let go of every connection."""
        await self._http.close()

    async def _cut(self, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        count = 0
        async for chunk in chunks:
            yield chunk
            count += 1
            if self.cuts and count == 3:
                self.cuts -= 1
                raise ConnectionLost("The line was cut.")


@asynccontextmanager
async def _serve(
    tmp_path: Path, *, mode: str = "auto"
) -> AsyncGenerator[tuple[Keeper, str, Stall]]:
    """A server that can be killed once, its address, and where its store is."""
    async with asyncio.timeout(PATIENCE_S), open_lane() as lane:
        stall = await Stall.prepare(lane, make_folder(tmp_path))
        folder = make_folder(tmp_path, 2)
        order = stall.order(folder, kill=ANYWHERE, mode=mode)
        keeper = Keeper(lane, order)
        async with keeper.kept(sure=False) as url:
            yield keeper, url, Stall(lane, folder, stall.token, order["port"])


def _client(url: str, stall: Stall, **more: Any) -> Client:
    return Client(url, stall.token, policy=POLICY, **more)


def _events(stall: Stall, session: SessionId, kind: type[Any]) -> list[Any]:
    log: list[Envelope] = [decode(data) for data in read_log(stall.data.parent, session)]
    return [envelope.event for envelope in log if isinstance(envelope.event, kind)]


async def _until(session: Session, holds: Callable[[SessionView], bool]) -> SessionView:
    async for view in session.views:
        if holds(view):
            return view
    raise AssertionError("the flow ended before it held")


@pytest.mark.slow
@pytest.mark.rules("C5.12", "C5.5", "C4.9")
@pytest.mark.parametrize("torn", [False, True])
async def test_a_tool_whose_server_is_killed_while_it_runs_runs_once_and_is_answered(
    tmp_path: Path, torn: bool
) -> None:
    rung: list[int] = []
    async with _serve(tmp_path) as (keeper, url, stall):
        transport = Torn(url)
        async with _client(url, stall, transport=transport) as client:

            @client.tool
            async def ring() -> str:
                """Ring a bell."""
                rung.append(1)
                await keeper.kill()  # between the claim and the result
                if torn:
                    transport.lose.add("send_result")
                    transport.cuts = 2
                return "rang"

            session = await client.open()
            if torn:
                transport.lose |= {"claim_call", "send_prompt"}
            assert await session.ask("ring") == "It told me: rang"
            assert keeper.died
        assert len(_events(stall, session.id, ClientCallClaimed)) == 1
        (ended,) = _events(stall, session.id, ToolEnded)
        assert ended.content == (Text(text="rang"),)
    assert rung == [1]


@pytest.mark.slow
@pytest.mark.rules("C5.12")
async def test_of_two_programs_with_one_tool_one_runs_the_call(tmp_path: Path) -> None:
    rung: list[str] = []
    async with _serve(tmp_path) as (_, url, stall):
        async with _client(url, stall) as phone, _client(url, stall) as watch:
            phone.tool(name="ring")(lambda: rung.append("phone"))
            watch.tool(name="ring")(lambda: rung.append("watch"))
            session = await phone.open(reader="phone")
            await watch.open(session.id, reader="watch")
            for _ in range(5):
                assert await session.ask("ring") == "It told me: null"
        claimed = [event.by for event in _events(stall, session.id, ClientCallClaimed)]
        assert claimed == rung
    assert len(rung) == 5


@pytest.mark.slow
@pytest.mark.rules("C5.12")
@pytest.mark.parametrize("harmless", [False, True])
async def test_a_program_that_died_with_a_call_runs_it_again_only_if_that_is_harmless(
    tmp_path: Path, harmless: bool
) -> None:
    rung: list[int] = []
    begun = asyncio.Event()
    kept = tmp_path / "bot.db"
    async with _serve(tmp_path) as (keeper, url, stall):
        first = _client(url, stall, scrollback=Scrollback(kept))

        @first.tool(idempotent=harmless)
        async def ring() -> None:
            rung.append(1)
            begun.set()
            await asyncio.Event().wait()

        session = await first.open(reader="bot")
        await session.prompt("ring")
        await begun.wait()
        await keeper.kill()
        session.stop()  # so that nothing can be said any more: as if this program were killed
        async with _client(url, stall, scrollback=Scrollback(kept)) as second:

            def again() -> str:
                rung.append(2)
                return "rang"

            second.tool(name="ring", idempotent=harmless)(again)
            back = await second.open(session.id, reader="bot")
            await _until(back, lambda view: view.last_turn is not None and view.turn is None)
            assert back.view.last_turn is not None
            (call,) = back.view.calls
        await first.close()
    told = " ".join(block.text for block in call.content if isinstance(block, Text))
    assert rung == ([1, 2] if harmless else [1])
    assert call.is_error != harmless
    assert told == "rang" if harmless else "may or may not have had its effect" in told


@pytest.mark.slow
@pytest.mark.rules("C5.8", "C5.10", "C5.11")
async def test_permissions_and_questions_are_answered_by_functions_through_a_kill(
    tmp_path: Path,
) -> None:
    asked: list[str] = []
    async with (
        _serve(tmp_path, mode="ask") as (keeper, url, stall),
        _client(url, stall, transport=Torn(url)) as client,
    ):

        @client.on_permission
        async def decide(request: PermissionRequested) -> str:
            asked.append(request.tool)
            if not keeper.died:
                await keeper.kill()
            return "allow_once"

        @client.on_question
        def reply(question: QuestionAsked) -> dict[str, str]:
            asked.append("question")
            return {item.id: "the left one" for item in question.items}

        session = await client.open()
        assert await session.ask("mark one") == "It told me: marked one"
        assert "the left one" in await session.ask("ask Which way?")
    assert asked == ["mark", "question"]


@pytest.mark.slow
@pytest.mark.rules("C5.12")
async def test_a_program_that_leaves_is_not_waited_for(tmp_path: Path) -> None:
    begun = asyncio.Event()
    async with (
        _serve(tmp_path) as (_, url, stall),
        _client(url, stall) as phone,
        _client(url, stall) as watch,
    ):

        @phone.tool
        async def ring() -> None:
            begun.set()
            await asyncio.Event().wait()

        session = await phone.open()
        hand = await watch.open(session.id)
        asking = asyncio.create_task(hand.ask("ring"))
        await begun.wait()
        await session.close()
        assert "was closed before it had ended" in await asking
        assert await hand.ask("and now?") == "and now?"
