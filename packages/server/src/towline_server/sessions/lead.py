"""What a sub-agent's session takes from the session that it works for (D5).

People see that session, its parent. So what a sub-agent wants to be allowed or to know is asked
there, in its name; its own log keeps the same, so that a restart finds it. What it may do is what
the parent may: by the same rules, those that are added meanwhile too.
"""

from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from typing import Protocol

import msgspec

from towline_protocol import (
    Parent,
    PermissionId,
    PermissionRequested,
    PermissionResolved,
    QuestionId,
    QuestionItem,
    QuestionResolved,
    SessionId,
)
from towline_server.errors import SessionGone
from towline_server.sessions.log import Log
from towline_server.sessions.recovery import Loaded
from towline_server.store.records import IdempotencyRecord

__all__ = ["Boss", "Lead", "PermissionDesk", "QuestionDesk", "Remember"]

Remember = Callable[[msgspec.Struct], IdempotencyRecord]
"""Makes the record that lets a repeated request be answered alike (C2.5)."""


class PermissionDesk(Protocol):
    """Where people are asked to allow something; see `Requests`."""

    async def ask(self, request: PermissionRequested) -> PermissionResolved:
        """Let people decide."""
        ...

    async def resolve(
        self,
        permission: PermissionId,
        *,
        option: str,
        digest: str,
        by: str,
        note: str | None = None,
        remember: Remember | None = None,
    ) -> str:
        """Take a person's decision."""
        ...


class QuestionDesk(Protocol):
    """Where people are asked something; see `Questions`."""

    async def ask(self, question: QuestionId, items: tuple[QuestionItem, ...]) -> QuestionResolved:
        """Let people answer."""
        ...

    async def resolve(
        self,
        question: QuestionId,
        answers: dict[str, tuple[str, ...]],
        *,
        by: str,
        remember: Remember | None = None,
    ) -> dict[str, tuple[str, ...]]:
        """Take a person's answers."""
        ...


class Boss(Protocol):
    """What a sub-agent's session needs of the one that it works for."""

    @property
    def log(self) -> Log:
        """Its way into the store."""
        ...

    @property
    def requests(self) -> PermissionDesk:
        """Where people are asked to allow something."""
        ...

    @property
    def questions(self) -> QuestionDesk:
        """Where people are asked something."""
        ...

    def used_up(self, child: SessionId) -> str | None:
        """Why this sub-agent may use nothing more, as a stop reason; `None` while it may."""
        ...


class Lead:
    """Leads from a session to the one that it works for; from most there is no way.

    Args:
        log: The session's own way into the store.
        find: Finds a session of the same user, in memory or not.
    """

    def __init__(self, log: Log, find: Callable[[str, SessionId], Awaitable[Boss]]) -> None:
        self._log = log
        self._find = find
        self._waits = 0

    @property
    def parent(self) -> Parent | None:
        """The session and the call that this one works for; `None` for one that people began."""
        return self._log.ahead.view.parent

    @property
    def waiting(self) -> bool:
        """Whether people are asked in the other session right now, in the name of this one."""
        return self._waits > 0

    async def boss(self) -> Boss:
        """The session that this one works for.

        Raises:
            SessionGone: It waits for this one no more.
            SessionNotFound: It is not there.
            StoreError: It cannot be read.
        """
        parent = self.parent
        assert parent is not None  # asked of sub-agents alone
        boss = await self._find(self._log.user, parent.session)
        if boss.log.ahead.children.get(parent.call) != self._log.session:
            raise SessionGone(
                f"The session {parent.session!r}, which this one works for, waits for it no more.",
                reason="parent_gone",
            )
        return boss

    async def ahead(self) -> Loaded:
        """The state whose rules and mode count: the parent's, which changes, or the session's own.

        Raises:
            SessionGone: The parent waits for this one no more.
            SessionNotFound: It is not there.
            StoreError: It cannot be read.
        """
        return self._log.ahead if self.parent is None else (await self.boss()).log.ahead

    async def bind(self, used_up: Callable[[], str | None]) -> Callable[[], str | None]:
        """What tells why nothing more may be used: the session's own reason, or its parent's.

        Raises:
            SessionGone: The parent waits for this one no more.
            SessionNotFound: It is not there.
            StoreError: It cannot be read.
        """
        if self.parent is None:
            return used_up
        boss = await self.boss()
        return lambda: used_up() or boss.used_up(self._log.session)

    @contextmanager
    def waits(self) -> Generator[None]:
        """People are asked in the other session while this lasts."""
        self._waits += 1
        try:
            yield
        finally:
            self._waits -= 1
