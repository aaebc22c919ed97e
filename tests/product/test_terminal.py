"""`towline chat --plain` in a pseudo-terminal, against the real local model."""

import os
import pty
import re
import select
import subprocess
import sys
import time

import pytest
from product.running import Product

pytestmark = [pytest.mark.model, pytest.mark.slow]

_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07]*\x07")


class Terminal:
    """A program in a terminal of its own."""

    def __init__(self, product: Product, *arguments: str) -> None:
        self._master, slave = pty.openpty()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "towline", "chat", "--plain", *arguments],
            cwd=product.root,
            env={**product.environ, "TERM": "xterm-256color", "COLUMNS": "100"},
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
        )
        os.close(slave)
        self.screen = ""

    def wait_for(self, pattern: str, timeout_s: float = 300.0) -> str:
        """Read until the pattern stands on the screen."""
        until = time.monotonic() + timeout_s
        while (found := re.search(pattern, self.screen)) is None:
            left_s = until - time.monotonic()
            ready, _, _ = select.select([self._master], [], [], max(0.0, left_s))
            assert ready, f"{pattern!r} did not come; the screen holds {self.screen!r}"
            try:
                data = os.read(self._master, 65536)
            except OSError:
                data = b""
            assert data, f"the program ended before {pattern!r}; it wrote {self.screen!r}"
            self.screen += _ESCAPES.sub("", data.decode(errors="replace"))
        return found[0]

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def end(self) -> int:
        """Wait for the program's end; read on meanwhile, so that it can write."""
        until = time.monotonic() + 30
        while self._process.poll() is None and time.monotonic() < until:
            ready, _, _ = select.select([self._master], [], [], 0.1)
            if ready:
                try:
                    data = os.read(self._master, 65536)
                except OSError:
                    break
                self.screen += _ESCAPES.sub("", data.decode(errors="replace"))
        try:
            return self._process.wait(timeout=10)
        finally:
            self._process.kill()
            os.close(self._master)


def test_a_talk_in_a_terminal_streams_uses_a_tool_and_can_be_taken_up_again(
    product: Product,
) -> None:
    terminal = Terminal(product)
    terminal.wait_for(r"> ?$", 60)
    terminal.type("Read the file notes.txt and tell me what it says.\r")
    terminal.wait_for(r"Read notes\.txt")
    terminal.wait_for(r"lighthouse")
    terminal.wait_for(r"\n> ?$")
    terminal.type("\x04")
    assert terminal.end() == 0
    session = re.search(r"--session (ses_\w+)", terminal.screen)
    assert session is not None

    again = Terminal(product, "--session", session[1])
    again.wait_for("lighthouse", 60)
    again.wait_for(r"> ?$", 60)
    again.type("\x04")
    assert again.end() == 0
