"""Permission requests of one session: asked, answered once, denied when nobody answers."""

from typing import Final

import msgspec

from towline_agent import Clock
from towline_protocol import (
    DENY,
    CallId,
    PermissionAnswered,
    PermissionId,
    PermissionRequested,
    PermissionResolved,
    parse_time,
)
from towline_server.auth.reserved_name import CANCEL, DEADLINE, RESERVED_NAMES
from towline_server.errors import AlreadyAnswered, Rejected, SessionGone, SessionNotFound
from towline_server.sessions.deadline import Deadline, OpenRequests, Patience
from towline_server.sessions.lead import Lead, Remember
from towline_server.sessions.log import Log
from towline_server.sessions.policies import Policies

__all__ = ["ALLOW_ALWAYS", "Requests"]

ALLOW_ALWAYS: Final = "allow_always"
"""The option whose rule outlives the session (A5.57)."""


class Requests:
    """Asks people in the name of the running turn, and takes their answers."""

    def __init__(
        self,
        log: Log,
        *,
        clock: Clock,
        patience: Patience,
        waiting: OpenRequests,
        policies: Policies,
        lead: Lead,
    ) -> None:
        self._log = log
        self._lead = lead
        self._clock = clock
        self._patience = patience
        self._waiting = waiting
        self._policies = policies
        self._last_alive = log.view.updated

    async def ask(self, request: PermissionRequested) -> PermissionResolved:
        """Ask people; nobody's answer is a denial at the deadline (C5.9).

        A request that a crash cut is offered again with its id and the time it had left (C5.8).
        """
        resolved = self._log.ahead.resolved
        if request.permission in resolved:  # somebody was quicker than the turn's resumption
            await self._log.settle()
            return resolved[request.permission]
        if self._lead.parent is not None:
            return await self._pass_on(request, self._lead.parent.call)
        by: str = CANCEL
        try:
            with self._waiting.hold(
                request.permission,
                self._deadline(request),
                lambda until: self._log.emit(_dated(request, until)),
            ) as waiting:
                await self._log.settle()
                await waiting.wait()
            by = DEADLINE
        finally:
            taken = resolved.get(request.permission)
            if taken is None:
                taken = PermissionResolved(permission=request.permission, option=DENY, by=by)
                self._log.emit(taken)
        return taken

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
        """Take a person's decision; the first valid one wins (C5.10).

        It also counts when the turn has not come to ask again yet, right after a restart.

        Returns:
            The option that stands.

        Raises:
            SessionNotFound: There was never such a request.
            SessionGone: It ended before it was answered.
            AlreadyAnswered: Somebody answered otherwise, or the digest does not fit; then the
                request stays open.
            Rejected: The option was not offered; the request stays open.
            StoreError: It could not be kept.
        """
        if self._lead.parent is not None:
            desk = (await self._lead.boss()).requests
            return await desk.resolve(
                permission, option=option, digest=digest, by=by, note=note, remember=remember
            )
        earlier = self._log.ahead.resolved.get(permission)
        if earlier is not None:
            await self._log.settle()
            return _again(earlier, option)
        request = self._log.ahead.requests.get(permission)
        if request is None:
            raise SessionNotFound(
                f"There is no permission request {permission!r} here; read the session's view."
            )
        if digest != request.digest:
            raise AlreadyAnswered(
                "The digest does not fit the request; read it again and decide on what it shows.",
                reason="wrong_digest",
            )
        chosen = next((offered for offered in request.options if offered.id == option), None)
        if chosen is None:
            raise Rejected(f"{option!r} was not offered; take one of the request's options.")
        if option == ALLOW_ALWAYS and chosen.rule is not None:  # before it is told: it is for good
            await self._policies.keep_rule(self._log.user, self._log.view.cwd or ".", chosen.rule)
            earlier = self._log.ahead.resolved.get(permission)
            if earlier is not None:  # somebody was quicker
                return _again(earlier, option)
        self._log.emit(PermissionResolved(permission=permission, option=option, by=by, note=note))
        self._waiting.answer(permission)  # before anything can show it again
        if remember is not None:
            self._log.keep(remember(PermissionAnswered(option=option)))
        await self._log.settle()
        return option

    async def _pass_on(self, request: PermissionRequested, call: CallId) -> PermissionResolved:
        """Ask in the session that this one works for, which people see (D5).

        It stands in this log too: after a crash it is asked there again, with its id.
        """
        self._log.emit(request)
        await self._log.settle()
        taken = PermissionResolved(permission=request.permission, option=DENY, by=CANCEL)
        try:
            with self._lead.waits():
                desk = (await self._lead.boss()).requests
                title = f"{self._log.ahead.view.agent}: {request.title}"
                taken = await desk.ask(msgspec.structs.replace(request, call=call, title=title))
        finally:
            self._log.emit(taken)
        return taken

    def _deadline(self, request: PermissionRequested) -> Deadline:
        """The full time, or what was left; time in which no server ran does not count (C5.8)."""
        left_s = None
        if request.permission in self._log.ahead.requests:
            left_ms = parse_time(request.expires_at) - parse_time(self._last_alive)
            left_s = left_ms / 1000
        return Deadline(
            self._clock.monotonic(),
            window_s=self._patience.permission_s,
            away_s=self._patience.away_s,
            left_s=left_s,
        )


def _again(earlier: PermissionResolved, option: str) -> str:
    if earlier.option == option:
        return option  # the same answer again: a retry, not a conflict
    if earlier.by in RESERVED_NAMES:
        raise SessionGone(
            "The permission request has ended; nothing runs on this answer.", reason="expired"
        )
    raise AlreadyAnswered(
        f"The request was answered with {earlier.option!r} by {earlier.by!r} already.",
        reason="already_resolved",
    )


def _dated(request: PermissionRequested, until: str | None) -> PermissionRequested:
    assert until is not None  # a permission always has a deadline
    return msgspec.structs.replace(request, expires_at=until)
