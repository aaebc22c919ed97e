"""How `towline run` ends when it is told to."""

import asyncio
import os
import pty
import signal

import pytest
from rich.console import Console

from towline.cli.ending import heed_end
from towline.cli.reading import read_in_thread
from towline.cli.run_input import read_input
from towline.cli.run_screen import RunScreen
from towline_protocol import CallId, Option, PermissionId, PermissionRequested, Preview, UsageError


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
async def test_what_was_started_is_ended_before_the_program_is(number: signal.Signals) -> None:
    ended: list[str] = []

    async def work() -> int:
        os.kill(os.getpid(), number)
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ended.append("programs")
        return 0

    before = signal.signal(number, signal.SIG_DFL)  # whoever runs the tests may ignore it
    try:
        async with asyncio.timeout(10):
            assert await heed_end(work()) == 128 + number
    finally:
        signal.signal(number, before)
    assert ended == ["programs"]


async def test_the_code_of_the_work_is_that_of_the_program() -> None:
    async def work() -> int:
        return 3

    assert await heed_end(work()) == 3


async def test_a_question_at_a_terminal_is_answered_or_called_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    person, terminal = pty.openpty()
    request = PermissionRequested(
        permission=PermissionId("prm_1"),
        call=CallId("call_1"),
        tool="shell",
        title="Run x",
        reason="why",
        preview=Preview(kind="command", text="x"),
        digest="d" * 64,
        options=(Option(id="allow_once", label="Allow once"), Option(id="deny", label="Deny")),
        expires_at="2026-01-01T00:00:00Z",
    )
    try:
        with os.fdopen(terminal, closefd=False) as stdin:
            monkeypatch.setattr("sys.stdin", stdin)
            screen = RunScreen(Console(quiet=True), Console(quiet=True))
            os.write(person, b"y\n")
            async with asyncio.timeout(10):
                assert await screen.ask(request) == "allow_once"
            asked = asyncio.create_task(screen.ask(request))
            await asyncio.sleep(0)
            asked.cancel()
            async with asyncio.timeout(10):
                await asyncio.wait([asked])
                await asyncio.get_running_loop().shutdown_default_executor()  # no thread waits
            assert asked.cancelled()
            os.write(person, b"n\n")  # the one that reads ends too
    finally:
        os.close(person)
        os.close(terminal)


async def test_a_pipe_that_never_ends_holds_nobody_up() -> None:
    source, writer = os.pipe()
    waiting = asyncio.create_task(read_in_thread(lambda: read_input(source)))
    await asyncio.sleep(0)
    waiting.cancel()
    async with asyncio.timeout(10):
        await asyncio.wait([waiting])
    assert waiting.cancelled()
    os.write(writer, b"late")
    os.close(writer)
    with pytest.raises(UsageError):
        await read_in_thread(_refuse)


def _refuse() -> None:
    raise UsageError("too much")
