"""For tests: the real model where it is wanted, and stand-ins for the places it comes from."""

import asyncio
import contextlib
import hashlib
import os
import re
import unittest
import zipfile
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console

from towline.local.errors import SourceFailed
from towline.local.facts import HubFile, LocalModelFacts, PartWheels, Source
from towline.local.model_file import cached_model, ensure_model, model_facts, model_folder
from towline.local.progress import FetchProgress

__all__ = ["FakeIndex", "StandInHub", "require_model", "small_model", "stand_in_hub"]


def require_model(environ: Mapping[str, str] = os.environ) -> Path:
    """The real model's path for a test; call it from a fixture that is not async.

    The cached model is used. It is fetched (1.1 GB, once) when `TOWLINE_REQUIRE` names `model` or
    `TOWLINE_FETCH_MODEL` is `1`; otherwise the test is skipped with one line that says so.

    Raises:
        unittest.SkipTest: There is no model in the cache and none may be fetched.
        LocalModelError: It was to be fetched and could not be.
    """
    facts, folder = model_facts(environ), model_folder(environ)
    found = cached_model(facts, folder)
    if found is not None:
        return found
    wanted = "model" in environ.get("TOWLINE_REQUIRE", "").split(",")
    if not wanted and environ.get("TOWLINE_FETCH_MODEL") != "1":
        raise unittest.SkipTest(
            f"NO LOCAL MODEL in {str(folder)!r}: set TOWLINE_FETCH_MODEL=1 to fetch it (1.1 GB, "
            "once)"
        )
    with FetchProgress(Console(stderr=True)) as shown:
        fetching = ensure_model(facts, folder=folder, on_progress=shown.advance, on_note=shown.note)
        return asyncio.run(fetching)


def small_model(content: bytes, *sources: Source) -> LocalModelFacts:
    """Facts of a model whose whole file is `content`, pinned to it."""
    return LocalModelFacts(
        alias="small",
        title="Small",
        licence="Apache-2.0",
        sha256=hashlib.sha256(content).hexdigest(),
        size_bytes=len(content),
        sources=sources,
    )


@dataclass
class StandInHub:
    """A model hub on loopback that holds one file and can be told to misbehave."""

    content: bytes
    """The file it holds."""
    status: int = 200
    """Its answer to everything, if not 200."""
    break_after: list[int] = field(default_factory=list[int])
    """For each next answer: after how many body bytes the connection is cut."""
    silent: bool = False
    """Whether it takes requests and never answers."""
    ranges: bool = True
    """Whether it obeys range requests."""
    asked: list[str] = field(default_factory=list[str])
    """For each request so far the `Range` header, or an empty text."""
    base_url: str = ""
    """Where it listens."""

    @property
    def file(self) -> HubFile:
        """Its file as a source."""
        return HubFile(self.base_url, "owner/small", "main", "small.gguf")

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request and close the connection."""
        with contextlib.suppress(ConnectionError):
            await self._answer(reader, writer)
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        found = re.search(r"^range: *(bytes=(\d+)-)", head, re.IGNORECASE | re.MULTILINE)
        self.asked.append(found[1] if found else "")
        if self.silent:
            await reader.read()
            return
        begin = int(found[2]) if found and self.ranges else 0
        body, total = self.content[begin:], len(self.content)
        lines = [f"HTTP/1.1 {self.status} -", f"Content-Length: {len(body)}", "Connection: close"]
        if found and self.ranges and self.status == 200:
            lines[0] = "HTTP/1.1 206 -"
            lines.append(f"Content-Range: bytes {begin}-{total - 1}/{total}")
            if begin >= total:
                lines[0] = "HTTP/1.1 416 -"
        end = self.break_after.pop(0) if self.break_after else len(body)
        writer.write("\r\n".join([*lines, "", ""]).encode() + body[:end])
        await writer.drain()


@contextlib.asynccontextmanager
async def stand_in_hub(content: bytes) -> AsyncGenerator[StandInHub, None]:
    """Run a `StandInHub` that holds `content`."""
    hub = StandInHub(content)
    answers: list[asyncio.Task[None]] = []

    def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answers.append(asyncio.create_task(hub.answer(reader, writer)))

    server = await asyncio.start_server(take, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()[:2]
    hub.base_url = f"http://{host}:{port}"
    async with server:
        yield hub
    await asyncio.gather(*answers)


@dataclass
class FakeIndex:
    """A `PartRunner` on a made-up package index that holds one file in parts."""

    content: bytes
    """The whole file."""
    part_bytes: int
    """The size of each part but the last."""
    fail_at: dict[int, list[Exception]] = field(default_factory=dict[int, list[Exception]])
    """Part number to the errors that its next fetches end with."""
    packed: bool = True
    """Whether parts come as wheels, as from pip, or unpacked, as from uv."""
    asked: list[str] = field(default_factory=list[str])
    """The requirements so far."""

    @property
    def wheels(self) -> PartWheels:
        """Its parts as a source."""
        count = -(-len(self.content) // self.part_bytes)
        return PartWheels("small-part{n}", "1.0", "small_part{n}/data/part{n:02d}.bin", count)

    async def __call__(self, requirement: str, folder: Path) -> None:
        """Write the part that `requirement` names into `folder`.

        Raises:
            SourceFailed: There is no such part.
        """
        self.asked.append(requirement)
        found = re.fullmatch(r"small-part(\d+)==1\.0", requirement)
        n = int(found[1]) if found else 0
        if self.fail_at.get(n):
            raise self.fail_at[n].pop(0)
        if not 1 <= n <= self.wheels.count:
            raise SourceFailed(f"there is no {requirement}")
        await asyncio.get_running_loop().run_in_executor(None, self._write, n, folder)

    def _write(self, n: int, folder: Path) -> None:
        part = self.content[(n - 1) * self.part_bytes : n * self.part_bytes]
        member = self.wheels.member.format(n=n)
        if self.packed:
            with zipfile.ZipFile(folder / f"small_part{n}-1.0-py3-none-any.whl", "w") as wheel:
                wheel.writestr(member, part)
            return
        (folder / member).parent.mkdir(parents=True)
        (folder / member).write_bytes(part)
