"""Lines from a pipe and from a terminal."""

import asyncio
import io
import os
import pty
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from towline.cli.keyboard import PROMPT, PipeKeyboard, TerminalKeyboard, open_keyboard

_PROGRAM = Path(__file__).with_name("scripted_program.py")
_WAIT_S = 30.0  # a busy machine starts Python slowly


async def test_a_pipe_gives_its_lines_and_then_the_end_for_ever() -> None:
    reader, writer = os.pipe()
    keyboard = PipeKeyboard(reader)
    try:
        os.write(writer, "one\r\nzwei 🚢\n\nlast".encode() + b"\xff")
        os.close(writer)
        async with asyncio.timeout(5):
            lines = [await keyboard.line() for _ in range(6)]
        assert lines == ["one", "zwei 🚢", "", "last\ufffd", None, None]
        keyboard.set_idle(True)
        keyboard.hide()
        keyboard.show()
    finally:
        keyboard.close()
        os.close(reader)


async def test_a_long_pipe_waits_for_room() -> None:
    reader, writer = os.pipe()
    keyboard = PipeKeyboard(reader)
    try:
        os.write(writer, b"".join(b"%d\n" % number for number in range(500)))
        os.close(writer)
        async with asyncio.timeout(5):
            lines = [await keyboard.line() for _ in range(501)]
        assert lines == [*map(str, range(500)), None]
    finally:
        keyboard.close()
        os.close(reader)


async def test_ctrl_c_is_told_and_given_back_at_the_end() -> None:
    reader, writer = os.pipe()
    before = signal.getsignal(signal.SIGINT)
    keyboard = PipeKeyboard(reader)
    try:
        async with asyncio.timeout(5):
            for _ in range(2):
                signal.raise_signal(signal.SIGINT)
                await keyboard.interrupted()
            os.close(writer)
            assert await keyboard.line() is None
    finally:
        keyboard.close()
        os.close(reader)
    assert signal.getsignal(signal.SIGINT) in (before, signal.default_int_handler)


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """A terminal in place of standard input; gives the end that a person types at."""
    person, program = pty.openpty()
    with os.fdopen(program, "r") as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        yield person
    os.close(person)


async def test_while_something_runs_the_terminal_edits_the_line(terminal: int) -> None:
    keyboard = open_keyboard()
    assert isinstance(keyboard, TerminalKeyboard)
    try:
        async with asyncio.timeout(5):
            os.write(terminal, b"helo\x7flo\ntwo\n")
            assert await keyboard.line() == "hello"
            assert await keyboard.line() == "two"
            reading = asyncio.ensure_future(keyboard.line())
            await asyncio.sleep(0)
            reading.cancel()
            os.write(terminal, b"par\x04")
            part = asyncio.ensure_future(keyboard.line())
            await asyncio.sleep(0)
            os.write(terminal, b"ts\n")
            assert await part == "parts"
            os.write(terminal, b"\x04")
            assert await keyboard.line() is None
    finally:
        keyboard.close()


class _Screen(io.StringIO):
    """Standard output, written to by the thread that asks for a line."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.get_running_loop()
        self.grown = asyncio.Event()

    def write(self, text: str, /) -> int:
        count = super().write(text)
        self.loop.call_soon_threadsafe(self.grown.set)
        return count


async def test_when_nothing_runs_the_line_is_asked_for_at_a_prompt(
    terminal: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    keyboard = TerminalKeyboard()
    screen = _Screen()
    monkeypatch.setattr("sys.stdout", screen)
    try:
        async with asyncio.timeout(5):
            reading = asyncio.ensure_future(keyboard.line())
            await asyncio.sleep(0)
            keyboard.set_idle(True)  # a read that has begun goes over to the prompt
            await screen.grown.wait()
            reading.cancel()
            keyboard.hide()
            keyboard.hide()
            keyboard.show()
            keyboard.show()
            os.write(terminal, b"hello\n")
            assert await keyboard.line() == "hello"  # cancelling has lost nothing
            os.write(terminal, b"\x04")
            assert await keyboard.line() is None
            assert screen.getvalue() == f"{PROMPT}\r\x1b[K{PROMPT}{PROMPT}\n"
            keyboard.set_idle(False)
            os.write(terminal, b"plain\n")
            assert await keyboard.line() == "plain"
    finally:
        keyboard.close()


class _Program:
    """The chat in a terminal of its own."""

    def __init__(self) -> None:
        self.person, self.program = pty.openpty()
        self.before = termios.tcgetattr(self.program)
        self.written = b""
        self.process = subprocess.Popen(
            [sys.executable, str(_PROGRAM)],
            stdin=self.program,
            stdout=self.program,
            stderr=self.program,
            start_new_session=True,
            preexec_fn=lambda: os.close(os.open(os.ttyname(0), os.O_RDWR)),
            env={**os.environ, "TERM": "xterm", "NO_COLOR": "1"},
        )

    def type(self, keys: bytes) -> None:
        os.write(self.person, keys)

    def until(self, words: str, count: int = 1) -> None:
        limit = time.monotonic() + _WAIT_S
        while self.written.decode(errors="replace").count(words) < count:
            assert time.monotonic() < limit, self.written.decode(errors="replace")
            ready, _, _ = select.select([self.person], [], [], 0.1)
            if ready:
                self.written += os.read(self.person, 65_536)

    def end(self) -> int:
        code = self.process.wait(_WAIT_S)
        self.until("Go on with: towline chat --plain --session ses_0001")
        assert termios.tcgetattr(self.program) == self.before, "the terminal is as it was"
        return code

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.person)
        os.close(self.program)


@pytest.fixture
def program() -> Iterator[_Program]:
    """The chat in a terminal of its own."""
    started = _Program()
    yield started
    started.close()


@pytest.mark.slow
def test_in_a_terminal_one_talks_answers_stops_and_leaves(program: _Program) -> None:
    program.until(PROMPT)
    program.type(b"hello\r")
    program.until("You said: hello")
    program.until(PROMPT, 2)
    program.type(b"ruX\x7fn it\x1b[D\x1b[C\r")  # edited with the arrows
    program.until("n deny): ")
    program.type(b"y\n")
    program.until("You said: run it")
    program.until(PROMPT, 3)
    program.type(b"hang on\r")
    program.until("Working")
    program.type(b"\x03")
    program.until("Stopped: stopped by the user")
    program.until(PROMPT, 4)
    program.type(b"\x1b[A")  # the line before comes back
    program.until("hang on", 2)
    program.type(b"\x03")
    assert program.end() == 0


@pytest.mark.slow
def test_in_a_terminal_ctrl_d_leaves(program: _Program) -> None:
    program.until(PROMPT)
    program.type(b"\x04")
    assert program.end() == 0


@pytest.mark.slow
def test_in_a_pipe_the_lines_are_played_and_the_answer_is_printed() -> None:
    done = subprocess.run(
        [sys.executable, str(_PROGRAM)],
        input="hello\nrun it\ny\n",
        capture_output=True,
        text=True,
        timeout=_WAIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "> hello\nYou said: hello\n" in done.stdout
    assert "n deny): y\n→ Allow once (by me)\n" in done.stdout
    assert "\x1b" not in done.stdout
