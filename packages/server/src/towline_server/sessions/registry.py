"""All sessions: made, found, changed, ended; what is in memory stands in `live.py`."""

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from towline_agent import Clock, Mint, end_orphans
from towline_protocol import (
    CreateSession,
    Event,
    Notice,
    SessionDeleted,
    SessionId,
    SessionInfo,
    SessionList,
    SessionUpdated,
    TowlineError,
    TurnId,
)
from towline_server.errors import StoreError
from towline_server.sessions.agents import Agents
from towline_server.sessions.budget import Budget
from towline_server.sessions.catalog import Catalog, describe, not_found
from towline_server.sessions.closing import Endings
from towline_server.sessions.creation import begin, begin_fork
from towline_server.sessions.deadline import Patience
from towline_server.sessions.feed import FEED_ROWS, Feeds
from towline_server.sessions.files import Files
from towline_server.sessions.folder import find_folder
from towline_server.sessions.fork import take_upto
from towline_server.sessions.inbox import Said
from towline_server.sessions.kept_files import KeptFiles
from towline_server.sessions.lead import Remember
from towline_server.sessions.live import IDLE_S, MAX_LIVE, LiveSessions, read_log
from towline_server.sessions.log import Log
from towline_server.sessions.recovery import Loaded, read_piece
from towline_server.sessions.session import Session
from towline_server.sessions.settings import (
    CheckTag,
    check_mode,
    clean_labels,
    clean_title,
    find_changes,
    settings_tag,
)
from towline_server.sessions.staff import SessionStaff
from towline_server.store.records import (
    NEWEST,
    SessionFilter,
    SessionRow,
    format_cursor,
    parse_cursor,
)
from towline_server.store.sqlite_store import SqliteStore
from towline_server.stream.hub import Hub

__all__ = ["Sessions"]

_log: Final = logging.getLogger("towline.server")

_MAX_NEEDING: Final = 200  # more than anybody can answer
_PATIENCE: Final = Patience()


