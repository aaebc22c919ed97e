"""Ends the streams of a token that has ended: who is let in no more hears nothing more."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable

from towline_server.api.guard import App, Message, Receive, Scope, Send

__all__ = ["Watches"]


class Watches:
    """The answers that are under way, by the digest of the token they were asked for with."""

    def __init__(self) -> None:
        self._open: dict[str, set[asyncio.Future[None]]] = {}

    @property
    def open(self) -> int:
        """How many answers are watched."""
        return sum(map(len, self._open.values()))

    def end(self, digests: Iterable[str]) -> None:
        """End the answers of these tokens."""
        for digest in digests:
            for ended in self._open.get(digest, ()):
                if not ended.done():
                    ended.set_result(None)

    def watch(self, digest: str, answer: App, counts: Callable[[], Awaitable[bool]]) -> App:
        """The same answer, cut short when its token ends.

        Args:
            digest: Of the token.
            answer: An ASGI app, which takes the end for a reader who left.
            counts: Whether the token still counts; it may have ended on the way here.
        """

        async def watched(scope: Scope, receive: Receive, send: Send) -> None:
            ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._open.setdefault(digest, set()).add(ended)
            finished = False

            async def heard(message: Message) -> None:
                nonlocal finished
                if message["type"] == "http.response.body":
                    if ended.done():
                        return
                    finished = not message.get("more_body", False)
                await send(message)

            try:
                if not await counts() and not ended.done():
                    ended.set_result(None)
                await answer(scope, lambda: _receive(receive, ended), heard)
                if ended.done() and not finished:
                    await send({"type": "http.response.body"})
            finally:
                self._leave(digest, ended)

        return watched

    def _leave(self, digest: str, ended: asyncio.Future[None]) -> None:
        left = self._open[digest]
        left.discard(ended)
        if not left:
            del self._open[digest]


async def _receive(receive: Receive, ended: asyncio.Future[None]) -> Message:
    """What comes next, or the end."""
    coming = asyncio.ensure_future(receive())
    try:
        await asyncio.wait({coming, ended}, return_when=asyncio.FIRST_COMPLETED)
        return coming.result() if coming.done() else {"type": "http.disconnect"}
    finally:
        if not coming.done():
            coming.cancel()
            await asyncio.wait({coming})
