"""The rim around a program's own functions: nothing that they raise goes further as it is."""

import asyncio
import logging
from collections.abc import Awaitable
from typing import Final, TypeVar

from towline_client.errors import CallFailed
from towline_protocol import TowlineError

__all__ = ["contain"]

_log: Final = logging.getLogger("towline.client")

_T = TypeVar("_T")


async def contain(name: str, work: Awaitable[_T]) -> _T:
    """Await what a function of the program gives; a surprise becomes one line, and goes to the log.

    Args:
        name: What it is, at the beginning of that line.
        work: The function at work.

    Raises:
        TowlineError: What it raised itself, or a `CallFailed` for anything else.
    """
    try:
        return await work
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        raise CallFailed(f"{name} was cancelled by its own code.") from error
    except (TowlineError, KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:
        _log.error("%s failed", name, exc_info=error)
        raise CallFailed(f"{name} failed with {type(error).__name__}.") from error
