"""A few threads that read beside the writer, each with a read-only connection of its own."""

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from towline_server.store.failures import explain_failure

__all__ = ["READERS", "Readers"]

READERS: Final = 3
"""Threads: reads are short and mostly come from the page cache, so more would only wait for each
other."""


class Readers:
    """Runs queries off the loop. Made and used on the loop; closed in any thread."""

    def __init__(self, connect: Callable[[], sqlite3.Connection], place: str) -> None:
        self._connect = connect
        self._place = place
        self._local = threading.local()
        self._opened: list[sqlite3.Connection] = []
        self._pool = ThreadPoolExecutor(READERS, thread_name_prefix="towline-reader")

    async def run(self, work: Callable[[sqlite3.Connection], Any]) -> Any:
        """Do `work` in a reader's thread.

        Raises:
            StoreError: It failed.
        """
        return await asyncio.get_running_loop().run_in_executor(self._pool, self._call, work)

    def close(self) -> None:
        """Wait for the reads that run and close the connections; blocks."""
        self._pool.shutdown(wait=True)
        for connection in self._opened:
            connection.close()

    def _call(self, work: Callable[[sqlite3.Connection], Any]) -> Any:
        try:
            connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
            if connection is None:
                connection = self._connect()
                self._opened.append(connection)
                self._local.connection = connection
            return work(connection)
        except (sqlite3.Error, ValueError, OverflowError) as error:
            raise explain_failure(error, self._place) from error
