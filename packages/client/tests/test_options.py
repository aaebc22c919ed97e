"""Every operation has a typed call, every typed call its options, both held against the table."""

import asyncio
import inspect
import re
from collections import deque
from collections.abc import Callable
from typing import Any, cast

import pytest

from towline_client import (
    Account,
    CallOptions,
    Client,
    CommandRejected,
    ConnectionLost,
    Discovery,
    Life,
    Models,
    Project,
    Push,
    Session,
    TurnFiles,
)
from towline_client.options import check_options
from towline_client.testing import ManualClock, ScriptedServer, connect, refuse
from towline_protocol import (
    OPERATIONS,
    Operation,
    SessionId,
    UpdateSession,
    UsageError,
    takes_match,
)

_CLASSES = (Account, Client, Discovery, Life, Models, Project, Push, Session, TurnFiles)
_BESIDE = {
    "Client.close",  # of what is held here
    "Client.feed",  # a stream
    "Client.open",  # a stream
    "Session.ask",  # of `prompt` and the stream
    "Session.close",
    "Session.send_again",  # of `prompt`
    "Session.wait_for",  # of the stream
}
"""Public coroutines that are no call of one operation."""


def _calls() -> dict[str, Callable[..., Any]]:
    """Every public coroutine of the client, by its name."""
    found: dict[str, Callable[..., Any]] = {}
    for owner in _CLASSES:
        for name, member in inspect.getmembers(owner, inspect.isfunction):
            awaited = inspect.iscoroutinefunction(member) or inspect.isasyncgenfunction(member)
            if awaited and not name.startswith("_"):
                found[f"{owner.__name__}.{name}"] = member
    return found


def _operations(call: Callable[..., Any]) -> set[str]:
    """The operations that a call's source names."""
    return set(re.findall(r'"(\w+)"', inspect.getsource(call))) & OPERATIONS.keys()


def test_each_operation_but_the_streams_has_a_typed_call_and_each_call_its_operation() -> None:
    calls = {name: call for name, call in _calls().items() if name not in _BESIDE}
    named = {name: _operations(call) for name, call in calls.items()}
    assert not [name for name, found in named.items() if len(found) != 1]
    ordinary = {row.name for row in OPERATIONS.values() if not row.stream}
    assert set[str]().union(*named.values()) == ordinary
    assert _calls().keys() >= _BESIDE


def test_each_typed_call_takes_the_options() -> None:
    for name, call in _calls().items():
        if name in _BESIDE - {"Session.ask"}:
            continue
        *_, last = inspect.signature(call).parameters.values()
        assert last.kind is inspect.Parameter.VAR_KEYWORD, name
        assert last.name == "options", name


@pytest.mark.rules("C2.5", "C2.6")
@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS.keys())
def test_an_option_that_the_table_does_not_mark_is_refused_before_anything_is_sent(
    operation: Operation,
) -> None:
    check_options(operation, {"timeout_s": 0.5})
    for options, taken in (
        (CallOptions(key="k"), operation.idempotent),
        (CallOptions(if_match='"t"'), takes_match(operation)),
    ):
        if taken:
            check_options(operation, options)
            continue
        with pytest.raises(UsageError, match="leave it out"):
            check_options(operation, options)
    if operation.method == "GET":
        assert not operation.idempotent
        assert not takes_match(operation)


@pytest.mark.parametrize(
    "options",
    [
        {"timeout": 3},
        {"timeout_s": 0},
        {"timeout_s": float("nan")},
        {"timeout_s": float("inf")},
        {"timeout_s": "3"},
        {"key": ""},
        {"key": "k" * 201},
        {"key": "two\nlines"},
        {"key": "schlüssel"},
        {"if_match": 3},
    ],
)
def test_an_option_that_cannot_be_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        check_options(OPERATIONS["update_session"], cast("CallOptions", options))


async def test_options_are_checked_by_the_calls_themselves() -> None:
    server = ScriptedServer()
    async with connect(server) as client:
        with pytest.raises(UsageError, match="takes no key"):
            await client.me(key="k")
        with pytest.raises(UsageError, match="takes no key") as caught:
            await client.models.change_provider("scripted", key="secret")
        assert "secret" not in str(caught.value)
        session = await client.open()
        sent = len(server.calls)
        with pytest.raises(UsageError, match="takes no if_match"):
            await session.prompt("Hello", if_match='"t"')
        assert len(server.calls) == sent
        assert session.view.outgoing == ()


@pytest.mark.rules("C2.6")
async def test_a_change_is_held_against_the_tag_that_is_given() -> None:
    server = ScriptedServer()
    async with connect(server) as client:
        info = await client.create_session()
        known = await client.life.read(info.id)
        change = UpdateSession(title="Mine")
        await client.life.update(info.id, change, if_match=known.tag, key="k")
        sent = server.calls[-1].headers
        assert (sent["if-match"], sent["idempotency-key"]) == (known.tag, "k")
        with pytest.raises(CommandRejected) as caught:
            await client.life.update(info.id, UpdateSession(title="Late"), if_match=known.tag)
        assert (caught.value.status, caught.value.retry) == (412, "refresh")


async def test_a_timeout_bounds_the_call_with_all_its_tries() -> None:
    server = ScriptedServer()
    clock = ManualClock()
    async with connect(server, clock=clock) as client:
        server.lose.extend(["me"] * 4)
        asking = asyncio.create_task(client.me(timeout_s=2.5))
        await _settle()
        assert [call.timeout_s for call in server.calls] == [2.5, 2.5]  # the second came at once
        clock.advance(1000)
        await _settle()
        clock.advance(1000)  # the fourth would come after three seconds more
        with pytest.raises(ConnectionLost):
            await asking
        assert [call.timeout_s for call in server.calls] == [2.5, 2.5, 1.5, 0.5]


async def test_a_call_without_a_timeout_has_the_usual_one_for_each_try() -> None:
    server = ScriptedServer()
    async with connect(server) as client:
        server.lose.append("get_session")
        with pytest.raises(CommandRejected):
            await client.get_session(SessionId("ses_none"))
        await client.models.list_models()
        await client.models.list_models(timeout_s=90)
        await client.upload(b"words")
        assert [call.timeout_s for call in server.calls] == [30, 30, 60, 90, 300]


async def test_a_wait_that_outlives_the_timeout_is_told_at_once() -> None:
    server = ScriptedServer()
    async with connect(server) as client:
        server.replies["me"] = deque([refuse("draining", "Wait.", retry_after_s=5)])
        with pytest.raises(CommandRejected, match="Wait"):
            await client.me(timeout_s=4)
        assert len(server.calls) == 1


async def _settle() -> None:
    """Let everybody go on who can."""
    for _ in range(30):
        await asyncio.sleep(0)
