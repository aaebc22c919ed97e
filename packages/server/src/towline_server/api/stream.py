"""The event streams (C3): opened here, ended when the reader or the server goes."""

import random
from typing import Final

from starlette.requests import Request

from towline_agent import Clock
from towline_protocol import Hello, SessionId, format_time
from towline_server.errors import Draining
from towline_server.sessions.registry import Sessions
from towline_server.store.event_store import EventStore
from towline_server.stream.follow import Cursor, catch_up
from towline_server.stream.pump import HEARTBEAT_S, STALL_S, EventStream

__all__ = ["Streams"]

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
        id_ = SessionId(request.path_params["session"])
        session = await self._sessions.get(user, id_)
        self._refuse_while_draining()  # a load may have taken its time
        query = request.query_params
        cursor = Cursor(
            request.headers.get("last-event-id") or query.get("after"), query.get("log")
        )
        reader = query.get("reader")
        subscriber = session.log.hub.join(None if reader is None else reader[:_READER_CHARS])
        hello = Hello(
            log=self._store.log,
            last_seq=session.last_seq,
            now=format_time(self._clock.now_ms()),
            server_version=self._version,
            web_build=self._web_build,
        )
        replay = catch_up(id_, session, subscriber, store=self._store, cursor=cursor, hello=hello)
        return EventStream(subscriber, replay, heartbeat_s=self._heartbeat_s, stall_s=self._stall_s)

    def _refuse_while_draining(self) -> None:
        if self.draining:
            raise Draining("The server shuts down; come back in a moment.", retry_after_s=5)

    def drain(self) -> None:
        """Tell every reader to come back later, and take no new one (C5.14)."""
        if self.draining:
            return
        self.draining = True
        for session in self._sessions.live:
            session.log.hub.drain(lambda: random.randint(*_RESET_MS))  # noqa: S311 - spreads load
