"""What a loaded session and an attached reader take of the server's memory."""

import socket
import statistics
import tempfile
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final

from figure import Goal, show

from server.process import ask, fresh, taking_orders
from server.real import run_real
from server.stored import TEXT_BYTES, fill

__all__ = ["show_memory"]

SESSIONS: Final = 600
TURNS: Final = 10
"""Of two messages each."""
READERS: Final = 300
_WARM: Final = 200  # sessions until SQLite's caches have their size
_WARM_READERS: Final = 20  # few: what they leave to the allocator, the next ones would not take


def show_memory(*, quick: bool) -> None:
    """Measure and print both, and whether readers leave anything behind."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        fresh(fill, folder / "data", SESSIONS, turns=TURNS)
        found = [_measure(folder) for _ in range(1 if quick else 3)]
    session, reader, left = (statistics.median(each) / 1024 for each in zip(*found, strict=True))
    show("memory of an idle session, above its text", "KiB", session, goal=Goal(30))
    show("memory of an attached reader", "KiB", reader, goal=Goal(100))
    show("  what a second one leaves behind", "KiB", left)


def _measure(folder: Path) -> tuple[float, float, float]:
    listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
    with listener, taking_orders(run_real, listener, folder) as pipe:
        token = ask(pipe)
        address = listener.getsockname()
        ask(pipe, "load", 0, _WARM)
        empty = _rss(pipe)
        ask(pipe, "load", _WARM, SESSIONS)
        loaded = _rss(pipe)
        with _readers(pipe, address, token, _WARM_READERS):
            pass
        alone = _rss(pipe)
        with _readers(pipe, address, token, READERS):
            attached = _rss(pipe)
        gone = _rss(pipe)
        with _readers(pipe, address, token, READERS):
            pass
        again = _rss(pipe)
    session = (loaded - empty) / (SESSIONS - _WARM) - TURNS * TEXT_BYTES
    return session, (attached - alone) / READERS, (again - gone) / READERS


def _rss(pipe: Connection) -> int:
    _, rss, _ = ask(pipe, "rss")
    return rss


@contextmanager
def _readers(pipe: Connection, address: tuple[str, int], token: str, count: int) -> Generator[None]:
    """So many readers that have caught up with the first session."""
    request = (
        "GET /api/sessions/ses_0/events HTTP/1.1\r\nhost: 127.0.0.1\r\n"
        f"authorization: Bearer {token}\r\n\r\n"
    )
    with ExitStack() as clients:
        for _ in range(count):
            client = clients.enter_context(socket.create_connection(address, timeout=30))
            client.sendall(request.encode())
            data = b""
            while b"turn_completed" not in data:
                data += client.recv(1 << 16)
        ask(pipe, "readers", count)
        yield
    ask(pipe, "readers", 0)
