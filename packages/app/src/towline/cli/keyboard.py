"""Where a person's lines come from: a terminal, or a pipe."""

import asyncio
import contextlib
import os
import signal
import sys
import termios
import threading
from concurrent.futures import CancelledError
from typing import Any, Final, Protocol

__all__ = ["PROMPT", "Keyboard", "PipeKeyboard", "TerminalKeyboard", "open_keyboard"]

PROMPT: Final = "> "
"""What stands before a line that is typed while nothing runs."""

_READ_AHEAD: Final = 64  # lines of a pipe that wait; the writer waits for more room
_CLEAR_LINE: Final = "\r\x1b[K"
_PASTE_OFF: Final = "\x1b[?2004l"


class Keyboard(Protocol):
    """A source of lines.

    Contract: `line` is never called twice at a time; cancelling it loses nothing that was typed.
    """

    @property
    def terminal(self) -> bool:
        """Whether a person types: lines count at once, and stand on the screen already."""
        ...

    async def line(self) -> str | None:
        """The next line; `None` when there are no more."""
        ...

    async def interrupted(self) -> None:
        """Return at the next Ctrl+C."""
        ...

    def set_idle(self, idle: bool) -> None:
        """Say whether nothing runs, so that the next line is edited at a prompt."""
        ...

    def hide(self) -> None:
        """Take the prompt away before something is written."""
        ...

    def show(self) -> None:
        """Put the prompt back, with what was typed so far."""
        ...

    def close(self) -> None:
        """Leave the terminal as it was found."""
        ...


class _Signals:
    """Ctrl+C as an event of the loop."""

    def __init__(self) -> None:
        self._pressed = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._loop.add_signal_handler(signal.SIGINT, self._pressed.set)

    async def interrupted(self) -> None:
        """Return at the next Ctrl+C."""
        await self._pressed.wait()
        self._pressed.clear()

    def close(self) -> None:
        """Give Ctrl+C back."""
        self._loop.remove_signal_handler(signal.SIGINT)


class PipeKeyboard:
    """Lines of a pipe or a file."""

    terminal = False

    def __init__(self, descriptor: int = 0) -> None:
        """Read from a descriptor, standard input when left out."""
        self._lines: asyncio.Queue[str | None] = asyncio.Queue(_READ_AHEAD)
        self._signals = _Signals()
        self._loop = asyncio.get_running_loop()
        # A daemon, since a read of standard input cannot be called off.
        threading.Thread(target=self._read, args=(descriptor,), daemon=True).start()

    async def line(self) -> str | None:
        """The next line; `None` when there are no more."""
        line = await self._lines.get()
        if line is None:
            self._lines.put_nowait(None)  # the end stays the end
        return line

    async def interrupted(self) -> None:
        """Return at the next Ctrl+C."""
        await self._signals.interrupted()

    def set_idle(self, idle: bool) -> None:
        """A pipe has no prompt."""

    def hide(self) -> None:
        """A pipe has no prompt."""

    def show(self) -> None:
        """A pipe has no prompt."""

    def close(self) -> None:
        """Give Ctrl+C back."""
        self._signals.close()

    def _read(self, descriptor: int) -> None:
        over = (RuntimeError, CancelledError)  # the loop has ended: nobody waits for lines
        with contextlib.suppress(*over):
            with (
                contextlib.suppress(OSError),  # a pipe that broke has ended
                open(descriptor, "rb", closefd=False) as source,
            ):
                for raw in source:
                    self._put(raw.decode(errors="replace").rstrip("\r\n"))
            self._put(None)

    def _put(self, line: str | None) -> None:
        work = self._lines.put(line)
        try:
            asyncio.run_coroutine_threadsafe(work, self._loop).result()
        except RuntimeError:
            work.close()
            raise


