"""A program that makes its own view of a session, out of what it is told one by one."""

import asyncio

from towline_client import ClientError, Rebuilt, Session
from towline_protocol import Envelope, Partial, reduce

__all__ = ["Follower"]


class Follower:
    """Folds `session.events`, as a program does that draws its own screen; reads when it may."""

    def __init__(self, session: Session) -> None:
        self.view = session.view
        self.due: int | None = None
        """The number that comes next, once known: what came before `open` returned may be first."""
        self.may = asyncio.Event()
        self.may.set()
        self.failed = asyncio.Event()
        self.again = asyncio.Event()
        self._session = session

    async def follow(self) -> None:
        """Read until the session is closed; an error is read over when the line is started anew."""
        while True:
            try:
                async for item in self._session.events:
                    self._take(item)
                    await self.may.wait()
                return
            except ClientError:
                self.again.clear()
                self.failed.set()
                await self.again.wait()

    def _take(self, item: Envelope | Partial | Rebuilt) -> None:
        if isinstance(item, Rebuilt):
            self.view = item.view
            self.due = item.view.seq + 1
            return
        if isinstance(item, Envelope) and item.seq is not None:
            assert item.seq == self.due or self.due is None  # each once, in order
            self.due = item.seq + 1
        self.view = reduce(self.view, item)
        assert not self.view.lost
