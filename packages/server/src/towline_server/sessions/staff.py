"""The sessions of sub-agents: made, found, ended, and gone with the one they worked for (D5)."""

import asyncio
from collections.abc import Callable
from functools import partial

from towline_protocol import SessionId, Text
from towline_server.auth.reserved_name import SERVER
from towline_server.errors import SessionNotFound
from towline_server.sessions.closing import DELETED, Endings
from towline_server.sessions.inbox import Said
from towline_server.sessions.live import LiveSessions
from towline_server.sessions.recovery import Loaded
from towline_server.sessions.session import Session
from towline_server.sessions.sub_agents import Order
from towline_server.store import log
from towline_server.store.sqlite_store import SqliteStore

__all__ = ["SessionStaff"]


class SessionStaff:
    """Where sub-agents' sessions are; see `Staff`.

    Args:
        live: What is in memory.
        store: What is kept.
        endings: Closes and removes sessions.
        leaving: Whether the server shuts down.
    """

    def __init__(
        self,
        live: LiveSessions,
        store: SqliteStore,
        endings: Endings,
        leaving: Callable[[], bool],
    ) -> None:
        self._live = live
        self._store = store
        self._endings = endings
        self._leaving = leaving

    async def hire(self, order: Order) -> Session:
        """The session of that id as it is, or made and begun.

        When the server shuts down this never returns: who waits here is cut with all else, and
        asks again after the restart.

        Raises:
            StoreError: It can be neither read nor kept.
            SessionGone: It is being deleted.
        """
        if self._leaving():
            await asyncio.get_running_loop().create_future()
        found = self._live.find(order.id)
        if found is None and await self._store.session(order.id) is not None:
            found = await self._live.open(order.id)
        return found or await self._begin(order)

    async def _begin(self, order: Order) -> Session:
        made = self._live.add(order.id, order.user, Loaded())
        made.log.emit(order.created)
        made.inbox.take(Said(content=(Text(text=order.prompt),)))
        await made.log.settle()
        made.runner.wake()
        return made

    async def dismiss(self, order: Order, reason: str) -> None:
        """End what runs in a session and close it; one that was never made is passed over.

        Raises:
            StoreError: Its end could not be kept.
        """
        try:
            found = await self._live.open(order.id)
        except SessionNotFound:
            return
        await self._endings.close(found, SERVER, reason, None)

    async def close_all(self, boss: SessionId, user: str, reason: str) -> None:
        """Close the sub-agents' sessions of a session that is closed.

        Raises:
            StoreError: One could not be kept.
        """
        for child in await self._children(boss):
            await self._endings.close(await self._live.open(child), user, reason, None)

    async def delete_all(self, boss: SessionId, user: str) -> None:
        """Remove the sub-agents' sessions of a session that is about to be removed.

        The session is closed first, so that it spawns no more.

        Raises:
            StoreError: One could not be removed.
        """
        children = await self._children(boss)
        found = self._live.find(boss)
        if found is not None and (children or found.busy):
            await self._endings.close(found, user, DELETED, None)
            children = await self._children(boss)
        for child in children:
            await self._endings.delete(child, user, None)

    async def _children(self, boss: SessionId) -> list[SessionId]:
        return await self._store.query(partial(log.list_children, session=boss))
