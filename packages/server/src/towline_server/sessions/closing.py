"""The end of a session: closed for good, and perhaps removed (C2.10)."""

import asyncio
import functools
import logging
from collections.abc import Callable, Coroutine
from typing import Final, TypeVar

from towline_protocol import SessionClosed, SessionDeleted, SessionId, TowlineError, format_time
from towline_server.sessions.catalog import gone
from towline_server.sessions.kept_files import KeptFiles
from towline_server.sessions.lead import Remember
from towline_server.sessions.live import LiveSessions
from towline_server.sessions.session import Session
from towline_server.store import tombstones
from towline_server.store.sqlite_store import SqliteStore

__all__ = ["DELETED", "Endings", "close_for_good"]

_log: Final = logging.getLogger("towline.server")
_T = TypeVar("_T")

DELETED: Final = "deleted"
"""Why a session is closed that is removed right after."""


async def close_for_good(
    session: Session,
    *,
    by: str,
    reason: str,
    remember: Remember | None = None,
    read_seq: int = 0,
) -> None:
    """End what runs, take back what waits, and close a session; durable when this returns.

    Its streams end once they have told of it.

    Args:
        session: The session.
        by: Who closes it.
        reason: Why, for the log.
        remember: How to keep the answer.
        read_seq: How far the session's user has read, for the answer.

    Raises:
        StoreError: It could not be kept; the session is as a crash would leave it.
    """
    with session.in_use():
        await session.shut(by, reason)
    session.tell_cut()
    log = session.log
    for queued in log.ahead.view.queue:
        session.inbox.withdraw(queued.prompt)
    log.emit(SessionClosed(reason=reason), outside=True)
    if remember is not None:
        log.keep(remember(session.info(ahead=True, read_seq=read_seq)))
    await log.settle()
    log.hub.close()


class Endings:
    """The sessions that come to their end right now.

    Each end is one task, whoever asked for it: who stops waiting does not stop it.
    """

    def __init__(
        self,
        live: LiveSessions,
        store: SqliteStore,
        now_ms: Callable[[], int],
        kept: KeptFiles,
    ) -> None:
        self._kept = kept
        self._live = live
        self._store = store
        self._now_ms = now_ms
        self._closing: dict[SessionId, asyncio.Task[None]] = {}
        self._deleting: dict[SessionId, asyncio.Task[SessionDeleted]] = {}
        self._emptying: set[asyncio.Task[None]] = set()
        self._ended = False

    async def start(self) -> None:
        """Go on with the removals that a crash cut.

        Raises:
            StoreError: The store cannot be read.
        """
        for session in await self._store.query(tombstones.unfinished):
            task = asyncio.create_task(self._finish(session))
            self._emptying.add(task)
            task.add_done_callback(self._emptying.discard)

    async def end(self) -> None:
        """Wait for what is under way; a long removal goes on at the next start."""
        self._ended = True
        tasks = {*self._closing.values(), *self._deleting.values(), *self._emptying}
        if tasks:
            await asyncio.wait(tasks)

    async def close(
        self,
        session: Session,
        by: str,
        reason: str,
        remember: Remember | None,
        *,
        read_seq: int = 0,
    ) -> None:
        """Close a session; see `close_for_good`.

        Raises:
            StoreError: It could not be kept.
        """
        id_ = session.log.session
        if session.closed and id_ not in self._closing:
            return
        await _shared(
            self._closing,
            id_,
            functools.partial(
                close_for_good,
                session,
                by=by,
                reason=reason,
                remember=remember,
                read_seq=read_seq,
            ),
        )

    async def delete(self, id_: SessionId, user: str, remember: Remember | None) -> SessionDeleted:
        """Close a user's session and remove all of it.

        Raises:
            SessionGone: It was deleted already.
            StoreError: It could not be removed; it may be closed by now.
        """
        return await _shared(
            self._deleting, id_, functools.partial(self._delete, id_, user, remember)
        )

    async def _delete(self, id_: SessionId, user: str, remember: Remember | None) -> SessionDeleted:
        with self._live.barred(id_):
            session = await self._live.settle(id_)
            if session is not None:
                await self.close(session, user, DELETED, None)
                await self._live.forget(id_)
            now_ms = self._now_ms()
            until = format_time(now_ms + tombstones.KEPT_MS)
            deleted = SessionDeleted(session=id_, until=until)
            bury = functools.partial(
                tombstones.bury,
                session=id_,
                user=user,
                now_ms=now_ms,
                answer=None if remember is None else remember(deleted),
            )
            if not await self._store.write(bury):
                raise gone(id_)
        await self._empty(id_)
        return deleted

    async def _empty(self, id_: SessionId) -> None:
        """Remove a buried session's checkpoints, then its log, piece by piece."""
        await self._kept.forget(id_)
        remove = functools.partial(tombstones.remove_some, session=id_)
        while not self._ended and await self._store.write(remove):
            pass

    async def _finish(self, id_: SessionId) -> None:
        """Go on with a removal. A rim: what fails is told, and tried again at the next start."""
        try:
            await self._empty(id_)
        except TowlineError as error:
            _log.error("Session %s is not removed yet: %s", id_, error.message)


async def _shared(
    tasks: dict[SessionId, asyncio.Task[_T]],
    id_: SessionId,
    work: Callable[[], Coroutine[None, None, _T]],
) -> _T:
    """Do the work once, however many ask for it while it runs."""
    task = tasks.get(id_)
    if task is None:
        task = tasks[id_] = asyncio.create_task(work())
        task.add_done_callback(functools.partial(_over, tasks, id_))
    return await asyncio.shield(task)


def _over(tasks: dict[SessionId, asyncio.Task[_T]], id_: SessionId, task: asyncio.Task[_T]) -> None:
    del tasks[id_]
    if not task.cancelled():
        task.exception()  # looked at: who waits raises it, if anybody does
