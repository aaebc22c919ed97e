import itertools
from collections.abc import AsyncIterator

import pytest

from towline_server.store.sqlite_store import open_memory_store
from towline_server.stream.testing import Line


@pytest.fixture
async def line() -> AsyncIterator[Line]:
    """A session that streams, over a store in memory."""
    numbers = itertools.count(1)
    store = await open_memory_store(mint=lambda prefix: f"{prefix}_{next(numbers)}")
    yield Line(store)
    await store.close()
