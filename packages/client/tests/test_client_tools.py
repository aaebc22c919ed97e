"""Tools that run on the client's side: what is sent for them, and under which name."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from towline_client import Client, CommandRejected, Session
from towline_client.testing import ScriptedServer, ScriptedTransport, ScriptedTurn, refuse
from towline_protocol import (
    CallId,
    CallView,
    ClaimCall,
    ClientCallEnded,
    ClientTool,
    DeclareTools,
    Image,
    ReportProgress,
    SendResult,
    Text,
    ToolsDeclared,
)

CALL = CallId("call_1")
LOCATE = ClientTool(name="locate", description="Where it is.", parameters={"type": "object"})


@asynccontextmanager
async def _open(server: ScriptedServer, reader: str | None = None) -> AsyncGenerator[Session]:
    client = Client("", "token", transport=ScriptedTransport(server))
    async with asyncio.timeout(10), server, client:
        yield await client.open(reader=reader)


def _sent(server: ScriptedServer, name: str, kind: type[Any]) -> list[tuple[str, Any]]:
    """The path and the body of each call of an operation."""
    return [
        (call.path, msgspec.json.decode(call.body or b"", type=kind))
        for call in server.calls
        if call.operation.name == name
    ]


async def _locate(turn: ScriptedTurn, text: str) -> None:
    found = await turn.call_client("locate", "Where it is", arguments='{"precise":true}')
    await turn.say(f"{text}: {found.status} {found.content}")


async def _offered(session: Session) -> CallView:
    async for view in session.views:
        for call in view.open_calls:
            if call.expires_at is not None:
                return call
    raise AssertionError("the flow ended before a call was offered")


@pytest.mark.rules("C5.12")
async def test_tools_are_declared_and_their_calls_answered_under_the_name_of_the_line() -> None:
    server = ScriptedServer(_locate)
    picture = Image(media_type="image/png", data="aGVsbG8=")
    async with _open(server, "phone") as session:
        assert session.reader == "phone"
        declared = await session.declare_tools(LOCATE, key="k")
        assert declared == ToolsDeclared(reader="phone", tools=("locate",))
        await session.prompt("Look")
        call = (await _offered(session)).call
        claimed = await session.claim(call, key="k")
        assert (claimed.by, claimed.arguments) == ("phone", '{"precise":true}')
        await session.report_progress(call, "looking", fraction=0.5)
        ended = ClientCallEnded(call=call, status="failed")
        assert await session.send_result(call, [picture], is_error=True, key="k") == ended
        assert await session.send_result(call, [picture], is_error=True) == ended
        with pytest.raises(CommandRejected) as refused:
            await session.send_result(call, "there")
        assert refused.value.code == "gone"
        base = f"/api/sessions/{session.id}"
    assert _sent(server, "declare_tools", DeclareTools) == [
        (f"{base}/tools", DeclareTools(reader="phone", tools=(LOCATE,)))
    ]
    path = f"{base}/calls/{call}"
    assert _sent(server, "claim_call", ClaimCall) == [(f"{path}/claim", ClaimCall(reader="phone"))]
    assert _sent(server, "report_progress", ReportProgress) == [
        (f"{path}/progress", ReportProgress(reader="phone", text="looking", fraction=0.5))
    ]
    result = SendResult(reader="phone", content=(picture,), is_error=True)
    assert _sent(server, "send_result", SendResult)[:2] == [(f"{path}/result", result)] * 2
    assert _sent(server, "send_result", SendResult)[2][1].content == (Text(text="there"),)


@pytest.mark.rules("C5.12")
async def test_only_who_claimed_a_call_may_answer_it() -> None:
    server = ScriptedServer(_locate)
    async with _open(server, "phone") as session:
        await session.declare_tools(LOCATE)
        await session.prompt("Look")
        call = (await _offered(session)).call
        with pytest.raises(CommandRejected, match="claim it first"):
            await session.send_result(call, "here")
        client = Client("", "token", transport=ScriptedTransport(server))
        async with client:
            watch = await client.open(session.id, reader="watch")
            await watch.claim(call)
            with pytest.raises(CommandRejected, match="'watch' has this call"):
                await session.claim(call)
            await watch.send_result(call, "there")
        with pytest.raises(CommandRejected) as refused:
            await session.claim(CALL)
        assert refused.value.code == "not_found"


@pytest.mark.rules("C5.12")
async def test_a_call_that_another_client_has_is_told_and_not_asked_for_again() -> None:
    server = ScriptedServer()
    refusal = refuse("conflict", "The client 'watch' has this call; drop it.")
    server.replies["claim_call"] = deque([refusal])
    async with _open(server) as session:
        with pytest.raises(CommandRejected) as refused:
            await session.claim(CALL)
    assert refused.value.code == "conflict"
    ((_, body),) = _sent(server, "claim_call", ClaimCall)
    assert len(body.reader) == 32  # a line without a name has one of its own
