"""What turns did to files, for all sessions of a server: kept in its data folder (A5.71)."""

import asyncio
import logging
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from towline_agent import Checkpoints, Keeper, KeptTurn, RevertOutcome, ToolError
from towline_protocol import FileChange, SessionId, TowlineError, TurnId
from towline_server.errors import StoreError

__all__ = ["CHECKPOINTS", "KeptFiles"]

CHECKPOINTS: Final = "checkpoints"
"""The folder in the data folder that holds what is kept of files."""

_log: Final = logging.getLogger("towline.server")
_T = TypeVar("_T")

_THREADS: Final = 2  # the file is used by one at a time; a second one waits there, not in a queue
_PAGE_CHARS: Final = 1_000_000  # of the diffs in one answer


class KeptFiles:
    """The checkpoints of a server's sessions, read and written in threads of its own.

    Args:
        folder: Where they are kept; made at the first change of a file.
        now_ms: Milliseconds since 1970.
    """

    def __init__(self, folder: str | os.PathLike[str], now_ms: Callable[[], int]) -> None:
        self._checkpoints = Checkpoints(folder, now_ms=now_ms)
        self._pool: ThreadPoolExecutor | None = None

    def keeper(self, session: SessionId, turn: TurnId, root: str) -> Keeper:
        """What keeps the files that a turn touches."""
        return self._checkpoints.keeper(session, turn, root)

    async def recover(self, check: Callable[[str], object]) -> None:
        """Go on with the edits and reverts that a crash cut; what fails is told, and waits.

        Nothing is written in a folder that may not be worked in any more, or that leads to another
        place by now: what is kept for it stays, and the next start tries again.

        Args:
            check: Raises a `TowlineError` for a folder that may not be worked in, see
                `Projects.check`.
        """
        work = partial(self._checkpoints.recover, partial(_may_go_on, check))
        await self._quietly("Reverts that were cut could not be ended", work)

    async def turns(self, session: SessionId) -> list[KeptTurn]:
        """The turns of a session that did something to files, oldest first.

        Raises:
            StoreError: They cannot be read.
        """
        return await self._run(partial(self._checkpoints.turns, session))

    async def diff(
        self, session: SessionId, turn: TurnId, start: int, limit: int
    ) -> tuple[tuple[FileChange, ...], int]:
        """What a turn did to files: a page, and where the next one begins; 0 at the end.

        Raises:
            StoreError: It cannot be read.
        """
        changes, count = await self._run(
            partial(self._checkpoints.diff, session, turn, start, limit)
        )
        taken, room = 0, _PAGE_CHARS
        for change in changes:
            room -= len(change.diff or "")
            if taken and room < 0:
                break
            taken += 1
        following = start + taken
        return tuple(changes[:taken]), following if following < count else 0

    async def revert(
        self, session: SessionId, turns: Sequence[TurnId], *, skip_conflicts: bool, rewinds: bool
    ) -> RevertOutcome:
        """Put files back to what they were before the first of these turns.

        Raises:
            StoreError: It cannot be done; the files are as they were.
        """
        work = partial(
            self._checkpoints.revert,
            session,
            turns,
            skip_conflicts=skip_conflicts,
            rewinds=rewinds,
        )
        return await self._run(work)

    async def untold(self, session: SessionId) -> list[RevertOutcome]:
        """Reverts of a session that its log does not tell of, for a crash came first."""
        if not self._checkpoints.there:
            return []
        try:
            return await self._run(partial(self._checkpoints.untold, session))
        except StoreError as error:
            _log.error("Reverts of session %s cannot be read: %s", session, error.message)
            return []

    async def told(self, outcome: RevertOutcome) -> None:
        """The log tells of a revert."""
        await self._quietly(
            "A revert will be told of again", partial(self._checkpoints.told, outcome)
        )

    async def copy(self, source: SessionId, target: SessionId, turns: Iterable[str]) -> None:
        """Let a fork go back to before the turns that it has of another session.

        Raises:
            StoreError: They cannot be copied.
        """
        await self._run(partial(self._checkpoints.copy, source, target, tuple(turns)))

    async def forget(self, session: SessionId) -> None:
        """Remove all that is kept for a session; what fails goes when room is made."""
        await self._quietly(
            "The checkpoints of a deleted session could not be removed",
            partial(self._checkpoints.forget, session),
        )

    async def trim(self) -> None:
        """Make room when too much is kept."""
        await self._quietly("Old checkpoints could not be removed", self._checkpoints.trim)

    def close(self) -> None:
        """Let go of the file and the threads, once what runs is done."""
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None
        self._checkpoints.close()

    async def _quietly(self, words: str, work: Callable[[], object]) -> None:
        if not self._checkpoints.there:
            return  # nor is a thread begun for it
        try:
            await self._run(work)
        except StoreError as error:
            _log.error("%s: %s", words, error.message)

    async def _run(self, work: Callable[[], _T]) -> _T:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="towline-checkpoints")
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, work)
        except ToolError as error:
            raise StoreError(error.message, reason="checkpoints") from error


def _may_go_on(check: Callable[[str], object], folder: str) -> bool:
    """Whether what a crash cut in a folder may be ended there; the log tells why not."""
    try:
        check(folder)
        if os.path.realpath(folder) == folder and Path(folder).is_dir():
            return True
        why = "it is no folder any more, or a link leads to another one"
    except TowlineError as error:
        why = error.message
    _log.warning("What a crash cut in %r was not ended there, and stays kept: %s", folder, why)
    return False
