"""The same request again gives the same answer (C2.5)."""

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from towline_protocol import UsageError, encode
from towline_server.errors import KeyReused
from towline_server.store import idempotency
from towline_server.store.records import IdempotencyRecord
from towline_server.store.sqlite_store import SqliteStore

__all__ = ["Remember", "Repeats"]

_KEY_CHARS: Final = 200

Remember = Callable[[msgspec.Struct], IdempotencyRecord]
"""Makes the record of an answer, to be kept in the transaction of its effect."""


class _Turn:
    """The requests of one key that are here now."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.waiting = 0


class Repeats:
    """Finds and makes the records of idempotent requests.

    A request that comes again while the first one runs waits for it: there is one lock a key.
    """

    def __init__(self, store: SqliteStore, now_ms: Callable[[], int]) -> None:
        self._store = store
        self._now_ms = now_ms
        self._running: dict[tuple[str, str, str], _Turn] = {}

    @asynccontextmanager
    async def in_turn(self, request: Request, user: str) -> AsyncGenerator[None]:
        """Hold back a request while one with its key runs."""
        key = request.headers.get("idempotency-key")
        if key is None:
            yield
            return
        name = (user, request.url.path, key)
        turn = self._running.setdefault(name, _Turn())
        turn.waiting += 1
        try:
            async with turn.lock:
                yield
        finally:
            turn.waiting -= 1
            if not turn.waiting:
                del self._running[name]

    async def find(
        self, request: Request, user: str, operation: str, raw: bytes
    ) -> Response | None:
        """The answer that this request got before.

        Raises:
            UsageError: The key is too long.
            KeyReused: The key came with another body.
        """
        key = request.headers.get("idempotency-key")
        if key is None:
            return None
        if not key or len(key) > _KEY_CHARS:
            raise UsageError(f"An Idempotency-Key has 1 to {_KEY_CHARS} characters.")
        record = await self._store.query(
            partial(
                idempotency.find,
                user=user,
                operation=operation,
                path=request.url.path,
                key=key,
                now_ms=self._now_ms(),
            )
        )
        if record is None:
            return None
        if record.body_sha256 != _digest(raw):
            raise KeyReused(
                f"The Idempotency-Key {key!r} was used with another body; take a new key."
            )
        return Response(record.answer, status_code=record.status, media_type="application/json")

    def remember(
        self, request: Request, user: str, operation: str, raw: bytes, status: int
    ) -> Remember | None:
        """How to keep the answer to this request; `None` when it has no key."""
        key = request.headers.get("idempotency-key")
        if key is None:
            return None

        def record(answer: msgspec.Struct) -> IdempotencyRecord:
            return IdempotencyRecord(
                user=user,
                operation=operation,
                path=request.url.path,
                key=key,
                body_sha256=_digest(raw),
                status=status,
                answer=encode(answer),
                created_ms=self._now_ms(),
            )

        return record


def _digest(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()
