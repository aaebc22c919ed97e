"""Between one session and what a program answers by itself."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from towline_client.bridge.calls import Calls
from towline_client.bridge.handlers import Handlers
from towline_client.bridge.journal import Journal
from towline_client.bridge.line import Line
from towline_client.bridge.people import People
from towline_client.clock import Clock
from towline_client.current import Current
from towline_client.errors import ConnectionLost
from towline_client.flow import Latest
from towline_protocol import ClientTool, PermissionRequested, QuestionAsked, TowlineError

__all__ = ["LEAVE_S", "Bridge"]

LEAVE_S: Final = 2.0
"""Seconds for the last words of a session that is closed: a slow server is not waited for."""

_log: Final = logging.getLogger("towline.client")

_Wanted = tuple[int, tuple[ClientTool, ...]]


class Bridge:
    """Lets a program's functions answer what a session asks of them.

    It acts on what is open in a view that has caught up, and on nothing else: a replay of old
    requests leaves it cold. `run` owns all that is under way.
    """

    def __init__(
        self,
        handlers: Handlers,
        journal: Journal,
        *,
        current: Latest[Current | None],
        clock: Clock,
        fetch: Callable[[str], Awaitable[bytes]],
        stays: bool,
        heard: bool,
        on_decline: Callable[[], None],
    ) -> None:
        """Begin with nothing.

        Args:
            handlers: The functions.
            journal: Remembers which calls were begun.
            current: What the line knows for sure.
            clock: Holds deadlines against the server's time.
            fetch: Gives the bytes of a file by its hash.
            stays: Whether the line's name is one that comes back, so that its tools stay declared.
            heard: Whether somebody calls `settle`, and so hears of the first refusal.
            on_decline: Told that a request was left to others.
        """
        self._handlers = handlers
        self._current = current
        self._stays = stays
        self._heard = heard
        self._calls = Calls(handlers, journal, clock=clock, fetch=fetch)
        self._people = People(handlers, clock=clock, on_decline=on_decline)
        self._line: Line | None = None
        self._group: asyncio.TaskGroup | None = None
        self._declaring = False
        self._declared: _Wanted = (0, ())
        self._settled = asyncio.Event()
        self._refusal: TowlineError | None = None
        self._left = False

    async def run(self, line: Line) -> None:
        """Answer, until it is cancelled.

        Args:
            line: Where answers go.
        """
        self._line = line
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                group.create_task(self._heed(self._handlers.declared))
                await self._heed(self._current)
        finally:
            self._group = None
            self._settled.set()

    async def settle(self) -> None:
        """Return when the server knows the tools that there are, or the session is over.

        Raises:
            TowlineError: It does not take them.
        """
        if self._handlers.tools:
            await self._settled.wait()
        if self._refusal is not None:
            raise self._refusal

    async def leave(self) -> None:
        """Stop all functions, and tell the server that nobody is here any more. Idempotent.

        Nothing is said while the line is down.
        """
        self._left = True
        line = self._line
        if self._group is None or line is None or self._current.value is None:
            return
        try:
            async with asyncio.timeout(LEAVE_S):
                await self._calls.leave(line)
                if self._declared[1] and not self._stays:
                    await line.declare_tools(timeout_s=LEAVE_S)
        except (TimeoutError, TowlineError) as error:
            _log.info("The server was not told that this program has left: %s", error)

    def will_answer(self, request: PermissionRequested | QuestionAsked) -> bool:
        """Whether a function of this program has this request, or will have it."""
        return self._people.will_answer(request)

    async def _heed(self, flow: Latest[Current | None] | Latest[tuple[ClientTool, ...]]) -> None:
        async for _ in flow:
            self._look()

    def _look(self) -> None:
        """Act on what is known by now."""
        current, line, group = self._current.value, self._line, self._group
        if current is None or line is None or group is None or self._left:
            return
        wanted = (current.line, self._handlers.declared.value)
        missing = wanted != self._declared and bool(wanted[1] or self._declared[1])
        if current.view.closed is not None:
            missing = False
        if missing and not self._declaring:
            self._declaring = True
            group.create_task(self._declare(wanted, line))
        elif not missing:
            self._settled.set()
        self._people.look(current, line, group)
        self._calls.look(current, line, group, begin=not missing)

    async def _declare(self, wanted: _Wanted, line: Line) -> None:
        """Say which tools run here, once for each connection: a restored server has forgotten."""
        try:
            await line.declare_tools(*wanted[1])
        except TowlineError as error:
            first = not self._settled.is_set()
            if first:
                self._refusal = error
            level = logging.DEBUG if first and self._heard else logging.WARNING
            _log.log(level, "The tools of this program were not declared: %s", error.message)
            if not isinstance(error, ConnectionLost):
                self._declared = wanted
        else:
            self._declared = wanted
        self._declaring = False
        self._settled.set()
        self._look()
