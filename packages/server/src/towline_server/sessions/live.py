"""The sessions in memory: each loaded once, a few a user, unloaded when idle (C6)."""

import asyncio
import contextlib
import functools
import logging
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Generator
from typing import Final

from towline_agent import Clock, Keeper, kill_left
from towline_protocol import Fault, SessionId, SessionView, TurnId
from towline_server.errors import SessionLimit, StoreError, StoreFull
from towline_server.sessions.catalog import gone, not_found
from towline_server.sessions.kept_files import KeptFiles
from towline_server.sessions.recovery import Loaded, load
from towline_server.sessions.session import Session
from towline_server.store.event_store import EventStore
from towline_server.store.records import StoredRow

__all__ = ["IDLE_S", "MAX_LIVE", "Build", "LiveSessions", "read_log"]

_log: Final = logging.getLogger("towline.server")

IDLE_S: Final = 300.0
"""Seconds after which an idle session leaves memory (C6)."""
MAX_LIVE: Final = 8
"""Sessions of a user that may be live at once, and that are kept in memory (C6)."""

_PAGE_ROWS: Final = 1024  # folded in some 10 ms; with fewer, a long log waits for the loop often
_RETRY_S: Final = 5.0  # turns end and readers leave within seconds or minutes
_LOOKS: Final = 5  # an idle session leaves after at most 1 + 1/5 of its time

Build = Callable[[SessionId, str, Loaded, Callable[[StoreError], None]], Session]
"""Makes a session out of its id, its user, its state, and whom to tell when its log breaks."""


