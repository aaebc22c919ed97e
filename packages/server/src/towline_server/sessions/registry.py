"""All sessions: made, found, loaded when needed, resumed at the start, unloaded when idle."""

import asyncio
import functools
import logging
from pathlib import Path
from typing import Final

from towline_agent import MODES, Clock, Mint, kill_process
from towline_protocol import (
    Block,
    Fault,
    SessionCreated,
    SessionId,
    SessionInfo,
    SessionList,
    TowlineError,
    TurnId,
    UsageError,
    format_time,
)
from towline_server.errors import RootForbidden, SessionNotFound, StoreError, StoreFull
from towline_server.sessions.agents import DEFAULT_AGENT, Agents
from towline_server.sessions.log import Log
from towline_server.sessions.recovery import Loaded, load
from towline_server.sessions.request import Remember
from towline_server.sessions.session import Session
from towline_server.store.event_store import EventStore
from towline_server.store.records import NEWEST, SessionRow, StoredRow, format_cursor, parse_cursor
from towline_server.stream.hub import Hub

__all__ = ["IDLE_S", "Sessions"]

_log: Final = logging.getLogger("towline.server")

IDLE_S: Final = 300.0
"""Seconds after which an idle session leaves memory (C6)."""


class Sessions:
    """The sessions of one store; the only owner of what is in memory (C5.3)."""

    def __init__(
        self,
        store: EventStore,
        *,
        agents: Agents,
        clock: Clock,
        mint: Mint,
        roots: tuple[Path, ...],
        mode: str = "ask",
        permission_window_s: float = 120.0,
        idle_s: float = IDLE_S,
    ) -> None:
        self._store = store
        self._agents = agents
        self._clock = clock
        self._mint = mint
        self._roots = roots
        self._mode = mode
        self._window_s = permission_window_s
        self._idle_s = idle_s
        self._live: dict[SessionId, Session] = {}
        self._opening: dict[SessionId, asyncio.Task[Session]] = {}
        self._leaving: dict[SessionId, asyncio.Task[None]] = {}
        self._full: dict[SessionId, Fault] = {}
        self._touched: dict[SessionId, float] = {}
        self._reaper: asyncio.Task[None] | None = None
        self._closing = False

    async def start(self) -> int:
        """Resume what a crash cut and what still waits (C5.3, C5.4).

        Returns:
            How many sessions were taken up again.
        """
        self._reaper = asyncio.create_task(self._reap())
        resumed = 0
        for row in await self._unfinished():
            try:
                resumed += (await self._open(SessionId(row.id))).busy
            except TowlineError as error:
                _log.error("Session %s cannot be taken up: %s", row.id, error.message)
        return resumed

    async def create(
        self,
        user: str,
        *,
        agent: str | None = None,
        model: str | None = None,
        title: str | None = None,
        cwd: str | None = None,
        mode: str | None = None,
        prompt: tuple[Block, ...] | None = None,
        key: str | None = None,
        remember: Remember | None = None,
    ) -> Session:
        """Begin a session, with a first prompt if one is given; durable when this returns.

        Raises:
            UsageError: The agent or the mode does not exist.
            RootForbidden: `cwd` lies outside the roots (D2).
            StoreError: It could not be kept.
        """
        spec = self._agents.spec(agent or DEFAULT_AGENT)
        mode = mode or self._mode
        if mode not in MODES:
            raise UsageError(f"There is no mode {mode!r}; the modes are: {', '.join(MODES)}.")
        folder = self._folder(cwd)
        session = self._session(SessionId(self._mint("ses")), user, Loaded())
        session.log.emit(
            SessionCreated(
                agent=spec.name,
                model=model or self._agents.default_model,
                mode=mode,
                title=title,
                cwd=folder,
            )
        )
        if prompt is not None:
            session.take(prompt, key=key)
        if remember is not None:
            session.log.keep(remember(session.info(ahead=True)))
        await session.log.settle()
        session.wake()
        return session

    async def get(self, user: str, session: SessionId) -> Session:
        """A session, loaded if it is not in memory.

        Raises:
            SessionNotFound: There is none of that id for this user (C2.9).
            StoreError: It cannot be read.
        """
        live = self._live.get(session)
        if live is None:
            row = await self._store.session(session)
            if row is None or row.user != user:
                raise _not_found(session)
            live = await self._open(session)
        elif live.log.user != user:
            raise _not_found(session)
        if session in self._touched:
            self._touched[session] = self._clock.monotonic()
        return live

    async def page(self, user: str, limit: int, after: str | None) -> SessionList:
        """Sessions of a user, newest first."""
        cursor = NEWEST if after is None else parse_cursor(after)
        rows = await self._store.sessions(user=user, after=cursor, limit=limit + 1)
        shown = rows[:limit]
        return SessionList(
            sessions=tuple(self._info(row) for row in shown),
            next=format_cursor(shown[-1]) if len(rows) > limit else None,
        )

    async def drain(self, grace_s: float) -> None:
        """Let running turns end; interrupt those that take too long (C5.14)."""
        self._closing = True
        await asyncio.gather(*(session.drain(grace_s) for session in self._live.values()))

    async def close(self) -> None:
        """Leave memory; open turns stay open in the log."""
        self._closing = True
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
    def live(self) -> tuple[Session, ...]:
        """The sessions in memory."""
        return tuple(self._live.values())

    async def _open(self, id_: SessionId) -> Session:
        """A session, loaded once however many ask; who stops waiting does not stop the others."""
        live = self._live.get(id_)
        if live is not None:
            return live
        task = self._opening.get(id_)
        if task is None:
            task = self._opening[id_] = asyncio.create_task(self._load(id_))
            task.add_done_callback(functools.partial(self._opened, id_))
        return await asyncio.shield(task)

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
            raise _not_found(id_)
        loaded = load(await self._read_all(id_, row.last_seq))
        for process in loaded.processes.values():
            await kill_process(process)  # no child runs beside the resumed turn (C5.6)
        start = loaded.start(self._clock.now_ms())
        live = self._session(id_, row.user, loaded)
        fault = self._full.pop(id_, None)
        if start is not None:
            live.resume(start, fault)
        else:
            live.wake()
        return live

    async def _unfinished(self) -> list[SessionRow]:
        rows: list[SessionRow] = []
        while True:
            after = parse_cursor(format_cursor(rows[-1])) if rows else NEWEST
            page = await self._store.sessions(user=None, after=after)
            if not page:
                return rows
            rows.extend(page)

    async def _read_all(self, session: SessionId, upto: int) -> list[StoredRow]:
        rows: list[StoredRow] = []
        while True:
            after = rows[-1].seq if rows else 0
            page = await self._store.read(session, after=after, upto=upto)
            if not page:
                return rows
            rows.extend(page)

    def _session(self, id_: SessionId, user: str, loaded: Loaded) -> Session:
        log = Log(
            id_,
            user,
            loaded,
            store=self._store,
            hub=Hub(),
            now_ms=self._clock.now_ms,
            on_broken=lambda error: self._drop(id_, error),
        )
        session = Session(
            log,
            agents=self._agents,
            clock=self._clock,
            mint=self._mint,
            permission_window_s=self._window_s,
            draining=self._closing,
        )
        self._live[id_] = session
        self._touched[id_] = self._clock.monotonic()
        return session

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

    def _info(self, row: SessionRow) -> SessionInfo:
        live = self._live.get(SessionId(row.id))
        if live is not None:
            return live.info()
        return SessionInfo(
            id=SessionId(row.id),
            agent=row.agent,
            model=row.model,
            mode=row.mode,
            live=False,
            last_seq=row.last_seq,
            turn=None if row.turn is None else TurnId(row.turn),
            pending=row.pending,
            queued=row.queued,
            title=row.title,
            cwd=row.cwd,
            created=format_time(row.created_ms),
            updated=format_time(row.updated_ms),
            closed=row.closed,
        )

    def _folder(self, cwd: str | None) -> str:
        """The folder to work in, if it lies in a root (D2)."""
        try:
            folder = Path(cwd).expanduser().resolve() if cwd else self._roots[0].resolve()
            found = folder.is_dir()
        except (OSError, RuntimeError, ValueError) as error:  # no access, `~nobody`, a NUL
            raise UsageError(f"{cwd!r} is no folder that can be used; name another one.") from error
        if not any(folder.is_relative_to(root.resolve()) for root in self._roots):
            roots = ", ".join(str(root) for root in self._roots)
            raise RootForbidden(
                f"{str(folder)!r} lies outside the folders this server may work in ({roots}); add "
                "it to `roots` in config.toml."
            )
        if not found:
            raise UsageError(f"{str(folder)!r} is not a folder; make it or name another one.")
        return str(folder)

    async def _reap(self) -> None:
        """Unload sessions that nobody uses."""
        while True:
            await self._clock.sleep(self._idle_s / 5)
            now = self._clock.monotonic()
            for id_, session in list(self._live.items()):
                idle = now - self._touched[id_] > self._idle_s
                if idle and not session.busy and session.log.hub.readers == 0:
                    self._unload(id_)


def _not_found(session: SessionId) -> SessionNotFound:
    return SessionNotFound(f"There is no session {session!r}; list the sessions to find it.")
