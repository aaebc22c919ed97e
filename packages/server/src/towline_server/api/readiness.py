"""Whether the server takes work: what a supervisor asks before it sends some."""

from collections.abc import Callable
from functools import partial
from typing import Final

from towline_protocol import format_time
from towline_server.api.stream import Streams
from towline_server.errors import Draining, Starting
from towline_server.sessions.registry import Sessions
from towline_server.store import meta
from towline_server.store.sqlite_store import SqliteStore

__all__ = ["Readiness"]

_TRUSTED_S: Final = 5.0  # anybody may ask, so a good answer is given again before the next write


class Readiness:
    """Knows whether sessions are up and the store takes a write."""

    def __init__(
        self,
        store: SqliteStore,
        sessions: Sessions,
        streams: Streams,
        *,
        now_ms: Callable[[], int],
        monotonic: Callable[[], float],
    ) -> None:
        self._store = store
        self._sessions = sessions
        self._streams = streams
        self._now_ms = now_ms
        self._monotonic = monotonic
        self._wrote: float | None = None

    async def check(self) -> None:
        """Return when the server takes work.

        Raises:
            Draining: It shuts down.
            Starting: Its sessions are not up yet.
            StoreError: The store takes no write; `StoreFull` when there is no room.
        """
        if self._streams.draining:
            raise Draining("The server shuts down; come back in a moment.", retry_after_s=5)
        if not self._sessions.started:
            raise Starting("The server is taking up its sessions; come back in a moment.")
        now = self._monotonic()
        if self._wrote is not None and now - self._wrote < _TRUSTED_S:
            return
        time = format_time(self._now_ms())
        await self._store.write(partial(meta.put, key="ready", value=time))
        self._wrote = now
