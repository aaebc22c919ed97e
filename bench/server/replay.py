"""Replay of the longest log that is replayed at all, over HTTP."""

import socket
import statistics
import tempfile
import time
from pathlib import Path
from typing import Final

from figure import Goal, show

from server.process import ask, fresh, taking_orders
from server.real import run_real
from server.stored import fill

__all__ = ["show_replay"]

EVENTS: Final = 10_000
GOAL_S: Final = 0.3


def show_replay(*, quick: bool) -> None:
    """Measure and print the replay, by the first reader and by one who comes back."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (last,) = fresh(fill, folder / "data", 1, events=EVENTS)
        found = [_measure(folder, last) for _ in range(3 if quick else 7)]
    first, again, cpu = (statistics.median(each) for each in zip(*found, strict=True))
    show(f"replay of {last:,} events over HTTP", "s", again, goal=Goal(GOAL_S))
    show("  CPU of the server for it", "s", cpu)
    show("  the first time, before the session is loaded", "s", first)


def _measure(folder: Path, last: int) -> tuple[float, float, float]:
    """Seconds of a session's first replay and of its second, and the server's CPU for that."""
    listener = socket.create_server(("127.0.0.1", 0))
    with listener, taking_orders(run_real, listener, folder) as pipe:
        token = ask(pipe)
        address = listener.getsockname()
        first = _replay(address, token, last)
        before, _, _ = ask(pipe, "load", 0, 1)  # it goes on behind the replay
        again = _replay(address, token, last)
        after, _, _ = ask(pipe, "cpu")
    return first, again, after - before


def _replay(address: tuple[str, int], token: str, last: int) -> float:
    request = (
        "GET /api/sessions/ses_0/events HTTP/1.1\r\nhost: 127.0.0.1\r\n"
        f"authorization: Bearer {token}\r\n\r\n"
    )
    mark = b"id: %d\n" % last
    with socket.create_connection(address, timeout=30) as client:
        began = time.perf_counter()
        client.sendall(request.encode())
        rest = b""
        while mark not in rest:
            data = client.recv(1 << 18)
            if not data:
                raise SystemExit("The replay broke off.")
            rest = rest[-len(mark) :] + data
        return time.perf_counter() - began
