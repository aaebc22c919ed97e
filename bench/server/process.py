"""Fresh processes: one that answers a single question, and one that takes orders."""

import gc
import multiprocessing
import os
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Final, ParamSpec, cast

__all__ = ["ask", "cpu_s", "fresh", "rss_bytes", "taking_orders"]

_P = ParamSpec("_P")
_SPAWN: Final = multiprocessing.get_context("spawn")
_PATIENCE_S: Final = 300.0  # a process that is silent so long never answers


def fresh(target: Callable[_P, Any], *arguments: _P.args, **named: _P.kwargs) -> Any:
    """What a function gives in a process of its own."""
    ours, theirs = _pipe()
    process = _SPAWN.Process(target=_answer, args=(theirs, target, arguments, named), daemon=True)
    process.start()
    theirs.close()
    try:
        return ask(ours)
    finally:
        _end(process)


@contextmanager
def taking_orders(target: Callable[..., None], *arguments: object) -> Generator[Connection]:
    """A process that runs a function; its first argument is the other end of the pipe."""
    ours, theirs = _pipe()
    process = _SPAWN.Process(target=target, args=(theirs, *arguments), daemon=True)
    process.start()
    theirs.close()
    try:
        yield ours
    finally:
        _end(process)


def ask(pipe: Connection, *order: object) -> Any:
    """Send an order, if there is one, and wait for the answer."""
    if order:
        pipe.send(order)
    if not pipe.poll(_PATIENCE_S):
        raise SystemExit(f"A process did not answer {order!r} within {_PATIENCE_S:g} s.")
    try:
        return pipe.recv()
    except EOFError:
        raise SystemExit(f"A process that measures broke at {order!r}; see above.") from None


def cpu_s() -> float:
    """CPU seconds of this process so far, all threads."""
    return time.process_time()


def rss_bytes() -> int:
    """Resident memory of this process, garbage collected before."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _answer(
    pipe: Connection,
    target: Callable[..., Any],
    arguments: tuple[Any, ...],
    named: dict[str, Any],
) -> None:
    pipe.send(target(*arguments, **named))


def _pipe() -> tuple[Connection, Connection]:
    return cast("tuple[Connection, Connection]", _SPAWN.Pipe())  # of sockets, as on all but Windows


def _end(process: BaseProcess) -> None:
    process.kill()
    process.join()
