"""A request may bound its own work (C2.7)."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from towline_agent.testing import ScriptedProvider
from towline_protocol import Identity, Pairing, Problem, openapi_document
from towline_server.api.deadline import MAX_TIMEOUT_S
from towline_server.api.handlers import HANDLERS, Call
from towline_server.build import BuiltApp
from towline_server.stream.testing import Wire
from towline_server.testing import AppClient, open_test_app


@pytest.fixture
async def built(tmp_path: Path) -> AsyncGenerator[BuiltApp]:
    async with open_test_app(ScriptedProvider(), root=tmp_path) as built:
        yield built


@pytest.fixture
def client(built: BuiltApp) -> AppClient:
    return AppClient(built)


@pytest.mark.rules("C2.7")
@pytest.mark.parametrize("seconds", ["30", "0.5", "86400", "5.25"])
async def test_work_that_ends_in_time_is_answered_as_ever(client: AppClient, seconds: str) -> None:
    reply = await client.ask("GET", "/api/auth/me", headers={"towline-timeout": seconds})
    assert reply.status == 200


@pytest.mark.rules("C2.7")
@pytest.mark.parametrize(
    "seconds", ["", "0", "0.0", "-1", "1e3", "nan", "inf", "86401", "5s", "1 ", "9" * 400]
)
async def test_a_bound_that_is_none_is_refused(client: AppClient, seconds: str) -> None:
    reply = await client.ask("GET", "/api/auth/me", headers={"towline-timeout": seconds})
    problem = reply.read(Problem)
    assert (reply.status, problem.code) == (400, "invalid_request")
    assert "towline-timeout" in problem.detail
    assert len(problem.detail) < 200


@pytest.mark.rules("C2.3", "C2.7")
async def test_a_read_that_takes_too_long_is_ended_and_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = asyncio.Event()

    async def slow(call: Call) -> Identity:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        raise AssertionError(call)

    monkeypatch.setitem(HANDLERS, "me", slow)
    async with open_test_app(ScriptedProvider(), root=tmp_path) as built:
        headers = {"towline-timeout": "0.01"}
        reply = await AppClient(built).ask("GET", "/api/auth/me", headers=headers)
    problem = reply.read(Problem)
    assert (reply.status, problem.code, problem.retry) == (504, "deadline_exceeded", "none")
    assert "0.01 s" in problem.detail
    assert problem.request_id == reply.headers["x-request-id"]
    assert ended.is_set()


@pytest.mark.rules("C2.7")
async def test_a_change_that_takes_too_long_is_told_and_still_comes_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, done = asyncio.Event(), asyncio.Event()

    async def slow(call: Call) -> Pairing:
        del call
        await gate.wait()
        done.set()
        return Pairing(code="", url="", expires_at="")

    monkeypatch.setitem(HANDLERS, "pair", slow)
    wire = Wire()
    async with open_test_app(ScriptedProvider(), root=tmp_path) as built:
        serving = asyncio.create_task(_pair(built, wire))
        await wire.until(lambda: wire.ended)
        assert wire.head["status"] == 504
        assert not done.is_set()
        gate.set()
        async with asyncio.timeout(10):
            await serving
        assert done.is_set()


@pytest.mark.rules("C2.7")
async def test_a_stream_takes_no_bound(client: AppClient) -> None:
    session = await client.create()
    async with client.follow(session, headers={"towline-timeout": "0"}) as wire:
        await wire.take(2)
        assert wire.head["status"] == 200


async def test_the_document_tells_the_bound_that_is_taken() -> None:
    parameter = openapi_document()["components"]["parameters"]["towline-timeout"]
    assert parameter["schema"]["maximum"] == MAX_TIMEOUT_S


async def _pair(built: BuiltApp, wire: Wire) -> None:
    headers = {
        "host": "127.0.0.1",
        "authorization": f"Bearer {built.token}",
        "towline-timeout": "0.01",
    }
    scope: dict[str, Any] = {
        "type": "http",
        "method": "POST",
        "scheme": "http",
        "path": "/api/auth/pair",
        "query_string": b"",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
    }
    await built.app(scope, wire.receive, wire.send)
