"""The same request again gives the same answer (C2.5)."""

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from towline_protocol import UsageError, encode
from towline_server.errors import KeyReused, StillRunning, StoreError
from towline_server.store import idempotency
from towline_server.store.records import IdempotencyRecord
from towline_server.store.sqlite_store import SqliteStore

__all__ = ["WAIT_S", "Keeping", "Remember", "Repeats"]

WAIT_S: Final = 30.0
"""Seconds that a repeat waits for the first request of its key (C2.5)."""

_KEY_CHARS: Final = 200
_RETRY_S: Final = 5.0
_REFUSED: Final = 400
_FAILED: Final = 500
_PASSING: Final = frozenset({401, 425, 429})  # may be another answer the next time (C2.5)

Remember = Callable[[msgspec.Struct], IdempotencyRecord]
"""Makes the record of an answer, to be kept in the transaction of its effect."""


class Keeping:
    """A `Remember` that knows whether it was used: what changes nothing keeps its answer as well.

    Args:
        record: Makes the record of an answer's bytes.
    """

    def __init__(self, record: Callable[[bytes], IdempotencyRecord]) -> None:
        self._record = record
        self.record: IdempotencyRecord | None = None
        """What was kept with the effect: that very answer is given; `None` for nothing."""

    def __call__(self, answer: msgspec.Struct) -> IdempotencyRecord:
        """Make the record of an answer, to be kept in the transaction of its effect."""
        self.record = self._record(encode(answer))
        return self.record


class _Turn:
    """The requests of one key that are here now."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.waiting = 0


class Repeats:
    """Finds and makes the records of idempotent requests.

    A request that comes again while the first one runs waits for it: there is one lock a key.
    """

    def __init__(
        self, store: SqliteStore, now_ms: Callable[[], int], *, wait_s: float = WAIT_S
    ) -> None:
        self._store = store
        self._now_ms = now_ms
        self._wait_s = wait_s
        self._running: dict[tuple[str, str, str], _Turn] = {}

    @property
    def waiting(self) -> int:
        """Keys whose requests are here now."""
        return len(self._running)

    @asynccontextmanager
    async def in_turn(self, request: Request, user: str) -> AsyncGenerator[None]:
        """Hold back a request while one with its key runs.

        Raises:
            StillRunning: That took too long.
        """
        key = request.headers.get("idempotency-key")
        if key is None:
            yield
            return
        name = (user, request.url.path, key)
        turn = self._running.setdefault(name, _Turn())
        turn.waiting += 1
        try:
            await self._wait(turn.lock)
            try:
                yield
            finally:
                turn.lock.release()
        finally:
            turn.waiting -= 1
            if not turn.waiting:
                del self._running[name]

    async def _wait(self, lock: asyncio.Lock) -> None:
        try:
            async with asyncio.timeout(self._wait_s):
                await lock.acquire()
        except TimeoutError as error:
            raise StillRunning(
                "The first request with this Idempotency-Key still runs; send it again in a "
                "moment to get its answer.",
                retry_after_s=_RETRY_S,
            ) from error

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
        kind = "application/json" if record.status < _REFUSED else "application/problem+json"
        return Response(record.answer, status_code=record.status, media_type=kind)

    def remember(
        self, request: Request, user: str, operation: str, raw: bytes, status: int
    ) -> Keeping | None:
        """How to keep the answer to this request; `None` when it has no key."""
        if request.headers.get("idempotency-key") is None:
            return None
        return Keeping(partial(self._record, request, user, operation, raw, status))

    async def keep_rest(self, keeping: Keeping, answer: msgspec.Struct) -> bytes:
        """Keep an answer that no effect has kept: of what was so already, or was another's doing.

        Returns:
            What is answered now and to every repeat.
        """
        if keeping.record is not None:
            return keeping.record.answer
        record = keeping(answer)
        with suppress(StoreError):  # then a repeat is judged anew
            await self._store.write(partial(idempotency.keep, record=record))
        return record.answer

    async def keep_refusal(
        self, request: Request, user: str, operation: str, raw: bytes, refusal: Response
    ) -> None:
        """Keep an answer that a repeat would get as well; what time can heal is not kept."""
        status = refusal.status_code
        key = request.headers.get("idempotency-key")
        if key is None or not _REFUSED <= status < _FAILED or status in _PASSING:
            return
        record = self._record(request, user, operation, raw, status, bytes(refusal.body))
        with suppress(StoreError):  # then a repeat is judged anew
            await self._store.write(partial(idempotency.keep, record=record))

    def _record(
        self,
        request: Request,
        user: str,
        operation: str,
        raw: bytes,
        status: int,
        answer: bytes,
    ) -> IdempotencyRecord:
        return IdempotencyRecord(
            user=user,
            operation=operation,
            path=request.url.path,
            key=request.headers["idempotency-key"],
            body_sha256=_digest(raw),
            status=status,
            answer=answer,
            created_ms=self._now_ms(),
        )


def _digest(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()
