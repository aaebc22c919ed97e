"""Fetch a model from a hub: one file over HTTP, gone on with after each break."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from http import HTTPStatus

import aiohttp

from towline.local.errors import SourceFailed
from towline.local.facts import HubFile
from towline.local.fetch import Fetch

__all__ = ["download_hub_file"]

CONNECT_TIMEOUT_S = 5.0
"""A hub that is out of reach is left after this long: many machines reach a package index only."""

SILENCE_TIMEOUT_S = 30.0
"""How long the hub may send nothing before the connection counts as broken."""

MAX_BREAKS = 5
"""How often one run goes on after a broken connection before it gives the source up."""

BREAK_PAUSE_S = 1.0
"""The wait before going on, times the number of breaks so far."""

COMMIT_BYTES = 64 << 20
"""How often the journal is written: what a power cut costs at most."""

_CONTENT_RANGE = re.compile(r"bytes (\d+)-\d+/(\d+)")

_UNREACHABLE = (aiohttp.ClientError, TimeoutError)

Pause = Callable[[float], Awaitable[None]]


async def download_hub_file(hub: HubFile, fetch: Fetch, *, pause: Pause = asyncio.sleep) -> None:
    """Fill `fetch.part` from `hub`, starting at the byte it ends at.

    Args:
        hub: The file on the hub.
        fetch: Where the bytes go. What came before a failure is kept in its journal.
        pause: Waits the given seconds; tests pass their own.

    Raises:
        SourceFailed: The hub is out of reach, refuses, has another file, or broke too often.
        DiskFull: No room.
        ModelFolderUnusable: The folder cannot be written.
    """
    timeout = aiohttp.ClientTimeout(
        total=None,
        connect=CONNECT_TIMEOUT_S,
        sock_connect=CONNECT_TIMEOUT_S,
        sock_read=SILENCE_TIMEOUT_S,
    )
    began_at = fetch.part.size
    breaks = 0
    async with aiohttp.ClientSession(timeout=timeout, trust_env=True, read_bufsize=1 << 20) as http:
        while fetch.part.size < fetch.model.size_bytes:
            try:
                async with http.get(hub.url, headers=_headers(fetch.part.size)) as response:
                    await _check(response, fetch)
                    await _take(response, fetch)
            except _UNREACHABLE as error:
                if fetch.part.size == began_at:
                    # Not one byte: this machine cannot reach it, so the next source has its turn.
                    raise SourceFailed(
                        f"{hub.base_url} cannot be reached ({_why(error)})"
                    ) from error
                breaks += 1
                if breaks > MAX_BREAKS:
                    raise SourceFailed(
                        f"the connection broke {breaks} times ({_why(error)})"
                    ) from error
                await pause(BREAK_PAUSE_S * breaks)


def _headers(begin: int) -> dict[str, str]:
    headers = {"Accept-Encoding": "identity"}
    if begin:
        headers["Range"] = f"bytes={begin}-"
    return headers


async def _check(response: aiohttp.ClientResponse, fetch: Fetch) -> None:
    """Make sure that what comes is our file at the byte we need; else say why it is not."""
    if response.status == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
        await fetch.on_disk(fetch.part.discard)
        raise SourceFailed("it has another file there (shorter than what was fetched before)")
    if response.status == HTTPStatus.PARTIAL_CONTENT:
        found = _CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", ""))
        start, total = (int(found[1]), int(found[2])) if found else (-1, -1)
    elif response.status == HTTPStatus.OK:
        start, total = 0, response.content_length or -1
    else:
        raise SourceFailed(f"it answered {response.status} for {response.url.path!r}")
    expected = fetch.model.size_bytes
    if total != expected:
        raise SourceFailed(f"it has another file there ({total} bytes, not {expected})")
    if start == 0 and fetch.part.size:
        await fetch.on_disk(fetch.part.restart)
    if start != fetch.part.size:
        raise SourceFailed(f"it sent bytes from {start} on when asked for {fetch.part.size}")


async def _take(response: aiohttp.ClientResponse, fetch: Fetch) -> None:
    """Append the body. A body that ends early raises as a broken connection does."""
    part = fetch.part
    committed = part.size
    try:
        async for block in response.content.iter_any():
            if part.size + len(block) > fetch.model.size_bytes:
                raise SourceFailed("it sent more bytes than the file has")
            await fetch.on_disk(part.append, block)
            fetch.report()
            if part.size - committed >= COMMIT_BYTES:
                await fetch.on_disk(part.commit)
                committed = part.size
    finally:
        await fetch.on_disk(part.commit)


def _why(error: BaseException) -> str:
    if isinstance(error, aiohttp.ClientConnectorError):
        return error.os_error.strerror or str(error.os_error)
    return str(error) or type(error).__name__