class TerminalKeyboard:
    """Lines of a terminal.

    At the prompt they are edited with readline, arrows and history included, in a thread of its
    own. While something runs the terminal edits them itself, and Enter hands them over.
    """

    terminal = True

    def __init__(self) -> None:
        """Take standard input over."""
        self._descriptor = sys.stdin.fileno()
        self._saved: list[Any] = termios.tcgetattr(self._descriptor)
        self._signals = _Signals()
        self._loop = asyncio.get_running_loop()
        self._idle = asyncio.Event()
        self._held = b""  # what was read of a line that has no end yet
        self._edited: asyncio.Future[str | None] | None = None
        self._hidden = False
        self._readline = _load_readline()

    async def line(self) -> str | None:
        """The next line; `None` when there are no more."""
        while True:
            if self._edited is not None or self._idle.is_set():
                return await self._edit()
            line, ended = await self._plain()
            if ended:
                return line

    async def interrupted(self) -> None:
        """Return at the next Ctrl+C."""
        await self._signals.interrupted()

    def set_idle(self, idle: bool) -> None:
        """Say whether nothing runs, so that the next line is edited at a prompt."""
        if idle:
            self._idle.set()
        else:
            self._idle.clear()

    def hide(self) -> None:
        """Take the prompt away before something is written."""
        if self._edited is not None and not self._hidden:
            self._hidden = True
            _write(_CLEAR_LINE)

    def show(self) -> None:
        """Put the prompt back, with what was typed so far."""
        if self._edited is not None and self._hidden:
            self._hidden = False
            typed = self._readline.get_line_buffer() if self._readline is not None else ""
            _write(PROMPT + typed)

    def close(self) -> None:
        """Leave the terminal as it was found."""
        self._signals.close()
        if self._edited is not None:  # the thread still stands in readline's own mode
            termios.tcsetattr(self._descriptor, termios.TCSADRAIN, self._saved)
            _write(f"{_PASTE_OFF}\n" if self._readline is not None else "\n")

    async def _edit(self) -> str | None:
        if self._edited is None:
            self._edited = self._loop.create_future()
            self._hidden = False
            threading.Thread(target=self._ask, args=(self._edited,), daemon=True).start()
        line = await asyncio.shield(self._edited)
        self._edited = None
        if line is None:
            _write("\n")  # Ctrl+D leaves the prompt's line open
        return line

    def _ask(self, edited: "asyncio.Future[str | None]") -> None:
        try:
            line = input(PROMPT)
        except (EOFError, OSError):
            line = None
        except UnicodeDecodeError:
            line = ""

        def deliver() -> None:
            if not edited.done():
                edited.set_result(line)

        with contextlib.suppress(RuntimeError):  # the loop is over: nobody waits
            self._loop.call_soon_threadsafe(deliver)

    async def _plain(self) -> tuple[str | None, bool]:
        """A line as the terminal edits it, and whether there was one before nothing ran."""
        if b"\n" in self._held:
            return self._take(b"")
        readable = asyncio.Event()
        self._loop.add_reader(self._descriptor, readable.set)
        waits = [asyncio.ensure_future(each.wait()) for each in (readable, self._idle)]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._loop.remove_reader(self._descriptor)
            for wait in waits:
                wait.cancel()
        if not readable.is_set():
            return None, False
        return self._take(os.read(self._descriptor, 4096))

    def _take(self, chunk: bytes) -> tuple[str | None, bool]:
        """What the bytes held and read make: no bytes read are the end of the input."""
        self._held += chunk
        line, end, rest = self._held.partition(b"\n")
        if not self._held:
            return None, True
        if chunk and not end:
            return None, False
        self._held = rest
        return line.decode(errors="replace"), True


def open_keyboard() -> Keyboard:
    """Lines from standard input, whatever it is. Call it in the main thread's loop."""
    return TerminalKeyboard() if sys.stdin.isatty() else PipeKeyboard()


def _load_readline() -> Any:
    try:
        import readline
    except ImportError:  # a Python built without it: the terminal edits the line
        return None
    return readline


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
