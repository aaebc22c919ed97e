"""The event streams (C3): opened here, ended when the reader or the server goes."""

import logging
import random
from collections.abc import AsyncGenerator, Callable
from functools import partial
from typing import Final

from starlette.requests import Request

from towline_agent import Clock
from towline_protocol import (
    Hello,
    Reset,
    SessionId,
    TowlineError,
    encode,
    encode_event,
    format_time,
)
from towline_server.errors import Draining
from towline_server.sessions.registry import Sessions
from towline_server.sessions.session import Session
from towline_server.store.event_store import PAGE_ROWS, EventStore
from towline_server.store.records import SessionRow
from towline_server.stream.follow import (
    Cursor,
    Source,
    Stored,
    after_first,
    and_then,
    begin,
    catch_up,
    find_start,
)
from towline_server.stream.hub import Subscriber
from towline_server.stream.pump import HEARTBEAT_S, STALL_S, EventStream

__all__ = ["Streams"]

_log: Final = logging.getLogger("towline.server")

_RESET_MS: Final = (500, 3000)
"""Between these a reader comes back after a planned close, so that not all come at once (C3.6)."""
_READER_CHARS: Final = 64


class Streams:
    """Opens the streams of all sessions."""

    def __init__(
        self,
        sessions: Sessions,
        *,
        store: EventStore,
        clock: Clock,
        version: str,
        web_build: str | None = None,
        heartbeat_s: float = HEARTBEAT_S,
        stall_s: float = STALL_S,
    ) -> None:
        self.draining = False
        """Whether the server shuts down."""
        self._sessions = sessions
        self._store = store
        self._clock = clock
        self._version = version
        self._web_build = web_build
        self._heartbeat_s = heartbeat_s
        self._stall_s = stall_s

    async def open(self, request: Request, user: str) -> EventStream:
        """The stream of the session in the path, from the request's cursor on.

        Raises:
            SessionNotFound: There is no such session.
            TooManyReaders: All reader places are taken.
            Draining: The server shuts down.
        """
        self._refuse_while_draining()
        subscriber, replay = await self._follow(request, user, request.path_params["session"])
        return self._stream(subscriber, replay)

    async def open_feed(self, request: Request, user: str) -> EventStream:
        """The user's own feed; with a session in the query its frames as well (C2.12).

        Raises:
            SessionNotFound: There is no such session.
            TooManyReaders: All reader places are taken.
            Draining: The server shuts down.
            StoreError: The store cannot be read.
        """
        self._refuse_while_draining()
        feeds = self._sessions.feeds
        session = request.query_params.get("session")
        if session:
            subscriber, replay = await self._follow(request, user, session)
            feeds.tap(user, subscriber)
        else:
            subscriber, replay = feeds.join(user, _reader(request)), begin(self._hello(0))
        try:
            rows = await self._sessions.feed_rows(user)
        except BaseException:
            feeds.leave(user, subscriber)
            raise
        replay = after_first(replay, rows)
        return self._stream(subscriber, replay, partial(feeds.leave, user, subscriber))

    async def _follow(
        self, request: Request, user: str, session: str
    ) -> tuple[Subscriber, AsyncGenerator[bytes, None]]:
        """A place among a session's readers, and what they are told first."""
        query = request.query_params
        cursor = Cursor(
            request.headers.get("last-event-id") or query.get("after"), query.get("log")
        )
        reader = _reader(request)
        id_ = SessionId(session)
        row = await self._sessions.find_dormant(user, id_)
        if row is not None and _is_long(cursor, row.last_seq, self._store.log):
            self._refuse_while_draining()
            return self._follow_dormant(user, row, cursor, reader)
        found = await self._sessions.get(user, id_, live=True)
        self._refuse_while_draining()  # a load may have taken its time
        subscriber = found.log.hub.join(reader)
        replay = catch_up(
            found.log.session,
            found,
            subscriber,
            store=self._store,
            cursor=cursor,
            hello=self._hello(found.last_seq),
        )
        # A client that comes back is offered what it can run, once it knows all else (C5.12).
        return subscriber, and_then(replay, lambda: found.client_calls.offers(reader))

    def _follow_dormant(
        self, user: str, row: SessionRow, cursor: Cursor, reader: str | None
    ) -> tuple[Subscriber, AsyncGenerator[bytes, None]]:
        """The same for a long log that is not in memory: it is loaded behind its replay.

        Should that fail the stream ends, and the reader, who comes back with little to replay, is
        told why.
        """
        subscriber = Subscriber()
        loaded: list[Session] = []

        async def load() -> Source | None:
            try:
                found = await self._sessions.get(user, row.id, live=True)
                if self.draining:
                    subscriber.finish(_reset())
                elif not subscriber.ended:  # the reader may have left meanwhile
                    found.log.hub.join(reader, subscriber)
            except TowlineError as error:
                _log.warning("Session %s was read and not taken up: %s", row.id, error.message)
                subscriber.leave("refused")
                return None
            loaded.append(found)
            return found

        replay = catch_up(
            row.id,
            Stored(row.last_seq, row.closed),
            subscriber,
            store=self._store,
            cursor=cursor,
            hello=self._hello(row.last_seq),
            load=load,
        )

        def offers() -> bytes:
            return b"".join([found.client_calls.offers(reader) for found in loaded])

        return subscriber, and_then(replay, offers)

    def _hello(self, last_seq: int) -> Hello:
        return Hello(
            log=self._store.log,
            last_seq=last_seq,
            now=format_time(self._clock.now_ms()),
            server_version=self._version,
            web_build=self._web_build,
        )

    def _stream(
        self,
        subscriber: Subscriber,
        replay: AsyncGenerator[bytes, None],
        on_end: Callable[[], None] = lambda: None,
    ) -> EventStream:
        return EventStream(
            subscriber,
            replay,
            heartbeat_s=self._heartbeat_s,
            stall_s=self._stall_s,
            on_end=on_end,
        )

    def _refuse_while_draining(self) -> None:
        if self.draining:
            raise Draining("The server shuts down; come back in a moment.", retry_after_s=5)

    def drain(self) -> None:
        """Tell every reader to come back later, and take no new one (C5.14)."""
        if self.draining:
            return
        self.draining = True
        for session in self._sessions.live:
            session.log.hub.drain(_draw_retry)
        self._sessions.feeds.drain(_draw_retry)


def _is_long(cursor: Cursor, last: int, log: str) -> bool:
    """Whether more than a page is to be replayed."""
    after, gap = find_start(cursor, last, log)
    return gap is None and last - after > PAGE_ROWS


def _reset() -> bytes:
    return encode_event(encode(Reset(retry_ms=_draw_retry())), event="reset")


def _reader(request: Request) -> str | None:
    """How the reader names itself."""
    return request.query_params.get("reader", "")[:_READER_CHARS] or None


def _draw_retry() -> int:
    return random.randint(*_RESET_MS)  # noqa: S311 - spreads load
