"""People of the soak: each has a session at a time, talks, stops, decides, goes and comes back."""

import asyncio
import contextlib
import random
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Final

import aiohttp
import msgspec

from server.soak_server import LONG, USE
from towline_protocol import (
    AnswerPermission,
    Broken,
    CreateSession,
    Envelope,
    Frame,
    Interrupt,
    PermissionRequested,
    SendPrompt,
    SessionInfo,
    SseDecoder,
    Text,
    TurnCancelled,
    TurnCompleted,
    TurnFailed,
    decode_answer,
    decode_frame,
    encode,
)

__all__ = ["Crowd"]

TURNS: Final = 5
"""Turns of a session; then it is deleted and another one begins."""
STAY_S: Final = 1.0
"""After this a long answer is stopped, and a reader that leaves has left."""
PATIENCE_S: Final = 60.0
KINDS: Final = ("talk", "talk", "leave", "stop", "allow", "deny")

_WORDS: Final = {"stop": LONG, "allow": USE, "deny": USE}


class Crowd:
    """Many people at one server."""

    def __init__(self, url: str, token: str, size: int) -> None:
        self.done: Counter[str] = Counter()
        """How often each came to its end, and what went wrong."""
        self._url = url
        self._headers = {"authorization": f"Bearer {token}"}
        self._size = size
        self._over = False

    async def run(self, seconds: float) -> None:
        """Live; returns when all have ended what they had begun."""
        connector = aiohttp.TCPConnector(limit=0)
        timeout = aiohttp.ClientTimeout(total=None)
        async with (
            aiohttp.ClientSession(
                self._url, headers=self._headers, connector=connector, timeout=timeout
            ) as http,
            asyncio.TaskGroup() as people,
        ):
            for number in range(self._size):
                people.create_task(_Person(http, number, self.done).live(lambda: self._over))
            await asyncio.sleep(seconds)
            self._over = True


class _Person:
    def __init__(self, http: aiohttp.ClientSession, number: int, done: Counter[str]) -> None:
        self._http = http
        self._name = f"person-{number}"
        self._random = random.Random(number)
        self._done = done
        self._last = 0

    async def live(self, over: Callable[[], bool]) -> None:
        await asyncio.sleep(self._random.random() * 5)  # not all in step
        while not over():
            try:
                async with asyncio.timeout(PATIENCE_S * TURNS):
                    await self._spend_session(over)
            except (aiohttp.ClientError, TimeoutError, OSError) as error:
                self._done[f"FAILED {type(error).__name__}: {error}"[:120]] += 1
                await asyncio.sleep(1)

    async def _spend_session(self, over: Callable[[], bool]) -> None:
        made = decode_answer(await self._post("/api/sessions", CreateSession()), SessionInfo)
        path = f"/api/sessions/{made.id}"
        self._last = 0
        for _ in range(TURNS):
            kind = self._random.choice(KINDS)
            await self._take_turn(path, kind)
            self._done[kind] += 1
            if over():
                break
        async with self._http.delete(path) as answer:
            answer.raise_for_status()

    async def _take_turn(self, path: str, kind: str) -> None:
        body = SendPrompt(content=(Text(text=_WORDS.get(kind, "Say something.")),))
        if kind in {"leave", "stop"}:
            async with self._frames(path) as frames:
                await self._post(f"{path}/prompts", body)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(STAY_S):
                        await self._until_end(path, kind, frames)
            if kind == "stop":
                await self._post(f"{path}/interrupt", Interrupt())
            async with self._frames(path) as frames:
                await self._until_end(path, kind, frames)
        else:
            async with self._frames(path) as frames:
                await self._post(f"{path}/prompts", body)
                await self._until_end(path, kind, frames)

    async def _until_end(self, path: str, kind: str, frames: AsyncGenerator[Frame]) -> None:
        async for frame in frames:
            if not isinstance(frame, Envelope):
                continue
            self._last = frame.seq or self._last
            match frame.event:
                case PermissionRequested() as asked:
                    wanted = "allow_once" if kind == "allow" else "deny"
                    answer = AnswerPermission(option=wanted, digest=asked.digest)
                    await self._post(f"{path}/permissions/{asked.permission}", answer)
                case TurnCompleted() | TurnCancelled():
                    return
                case TurnFailed(fault=fault):
                    self._done[f"FAILED turn: {fault.code}"] += 1
                    return
                case _:
                    pass
        self._done["FAILED: a stream ended before its turn"] += 1

    @asynccontextmanager
    async def _frames(self, path: str) -> AsyncGenerator[AsyncGenerator[Frame]]:
        """A reader; every other one has a name."""
        query = {"after": f"{self._last}"}
        if self._random.random() < 0.5:
            query["reader"] = self._name
        async with self._http.get(f"{path}/events", params=query) as answer:
            answer.raise_for_status()
            async with contextlib.aclosing(_decode(answer)) as frames:
                yield frames

    async def _post(self, path: str, body: msgspec.Struct) -> bytes:
        headers = {"content-type": "application/json"}
        async with self._http.post(path, data=encode(body), headers=headers) as answer:
            answer.raise_for_status()
            return await answer.read()


async def _decode(answer: aiohttp.ClientResponse) -> AsyncGenerator[Frame]:
    decoder = SseDecoder()
    async for chunk in answer.content.iter_any():
        for event in decoder.feed(chunk):
            frame = decode_frame(event.event, event.data)
            if not isinstance(frame, Broken):
                yield frame
