"""The one thread that writes (C5.15).

It alone touches the write connection. What waits when it looks becomes one transaction; when that
fails, each piece is tried by itself, so that one bad piece does not take the others with it. The
loop hears of a whole batch with one wake-up, in the order of commits.
"""

import asyncio
import contextlib
import queue
import sqlite3
import threading
from collections.abc import Callable, Iterator
from typing import Any, Final, Literal

from towline_protocol import TowlineError
from towline_server.errors import StoreError
from towline_server.store.event_store import Done
from towline_server.store.failures import explain_failure
from towline_server.store.log import apply_append
from towline_server.store.records import Append

__all__ = ["MAX_BATCH", "CommitHook", "Writer"]

MAX_BATCH: Final = 512
"""Pieces one transaction takes: what a commit costs is long shared by then, and the loop is told of
so many in a few milliseconds."""

CommitHook = Callable[[Literal["before", "after"], tuple[Append, ...]], None]
"""Called in the writer's thread right before and right after each commit: a seam for tests."""

_REFUSALS: Final = (sqlite3.Error, TowlineError, ValueError, OverflowError)
"""What a statement raises for its own values: text with half a surrogate pair, a number over 64
bits. Anything else is a bug and ends the thread, and with it the store."""


class _Job:
    """One piece of a transaction: an append, or other work on the connection."""

    __slots__ = ("batch", "done", "error", "result", "work")

    def __init__(
        self,
        batch: Append | None,
        work: Callable[[sqlite3.Connection], Any] | None,
        done: Callable[["_Job"], None],
    ) -> None:
        self.batch = batch
        self.work = work
        self.done = done
        self.error: StoreError | None = None
        self.result: Any = None

    def run(self, connection: sqlite3.Connection) -> None:
        if self.batch is not None:
            apply_append(connection, self.batch)
        elif self.work is not None:
            self.result = self.work(connection)


class Writer:
    """Owns the thread and its queue; made and used on the loop."""

    def __init__(
        self,
        connect: Callable[[], sqlite3.Connection],
        disconnect: Callable[[sqlite3.Connection], None],
        place: str,
        on_commit: CommitHook | None = None,
    ) -> None:
        """Start the thread.

        Args:
            connect: Opens the write connection; called in the thread. What it raises comes out of
                `started`.
            disconnect: Closes it, and lets go of all else that belongs to the store; called in the
                thread at its end.
            place: The store's file, for error messages.
            on_commit: The seam of the crash tests.
        """
        self._loop = asyncio.get_running_loop()
        self._connect = connect
        self._disconnect = disconnect
        self._place = place
        self._on_commit = on_commit
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._closing = False
        self._ended: asyncio.Future[None] = self._loop.create_future()
        self.started: asyncio.Future[None] = self._loop.create_future()
        """Ends when the store can be used, or with the `StoreError` that says why not."""
        # A daemon, so that a program that fails before it closes the store can still end.
        threading.Thread(target=self._main, name="towline-writer", daemon=True).start()

    def append(self, batch: Append, done: Done) -> None:
        """Put an append in line; `done` is called on the loop when it has ended."""
        self._put(_Job(batch, None, lambda job: done(job.error)))

    async def run(self, work: Callable[[sqlite3.Connection], Any]) -> Any:
        """Do other work in the same line and transaction.

        The work may be run twice, when it shares a transaction that fails; only one counts.

        Raises:
            StoreError: It was not done.
        """
        ended: asyncio.Future[Any] = self._loop.create_future()

        def done(job: _Job) -> None:
            if ended.done():
                return  # nobody waits any more
            if job.error is None:
                ended.set_result(job.result)
            else:
                ended.set_exception(job.error)

        self._put(_Job(None, work, done))
        return await ended

    async def close(self) -> None:
        """Commit what waits, then end the thread; may be called twice."""
        if not self._closing:
            self._closing = True
            self._jobs.put(None)
        await asyncio.shield(self._ended)  # the last thing that the thread does

    def _put(self, job: _Job) -> None:
        if self._closing or self._ended.done():
            job.error = self._closed()
            self._loop.call_soon(job.done, job)
        else:
            self._jobs.put(job)

    def _closed(self) -> StoreError:
        return StoreError(f"The store {self._place!r} is closed: start the server again.")

    # From here on: the thread.

    def _main(self) -> None:
        try:
            connection = self._connect()
        except (StoreError, sqlite3.Error) as error:
            self._tell(self._end, explain_failure(error, self._place))
            return
        except BaseException:
            self._tell(self._end, self._closed())
            raise
        self._tell(self._start)
        try:
            while self._commit_waiting(connection):
                pass
        finally:
            self._disconnect(connection)
            self._tell(self._end, None)

    def _commit_waiting(self, connection: sqlite3.Connection) -> bool:
        """Commit all that waits, at least one piece; `False` when the end has come."""
        job = self._jobs.get()
        jobs: list[_Job] = []
        while job is not None:
            jobs.append(job)
            if len(jobs) == MAX_BATCH:
                break
            try:
                job = self._jobs.get_nowait()
            except queue.Empty:
                break
        if jobs:
            try:
                self._commit(connection, jobs)
            finally:
                self._tell(self._deliver, iter(jobs))
        return job is not None

    def _commit(self, connection: sqlite3.Connection, jobs: list[_Job]) -> None:
        for job in jobs:
            job.error = self._closed()  # stands if a bug ends the thread in between
        error = self._try(connection, jobs)
        if error is not None and len(jobs) > 1:
            for job in jobs:
                job.error = self._try(connection, [job])
        else:
            for job in jobs:
                job.error = error

    def _try(self, connection: sqlite3.Connection, jobs: list[_Job]) -> StoreError | None:
        appends = tuple(job.batch for job in jobs if job.batch is not None)
        try:
            connection.execute("BEGIN IMMEDIATE")
            for job in jobs:
                job.run(connection)
            if self._on_commit is not None:
                self._on_commit("before", appends)
            connection.execute("COMMIT")
        except _REFUSALS as error:
            if connection.in_transaction:
                with contextlib.suppress(sqlite3.Error):  # the first error is the one to tell
                    connection.execute("ROLLBACK")
            return explain_failure(error, self._place)
        if self._on_commit is not None:
            self._on_commit("after", appends)
        return None

    def _tell(self, call: Callable[..., None], *arguments: object) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has closed: nobody listens
            self._loop.call_soon_threadsafe(call, *arguments)

    # From here on: the loop again, called by the thread.

    def _start(self) -> None:
        if not self.started.done():
            self.started.set_result(None)

    def _deliver(self, jobs: Iterator[_Job]) -> None:
        for job in jobs:
            try:
                job.done(job)
            except BaseException:
                self._loop.call_soon(self._deliver, jobs)  # the others shall hear of theirs
                raise

    def _end(self, error: StoreError | None) -> None:
        if error is not None and not self.started.done():
            self.started.set_exception(error)
        self._ended.set_result(None)
        while True:  # what came in after the end, if a bug ended the thread
            try:
                job = self._jobs.get_nowait()
            except queue.Empty:
                return
            if job is not None:
                job.error = self._closed()
                job.done(job)