class Sessions:
    """The sessions of one store; the only owner of what is in memory (C5.3)."""

    def __init__(
        self,
        store: SqliteStore,
        *,
        agents: Agents,
        clock: Clock,
        mint: Mint,
        roots: tuple[Path, ...],
        budget: Budget,
        files: Files,
        kept: KeptFiles,
        mode: str = "ask",
        patience: Patience = _PATIENCE,
        idle_s: float = IDLE_S,
        max_live: int = MAX_LIVE,
        notes: Path | None = None,
    ) -> None:
        self.started = False
        """Whether what a crash cut has been taken up."""
        self.max_live = max_live
        """Sessions of a user that may be live at once (C6)."""
        self._store = store
        self._agents = agents
        self._clock = clock
        self._mint = mint
        self._roots = roots
        self._budget = budget
        self._files = files
        self._kept = kept
        self._mode = mode
        self._patience = patience
        self.feeds = Feeds()
        """The users' own feeds (C2.12)."""
        self.on_event: Callable[[Session, Event], None] = lambda session, event: None
        """Told of each event of each session, once it is shown."""
        self._closing = False
        self._catalog = Catalog(store, clock.now_ms)
        self._live = LiveSessions(
            store, kept=kept, build=self._build, clock=clock, idle_s=idle_s, most=max_live
        )
        self._endings = Endings(self._live, store, clock.now_ms, kept)
        self.staff = SessionStaff(self._live, store, self._endings, lambda: self._closing)
        """Where the sessions of sub-agents are."""
        self._notes = notes

    async def start(self) -> int:
        """Resume what a crash cut and what still waits (C5.3, C5.4).

        Returns:
            How many sessions were taken up again.
        """
        await self._kept.recover(self._agents.projects.check)
        self._live.start()
        await end_orphans()  # also jobs of sessions that nobody opens
        await self._endings.start()
        resumed = 0
        for row in await self._unfinished():
            try:
                resumed += (await self._live.open(row.id)).busy
            except TowlineError as error:
                _log.error("Session %s cannot be taken up: %s", row.id, error.message)
        self.started = True
        return resumed

    async def create(
        self,
        user: str,
        new: CreateSession,
        *,
        first: Said | None = None,
        remember: Remember | None = None,
    ) -> Session:
        """Begin a session, with a first prompt if one is given; durable when this returns.

        Args:
            user: Whose it is.
            new: What it is made of.
            first: Its first prompt, as it is kept.
            remember: How to keep the answer.

        Raises:
            UsageError: The agent, the mode or a label does not hold.
            Rejected: A client tool or the model does not hold.
            RootForbidden: `cwd` lies outside the roots (D2).
            SessionLimit: As many of the user's sessions are live as may be (C6).
            StoreError: It could not be kept.
        """
        mode = self._mode
        if new.mode is None:
            mode = await self.usual_mode(user, find_folder(new.cwd, self._roots))
        created = begin(new, agents=self._agents, roots=self._roots, mode=mode)
        if first is not None:
            await self._budget.check(user)
        self._live.check_limit(user)
        session = self._live.add(SessionId(self._mint("ses")), user, Loaded())
        session.log.emit(created)
        if first is not None:
            session.inbox.take(first)
        if remember is not None:
            session.log.keep(remember(session.info(ahead=True)))
        await session.log.settle()
        session.runner.wake()
        return session

    async def usual_mode(self, user: str, folder: str) -> str:
        """The mode of a session in a folder that names none (A5.46)."""
        return await self._agents.projects.policies.mode(user, folder) or self._mode

    async def fork(
        self,
        user: str,
        session: SessionId,
        *,
        turn: TurnId | None = None,
        title: str | None = None,
        remember: Remember | None = None,
    ) -> Session:
        """Begin a session with what another one said up to a turn; durable when this returns.

        Raises:
            SessionNotFound: There is no such session or turn.
            SessionBusy: The turn has not ended.
            Rejected: It is too long.
            SessionLimit: As many of the user's sessions are live as may be (C6).
            StoreError: It could not be kept.
        """
        source = await self.get(user, session)
        pages = read_log(self._store, session, source.last_seq)
        log = [read_piece(row) async for page in pages for row in page]
        pieces = take_upto(log, turn)
        created = begin_fork(source, title)
        id_ = SessionId(self._mint("ses"))
        turns = {piece.envelope.turn for piece in pieces if piece.envelope.turn is not None}
        await self._kept.copy(session, id_, turns)
        self._live.check_limit(user)
        fork = self._live.add(id_, user, Loaded())
        fork.log.emit(created)
        for piece in pieces:
            fork.log.copy(*piece)
        fork.log.emit(Notice(code="forked", message="This session goes on from another one."))
        if remember is not None:
            fork.log.keep(remember(fork.info(ahead=True)))
        await fork.log.settle()
        return fork

    async def get(self, user: str, session: SessionId, *, live: bool = False) -> Session:
        """A session, loaded if it is not in memory.

        Args:
            user: Who asks.
            session: Its id.
            live: Whether the caller is about to make it live: to prompt it, or to follow it.

        Raises:
            SessionNotFound: There is none of that id for this user (C2.9).
            SessionGone: It is deleted (C2.10).
            SessionLimit: As many of the user's sessions are live as may be (C6).
            StoreError: It cannot be read.
        """
        found = self._live.find(session)
        if found is None:
            await self._catalog.find(user, session)
            found = await self._live.open(session)
        elif found.log.user != user:
            raise not_found(session)
        self._live.touch(session)
        if live:
            self._live.check_limit(user, found)
        return found

    async def find_dormant(self, user: str, session: SessionId) -> SessionRow | None:
        """The row of a session that `get` would have to load; `None` when it is in memory.

        Raises:
            SessionNotFound: There is none of that id for this user (C2.9).
            SessionGone: It is deleted (C2.10).
            SessionLimit: As many of the user's sessions are live as may be (C6).
            StoreError: The store cannot be read.
        """
        if self._live.find(session) is not None:
            return None
        row = await self._catalog.find(user, session)
        if self._live.find(session) is not None:
            return None
        self._live.check_limit(user)
        return row

    async def info(self, user: str, session: SessionId) -> SessionInfo:
        """A session's row of the list; loads nothing.

        Raises:
            SessionNotFound: There is none of that id for this user (C2.9).
            SessionGone: It is deleted (C2.10).
            StoreError: The store cannot be read.
        """
        return self._shown(await self._catalog.find(user, session))

    async def page(
        self, user: str, limit: int, after: str | None, only: SessionFilter | None = None
    ) -> SessionList:
        """Sessions of a user, newest first.

        Raises:
            CursorExpired: `after` is no cursor of the list.
            StoreError: The store cannot be read.
        """
        return await self._catalog.page(user, only or SessionFilter(), limit, after, self._shown)

    async def needing(self, user: str) -> list[Session]:
        """A user's sessions in which something waits for a person or a client, 200 at most.

        Raises:
            StoreError: The store cannot be read.
        """
        found: list[Session] = []
        for archived in (False, True):
            only = SessionFilter(archived=archived, needs=True)
            for row in await self._store.sessions(user=user, only=only, limit=_MAX_NEEDING):
                try:
                    found.append(await self._live.open(row.id))
                except TowlineError as error:  # one log that cannot be read hides no other one
                    _log.error("Session %s cannot be taken up: %s", row.id, error.message)
        mine = [live for live in self.live if live.log.user == user and live not in found]
        return [*found, *(live for live in mine if live.client_calls.waiting)][:_MAX_NEEDING]

    async def update(
        self,
        user: str,
        session: SessionId,
        wanted: SessionUpdated,
        *,
        check: CheckTag = lambda tag: None,
        remember: Remember | None = None,
    ) -> SessionInfo:
        """Change what people set on a session; a running turn keeps its own (C2.9).

        Args:
            user: Who asks.
            session: Its id.
            wanted: What shall be so; fields that are `None` stay.
            check: Told the settings' `ETag` before anything is changed; may refuse.
            remember: How to keep the answer.

        Returns:
            The session's row as it is now.

        Raises:
            UsageError: The mode, the title or a label does not hold.
            Rejected: The model cannot be had.
            SessionNotFound: There is none of that id for this user.
            SessionGone: It is deleted; or it is closed, and the change is for its turns.
            StoreError: It could not be kept.
        """
        wanted = self._cleaned(wanted)
        read_seq = (await self._catalog.find(user, session)).read_seq
        found = await self.get(user, session)
        view = found.log.ahead.view
        check(settings_tag(view))
        changes = find_changes(view, wanted)
        if changes is None:
            return found.info(read_seq=read_seq)
        if changes.model is not None or changes.mode is not None:
            found.inbox.check_open(view)
        found.log.emit(changes, outside=True)
        answer = found.info(ahead=True, read_seq=read_seq)
        if remember is not None:
            found.log.keep(remember(answer))
        await found.log.settle()
        if changes.mode is not None:
            await self._keep_mode(user, view.cwd, changes.mode)
        return answer

    async def _keep_mode(self, user: str, cwd: str | None, mode: str) -> None:
        """Note the mode for the project's next session (A5.46); this one has it either way."""
        try:
            await self._agents.projects.policies.keep_mode(user, cwd or ".", mode)
        except StoreError as error:
            _log.warning("The mode of a project was not noted: %s", error.message)

    def _cleaned(self, wanted: SessionUpdated) -> SessionUpdated:
        """A wish as it may stand in the log."""
        if wanted.mode is not None:
            check_mode(wanted.mode)
        if wanted.model is not None:
            self._agents.check_model(wanted.model)
        return msgspec.structs.replace(
            wanted,
            title=None if wanted.title is None else clean_title(wanted.title),
            labels=None if wanted.labels is None else clean_labels(wanted.labels),
        )

    async def mark_read(self, user: str, session: SessionId, seq: int) -> int:
        """Note how far a user has read; see `Catalog.mark_read`."""
        stands = await self._catalog.mark_read(user, session, seq)
        self.feeds.note_read(user, session, stands)
        self._tell(session)
        return stands

    async def close_session(
        self, user: str, session: SessionId, *, reason: str, remember: Remember | None = None
    ) -> SessionInfo:
        """Close a session for good; it stays readable (C2.10). A closed one stays as it is.

        Raises:
            SessionNotFound: There is none of that id for this user.
            SessionGone: It is deleted.
            StoreError: It could not be kept.
        """
        read_seq = (await self._catalog.find(user, session)).read_seq
        found = await self.get(user, session)
        await self._endings.close(found, user, reason, remember, read_seq=read_seq)
        await self.staff.close_all(session, user, reason)
        return await self.info(user, session)

    async def delete_session(
        self, user: str, session: SessionId, *, remember: Remember | None = None
    ) -> SessionDeleted:
        """Close a session and remove all of it (C2.10).

        Raises:
            SessionNotFound: There is none of that id for this user.
            SessionGone: It is deleted already.
            StoreError: It could not be removed; it may be closed by now.
        """
        await self._catalog.find(user, session)
        await self.staff.delete_all(session, user)
        deleted = await self._endings.delete(session, user, remember)
        self.feeds.drop(user, session)
        return deleted

    async def trim(self) -> None:
        """Let go of the oldest checkpoints when they take too much room."""
        await self._kept.trim()

    async def drain(self, grace_s: float) -> None:
        """Let running turns end; interrupt those that take too long (C5.14)."""
        self._closing = True
        await asyncio.gather(*(session.drain(grace_s) for session in self._live.all))

    async def close(self) -> None:
        """Leave memory; open turns stay open in the log."""
        self._closing = True
        await self._live.close()
        await self._endings.end()
        self._kept.close()

    @property
    def live(self) -> tuple[Session, ...]:
        """The sessions in memory."""
        return self._live.all

    async def _unfinished(self) -> list[SessionRow]:
        rows: list[SessionRow] = []
        while True:
            after = parse_cursor(format_cursor(rows[-1])) if rows else NEWEST
            page = await self._store.sessions(user=None, after=after)
            if not page:
                return rows
            rows.extend(page)

    def _build(
        self, id_: SessionId, user: str, loaded: Loaded, on_broken: Callable[[StoreError], None]
    ) -> Session:
        log = Log(
            id_,
            user,
            loaded,
            store=self._store,
            hub=Hub(),
            now_ms=self._clock.now_ms,
            on_broken=on_broken,
            on_shown=lambda: self._tell(id_),
            on_usage=self._budget.note,
        )
        session = Session(
            log,
            agents=self._agents,
            clock=self._clock,
            mint=self._mint,
            patience=self._patience,
            budget=self._budget,
            files=self._files,
            kept=self._kept,
            keeper=self._live.keeper,
            staff=self.staff,
            find_boss=self.get,
            notes=self._notes,
            draining=self._closing,
        )
        log.on_event = lambda event: self.on_event(session, event)
        return session

    def _tell(self, id_: SessionId) -> None:
        """Tell the feed of the session's user how it stands now."""
        session = self._live.find(id_)
        if session is None or session.lead.parent is not None:
            return  # a sub-agent's is in no list
        if self.feeds.watches(session.log.user):
            self.feeds.tell(session.log.row(), live=session.live)

    async def feed_rows(self, user: str) -> bytes:
        """What a user's feed begins with: the newest sessions, and all that need somebody.

        Raises:
            StoreError: The store cannot be read.
        """
        newest = await self._store.sessions(user=user, limit=FEED_ROWS)
        only = SessionFilter(needs=True)
        needing = await self._store.sessions(user=user, only=only, limit=_MAX_NEEDING)
        rows = {row.id: row for row in (*newest, *needing)}
        return self.feeds.snapshot(user, map(self._seen, rows.values()))

    def _seen(self, row: SessionRow) -> tuple[SessionRow, bool]:
        session = self._live.find(row.id)
        if session is None or not session.last_seq:  # its first events are just being told of
            return row, False
        return msgspec.structs.replace(session.log.row(), read_seq=row.read_seq), session.live

    def _shown(self, row: SessionRow) -> SessionInfo:
        """A row as it is in memory, if it is there; how far it was read stands in the store."""
        seen, live = self._seen(row)
        return describe(seen, live=live)
