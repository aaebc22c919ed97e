import itertools
from collections.abc import AsyncIterator, Callable

import pytest

from towline_protocol import SessionId
from towline_server.store.records import Append, IdempotencyRecord, SessionRow, StoredRow
from towline_server.store.sqlite_store import SqliteStore, open_memory_store

Build = Callable[..., Append]


@pytest.fixture
def mint() -> Callable[[str], str]:
    """Ids that count."""
    numbers = itertools.count(1)
    return lambda prefix: f"{prefix}_{next(numbers)}"


@pytest.fixture
def build() -> Build:
    """Makes the append of `count` events to a session."""

    def append(
        session: str = "ses_1",
        first: int = 1,
        count: int = 1,
        *,
        size: int = 0,
        user: str = "me",
        answer: IdempotencyRecord | None = None,
        bare: bool = False,
        **changes: object,
    ) -> Append:
        last = first + count - 1
        row = {"created_ms": 1000, "updated_ms": 1000 + last, "agent": "main", "model": "a/b"}
        return Append(
            session=SessionId(session),
            first_seq=first,
            rows=tuple(
                StoredRow(seq, None, 1000 + seq, b"%d " % seq + b"x" * size)
                for seq in range(first, last + 1)
            ),
            summary=None
            if bare
            else SessionRow(id=SessionId(session), user=user, mode="ask", **{**row, **changes}),  # pyright: ignore[reportArgumentType] - a test names the fields
            answer=answer,
        )

    return append


@pytest.fixture
async def memory(mint: Callable[[str], str]) -> AsyncIterator[SqliteStore]:
    """A store in memory."""
    store = await open_memory_store(mint=mint)
    yield store
    await store.close()