class LiveSessions:
    """What is in memory. Everything that waits is a task that others may wait for too."""

    def __init__(
        self,
        store: EventStore,
        *,
        kept: KeptFiles,
        build: Build,
        clock: Clock,
        idle_s: float = IDLE_S,
        most: int = MAX_LIVE,
    ) -> None:
        self._store = store
        self._checkpoints = kept
        self._build = build
        self._clock = clock
        self._idle_s = idle_s
        self._most = most
        self._live: dict[SessionId, Session] = {}
        self._opening: dict[SessionId, asyncio.Task[Session]] = {}
        self._leaving: dict[SessionId, asyncio.Task[None]] = {}
        self._barred: set[SessionId] = set()
        self._wanted: Counter[SessionId] = Counter()
        self._full: dict[SessionId, Fault] = {}
        self._touched: dict[SessionId, float] = {}
        self._reaper: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to look for sessions that nobody uses."""
        self._reaper = asyncio.create_task(self._reap())

    async def close(self) -> None:
        """Let everything leave memory; open turns stay open in the log."""
        if self._reaper is not None:
            self._reaper.cancel()
            await asyncio.wait({self._reaper})
        if self._opening:
            await asyncio.wait(self._opening.values())
        for session in list(self._live):
            self._unload(session)
        if self._leaving:
            await asyncio.wait(self._leaving.values())

    @property
    def all(self) -> tuple[Session, ...]:
        """The sessions in memory."""
        return tuple(self._live.values())

    def find(self, id_: SessionId) -> Session | None:
        """A session, if it is in memory."""
        return self._live.get(id_)

    def touch(self, id_: SessionId) -> None:
        """Note that somebody uses it."""
        if id_ in self._touched:
            self._touched[id_] = self._clock.monotonic()

    def add(self, id_: SessionId, user: str, loaded: Loaded) -> Session:
        """Take a session into memory; the idlest of its user makes room for it."""
        session = self._build(id_, user, loaded, functools.partial(self._drop, id_))
        self._live[id_] = session
        self._touched[id_] = self._clock.monotonic()
        with self._kept(id_):
            self._make_room(user)
        return session

    def check_limit(self, user: str, session: Session | None = None) -> None:
        """Refuse to make one more session of a user live (C6).

        Args:
            user: Whose sessions count.
            session: The one that is about to be live; `None` for a new one.

        Raises:
            SessionLimit: All places are taken by sessions that are busy.
        """
        if session is not None and session.active:
            return
        mine = [other for other in self._live.values() if other.log.user == user]
        active = sum(other.active and other.lead.parent is None for other in mine)
        if active >= self._most:
            raise SessionLimit(
                f"{active} of your sessions are at work or being read; stop or leave one of them, "
                "then try again.",
                retry_after_s=_RETRY_S,
                reason="session_limit",
            )

    async def open(self, id_: SessionId) -> Session:
        """A session, loaded once however many ask; who stops waiting does not stop the others.

        It stays in memory at least until the caller waits for something else.

        Raises:
            SessionNotFound: There is none of that id.
            SessionGone: It is being deleted.
            StoreError: It cannot be read.
        """
        live = self._live.get(id_)
        if live is not None:
            return live
        if id_ in self._barred:
            raise gone(id_)
        task = self._opening.get(id_)
        if task is None:
            task = self._opening[id_] = asyncio.create_task(self._load(id_))
            task.add_done_callback(functools.partial(self._opened, id_))
        with self._kept(id_):
            return await asyncio.shield(task)

    @contextlib.contextmanager
    def barred(self, id_: SessionId) -> Generator[None]:
        """Let nobody load a session while it is taken away."""
        self._barred.add(id_)
        try:
            yield
        finally:
            self._barred.discard(id_)

    async def settle(self, id_: SessionId) -> Session | None:
        """A session once nobody loads it any more; `None` when it is not in memory then."""
        opening = self._opening.get(id_)
        if opening is not None:
            await asyncio.wait({opening})
        return self._live.get(id_)

    async def forget(self, id_: SessionId) -> None:
        """Let a session leave memory; nothing of it runs when this returns."""
        if id_ in self._live:
            self._unload(id_)
        leaving = self._leaving.get(id_)
        if leaving is not None:
            await asyncio.wait({leaving})

    def keeper(self, view: SessionView, turn: TurnId | None) -> Keeper | None:
        """What keeps the files of a turn; a sub-agent's belong to the turn that it works for."""
        if turn is None:
            return None
        session, root = view.session, view.cwd or "."
        while view.parent is not None:
            above = self.find(view.parent.session)
            if above is None or above.log.turn is None:
                break  # it outlived that turn
            session, turn, view = above.log.session, above.log.turn, above.log.ahead.view
        return self._checkpoints.keeper(session, turn, root)

    def _opened(self, id_: SessionId, task: asyncio.Task[Session]) -> None:
        del self._opening[id_]
        if not task.cancelled():
            task.exception()  # looked at: who waits raises it, if anybody does

    async def _load(self, id_: SessionId) -> Session:
        """Read a session's log and take up what was cut."""
        leaving = self._leaving.get(id_)
        if leaving is not None:
            await asyncio.wait({leaving})  # its old turn must not run beside the resumed one
        row = await self._store.session(id_)
        if row is None:
            raise not_found(id_)
        loaded = Loaded()
        async for page in read_log(self._store, id_, row.last_seq):
            load(page, loaded)  # between two pages the loop is with the other sessions
        # No child runs beside the resumed turn (C5.6), and no job that nobody holds any more.
        await kill_left((*loaded.processes.values(), *loaded.jobs.values()))
        untold = await self._checkpoints.untold(id_)
        start = loaded.start(self._clock.now_ms())
        live = self.add(id_, row.user, loaded)
        if live.log.row().last_line != row.last_line:
            live.log.keep_row()
        live.tell_cut()
        live.going_back.tell(untold)
        fault = self._full.pop(id_, None)
        if start is not None:
            live.runner.resume(start, fault)
        else:
            live.runner.wake()
        await live.going_back.note_told(untold)
        return live

    @contextlib.contextmanager
    def _kept(self, id_: SessionId) -> Generator[None]:
        """Somebody is about to use the session: it does not make room for others."""
        self._wanted[id_] += 1
        try:
            yield
        finally:
            self._wanted[id_] -= 1
            if not self._wanted[id_]:
                del self._wanted[id_]

    def _make_room(self, user: str) -> None:
        """Unload the idlest sessions of a user that has too many in memory."""
        mine = [id_ for id_, session in self._live.items() if session.log.user == user]
        idle = [id_ for id_ in mine if self._live[id_].idle and not self._wanted[id_]]
        too_many = max(0, len(mine) - self._most)
        for id_ in sorted(idle, key=self._touched.__getitem__)[:too_many]:
            self._unload(id_)

    def _drop(self, id_: SessionId, error: StoreError) -> None:
        """A commit failed: nothing uncommitted was shown; the next use loads from the store."""
        _log.error("Session %s leaves memory: %s", id_, error.message)
        session = self._live.get(id_)
        if session is None:
            return  # it is leaving already
        if isinstance(error, StoreFull) and session.last_seq:
            self._full[id_] = error.fault()  # its turn ends with this when there is room (C1.21)
        self._unload(id_)

    def _unload(self, id_: SessionId) -> None:
        """Forget a session; what it still does is ended in a task, which a new load waits for."""
        session = self._live.pop(id_)
        del self._touched[id_]
        task = self._leaving[id_] = asyncio.create_task(session.close())
        task.add_done_callback(lambda _: self._leaving.pop(id_))

    async def _reap(self) -> None:
        """Unload sessions that nobody uses."""
        while True:
            await self._clock.sleep(self._idle_s / _LOOKS)
            now = self._clock.monotonic()
            for id_, session in list(self._live.items()):
                unused = now - self._touched[id_] > self._idle_s
                if unused and session.idle and not self._wanted[id_]:
                    self._unload(id_)
            for user in {session.log.user for session in self._live.values()}:
                self._make_room(user)  # those that were busy when others came


async def read_log(
    store: EventStore, session: SessionId, upto: int
) -> AsyncGenerator[list[StoredRow]]:
    """All events of a session up to a number, page by page, so that nobody else waits for long.

    Raises:
        StoreError: They cannot be read.
    """
    after = 0
    while page := await store.read(session, after=after, upto=upto, limit=_PAGE_ROWS):
        yield page
        after = page[-1].seq
