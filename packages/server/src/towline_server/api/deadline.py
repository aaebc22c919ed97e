"""The bound that a request sets on its own work: `towline-timeout` (C2.7)."""

import asyncio
import re
from collections.abc import Awaitable
from typing import Final

from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import Response

from towline_protocol import UsageError
from towline_server.api.problem import problem
from towline_server.errors import DeadlineExceeded

__all__ = ["MAX_TIMEOUT_S", "TIMEOUT_HEADER", "bound_work", "read_timeout"]

TIMEOUT_HEADER: Final = "towline-timeout"
"""The header with the seconds."""
MAX_TIMEOUT_S: Final = 86400
"""The most that it takes: a day; a longer one is a mistyped number."""

_SECONDS: Final = re.compile(r"[0-9]{1,5}(\.[0-9]{1,6})?")
_SHOWN: Final = 40  # characters of a wrong value that are said back


def read_timeout(request: Request) -> float | None:
    """The seconds that a request gives itself; `None` for no bound of its own.

    Raises:
        UsageError: The header holds something else.
    """
    text = request.headers.get(TIMEOUT_HEADER)
    if text is None:
        return None
    seconds = float(text) if _SECONDS.fullmatch(text) else 0.0
    if not 0 < seconds <= MAX_TIMEOUT_S:
        raise UsageError(
            f"{TIMEOUT_HEADER}: {text[:_SHOWN]!r} is no number of seconds; send one above 0 and up "
            f"to {MAX_TIMEOUT_S}."
        )
    return seconds


async def bound_work(
    work: Awaitable[Response], seconds: float, *, reads: bool, request_id: str
) -> Response:
    """Answer with what the work gives, or with 504 when it takes longer.

    Work that only reads is then cancelled. Work that changes something goes on to its end behind
    the answer: half an effect would be worse than a late one, and the same request with the same
    key gets its answer.

    Args:
        work: Makes the answer; never raises what is no fault of ours.
        seconds: How long it may take.
        reads: Whether it changes nothing.
        request_id: How the log names the request.
    """
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait({task}, timeout=seconds)
    except asyncio.CancelledError:
        await _cancel(task)
        raise
    if task.done():
        return task.result()
    if reads:
        await _cancel(task)
    late = problem(_exceeded(seconds, reads=reads).fault(), request_id)
    late.background = None if reads else BackgroundTask(asyncio.wait, {task})
    return late


async def _cancel(task: asyncio.Future[Response]) -> None:
    task.cancel()
    await asyncio.wait({task})


def _exceeded(seconds: float, *, reads: bool) -> DeadlineExceeded:
    rest = (
        "ask again with more time."
        if reads
        else "it goes on; send it again with the same Idempotency-Key, or read what became of it."
    )
    return DeadlineExceeded(f"This took longer than the {seconds:g} s that it may take; {rest}")
