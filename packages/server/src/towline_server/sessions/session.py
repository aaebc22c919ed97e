"""One live session: admits prompts, runs turns one after the other, asks people."""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

import msgspec

from towline_agent import Clock, Mint, Start, Stop, run_turn
from towline_protocol import (
    DENY,
    INTERRUPTED,
    Block,
    Event,
    Fault,
    Limits,
    MessageDiscarded,
    Partial,
    PermissionId,
    PermissionRequested,
    PermissionResolved,
    Private,
    PromptAccepted,
    PromptAdmitted,
    PromptDelivered,
    PromptId,
    SessionInfo,
    SessionView,
    Text,
    ToolEnded,
    TowlineError,
    Transcript,
    TurnFailed,
    TurnId,
    TurnStarted,
    Usage,
    format_time,
    parse_time,
    reduce,
)
from towline_server.errors import AlreadyAnswered, InboxFull, Rejected, SessionBusy, SessionGone
from towline_server.sessions.agents import Agents
from towline_server.sessions.log import Log
from towline_server.sessions.recovery import MAX_ATTEMPTS
from towline_server.store.records import IdempotencyRecord

__all__ = ["MAX_INBOX", "Session"]

_log: Final = logging.getLogger("towline.server")

MAX_INBOX: Final = 32
"""Prompts that may wait in a session (C6)."""

Remember = Callable[[msgspec.Struct], IdempotencyRecord]
"""Makes the record that lets a repeated request be answered alike (C2.5)."""


class Session:
    """A session in memory. Serves the running turn as its host."""

    def __init__(
        self,
        log: Log,
        *,
        agents: Agents,
        clock: Clock,
        mint: Mint,
        permission_window_s: float,
    ) -> None:
        self.log = log
        """Its way into the store."""
        self._agents = agents
        self._clock = clock
        self._mint = mint
        self._window_s = permission_window_s
        self._runner: asyncio.Task[None] | None = None
        self._stop: asyncio.Future[Stop] | None = None
        self._asked: dict[PermissionId, asyncio.Future[PermissionResolved]] = {}
        self._held = _was_stopped(log.view)
        self._last_alive = log.view.updated
        self._draining = False

    # what is shown

    @property
    def transcript(self) -> Transcript:
        """The conversation, with all that was emitted."""
        return self.log.ahead.transcript

    @property
    def last_seq(self) -> int:
        """The number of the last event that was shown."""
        return self.log.view.seq

    @property
    def closed(self) -> bool:
        """Whether it takes no more prompts."""
        return self.log.view.closed is not None

    @property
    def busy(self) -> bool:
        """Whether a turn runs or is about to."""
        return self._runner is not None and not self._runner.done()

    def view(self) -> SessionView:
        """What a screen shows right now, open messages included."""
        view = self.log.view
        for partial in self.log.partials.frames():
            view = reduce(view, partial)
        return view

    def partials(self) -> tuple[Partial, ...]:
        """What is open right now."""
        return self.log.partials.frames()

    def info(self, *, ahead: bool = False) -> SessionInfo:
        """The row of the session list.

        Args:
            ahead: With what is not committed yet: only for an answer kept in the same transaction.
        """
        view = self.log.ahead.view if ahead else self.log.view
        pending = len(view.permissions) + len(view.questions)
        return SessionInfo(
            id=self.log.session,
            agent=view.agent,
            model=view.model,
            mode=view.mode,
            live=view.turn is not None or pending > 0 or self.log.hub.readers > 0,
            last_seq=view.seq,
            turn=None if view.turn is None else view.turn.id,
            pending=pending,
            queued=len(view.queue),
            title=view.title,
            cwd=view.cwd,
            created=view.created,
            updated=view.updated,
            closed=view.closed is not None,
        )

    # what clients ask

    async def admit(
        self,
        content: tuple[Block, ...],
        *,
        when: str = "auto",
        key: str | None = None,
        remember: Remember | None = None,
    ) -> PromptAccepted:
        """Make a prompt durable, and start it when nothing else runs (C2.11).

        Raises:
            SessionGone: The session is closed.
            SessionBusy: `when` is `reject` and a turn runs.
            InboxFull: Too many prompts wait.
            StoreError: It could not be kept; nothing was taken.
        """
        self._check_admission(self.log.ahead.view, when)
        accepted = self.take(content, when=when, key=key)
        if remember is not None:
            self.log.keep(remember(accepted))
        await self.log.settle()
        self._held = False
        self.wake()
        return accepted

    def take(
        self, content: tuple[Block, ...], *, when: str = "auto", key: str | None = None
    ) -> PromptAccepted:
        """Emit a prompt's admission; it runs after the next `settle` and `wake`."""
        prompt = PromptId(self._mint("pmt"))
        position = len(self.log.ahead.view.queue)
        self.log.emit(
            PromptAdmitted(prompt=prompt, content=content, when=when, key=key, position=position),
            outside=True,
        )
        return PromptAccepted(prompt=prompt, position=position, session=self.log.session)

    def interrupt(self, by: str, reason: str, turn: TurnId | None = None) -> TurnId | None:
        """Stop the running turn; its end comes as an event. The queue is held (C2.11).

        Returns:
            The turn that is stopping; `None` when there is none, or another one than asked.
        """
        running = self.log.ahead.view.turn
        if running is None or self._stop is None or (turn is not None and turn != running.id):
            return None
        self._held = True
        if not self._stop.done():
            self._stop.set_result(Stop(by=by, reason=reason))
        return running.id

    async def resolve(
        self,
        permission: PermissionId,
        *,
        option: str,
        digest: str,
        by: str,
        note: str | None = None,
    ) -> str:
        """Take a person's decision; the first valid one wins (C5.10).

        Returns:
            The option that stands.

        Raises:
            NotFound: There was never such a request.
            SessionGone: It ended before it was answered.
            AlreadyAnswered: Somebody answered otherwise.
            Rejected: The digest or the option does not fit; the request stays open.
        """
        earlier = self.log.ahead.resolved.get(permission)
        if earlier is not None:
            await self.log.settle()
            return _again(earlier, option)
        request = self.log.ahead.requests.get(permission)
        waiting = self._asked.get(permission)
        if request is None or waiting is None:
            raise SessionGone(
                f"The permission request {permission!r} is not open; read the session's view.",
                reason="expired",
            )
        if digest != request.digest:
            raise AlreadyAnswered(
                "The digest does not fit the request; read it again and decide on what it shows.",
                reason="wrong_digest",
            )
        if option not in {offered.id for offered in request.options}:
            raise Rejected(f"{option!r} was not offered; take one of the request's options.")
        resolved = PermissionResolved(permission=permission, option=option, by=by, note=note)
        self.log.emit(resolved)
        await self.log.settle()
        if not waiting.done():
            waiting.set_result(resolved)
        return option

    # running turns

    def wake(self) -> None:
        """Run what waits, unless a turn runs already or the queue is held."""
        if self.busy or self._held or self._draining or not self.log.ahead.view.queue:
            return
        self._runner = asyncio.create_task(self._run_queue())

    def resume(self, start: Start) -> None:
        """Go on with a turn that a crash cut (C5.4)."""
        self._runner = asyncio.create_task(self._resume(start))

    async def drain(self, grace_s: float) -> None:
        """Let the running turn end, for so long; then interrupt it (C5.14)."""
        self._draining = True
        runner = self._runner
        if runner is None or runner.done():
            return
        await asyncio.wait({runner}, timeout=grace_s)
        if not runner.done():
            self.interrupt("server", "the server shuts down")
            await asyncio.wait({runner}, timeout=grace_s)

    async def close(self) -> None:
        """Leave memory: the running turn stays open in the log, to be resumed."""
        self._draining = True
        if self._runner is not None:
            self._runner.cancel()
            await asyncio.wait({self._runner})
        self.log.hub.close()

    async def _run_queue(self) -> None:
        """Turn after turn while prompts wait. A rim: a surprise is logged, never silent."""
        try:
            while self.log.ahead.view.queue and not self._held and not self._draining:
                prompt = self.log.ahead.view.queue[0].prompt
                await self._run(Start(turn=TurnId(self._mint("trn")), prompt=prompt))
        except TowlineError as error:
            _log.error("Session %s stopped: %s", self.log.session, error.message)
        except Exception:
            _log.exception("Session %s stopped by a fault of ours", self.log.session)

    async def _resume(self, start: Start) -> None:
        for message in self.log.ahead.open_messages:
            self.log.turn = start.turn
            self.log.emit(MessageDiscarded(message=message, reason="the server was restarted"))
        await self._run(start)
        await self._run_queue()

    async def _run(self, start: Start) -> None:
        """One turn from its start to its end."""
        self.log.turn = start.turn
        self._stop = asyncio.get_running_loop().create_future()
        try:
            if start.attempt > MAX_ATTEMPTS:
                await self._give_up(start, _TOO_OFTEN)
                return
            try:
                plan = await self._agents.plan(self.log.ahead.view, self.log.ahead.rules)
            except TowlineError as error:
                await self._give_up(start, error.fault())
                return
            await run_turn(plan, self, start)
        finally:
            self.log.turn = None
            self._stop = None

    async def _give_up(self, start: Start, fault: Fault) -> None:
        """End a turn that cannot run: the prompt was admitted, so it gets its answer."""
        if not start.attempt:
            view = self.log.ahead.view
            self.emit(TurnStarted(prompt=start.prompt, model=view.model, limits=_NO_LIMITS))
            self.emit(PromptDelivered(prompt=start.prompt, turn=start.turn, how="started"))
        self._close_open_calls()
        self.emit(TurnFailed(fault=fault, usage=Usage()))
        await self.settle()

    # the host of the running turn

    def emit(self, event: Event, private: tuple[Private, ...] = ()) -> None:
        """Take in an event of the turn, in order."""
        self.log.emit(event, private)

    async def settle(self) -> None:
        """Wait until all that was emitted is durable."""
        await self.log.settle()

    async def ask(self, request: PermissionRequested) -> PermissionResolved:
        """Ask people; nobody's answer is a denial at the deadline (C5.9).

        A request that a crash cut is offered again with its id and the time it had left (C5.8).
        """
        left_s = self._time_left(request)
        until = format_time(self._clock.now_ms() + round(left_s * 1000))
        self.emit(_dated(request, until))
        answer = asyncio.get_running_loop().create_future()
        self._asked[request.permission] = answer
        resolved: PermissionResolved | None = None
        by = "cancel"
        try:
            await self.settle()
            async with asyncio.timeout(left_s):
                resolved = await answer
        except TimeoutError:
            by = "deadline"
        finally:
            del self._asked[request.permission]
            taken = resolved or self.log.ahead.resolved.get(request.permission)
            if taken is None:
                taken = PermissionResolved(permission=request.permission, option=DENY, by=by)
                self.emit(taken)
        return taken

    def steers(self) -> tuple[PromptId, ...]:
        """Prompts that are to be said into the running turn."""
        queue = self.log.ahead.view.queue
        return tuple(queued.prompt for queued in queue if queued.when == "steer")

    async def stopped(self) -> Stop:
        """Wait for somebody to stop the turn."""
        assert self._stop is not None
        return await asyncio.shield(self._stop)

    def _check_admission(self, view: SessionView, when: str) -> None:
        if view.closed is not None:
            raise SessionGone(
                f"The session {self.log.session!r} is closed; start a new one.", reason="closed"
            )
        if when == "reject" and (self.busy or view.queue):
            raise SessionBusy(
                "A turn runs already; wait for its end, or send with when='queue'.",
                reason="turn_active",
            )
        if len(view.queue) >= MAX_INBOX:
            raise InboxFull(
                f"{MAX_INBOX} prompts wait already; wait until some of them have run.",
                retry_after_s=5,
                reason="inbox_full",
            )

    def _time_left(self, request: PermissionRequested) -> float:
        """Seconds to the deadline; time in which no server ran does not count (C5.8)."""
        if request.permission not in self.log.ahead.requests:
            return self._window_s
        left_ms = parse_time(request.expires_at) - parse_time(self._last_alive)
        return min(self._window_s, max(_LEAST_WINDOW_S, left_ms / 1000))

    def _close_open_calls(self) -> None:
        """Nothing of a turn that is given up stays open (C1.23)."""
        view = self.log.ahead.view
        for request in view.permissions:
            self.emit(PermissionResolved(permission=request.permission, option=DENY, by="server"))
        for call in view.open_calls:
            self.emit(
                ToolEnded(
                    call=call.call,
                    status="unknown",
                    content=(Text(text=INTERRUPTED),),
                    is_error=True,
                )
            )


_NO_LIMITS: Final = Limits()

_LEAST_WINDOW_S: Final = 10.0
"""A request that is offered again can always be answered for this long."""

_TOO_OFTEN: Final = Fault(
    code="internal_error",
    message=f"The turn was cut {MAX_ATTEMPTS} times by a restart and was given up. Look at what it "
    "has done, then send the prompt again.",
    reason="resumed_too_often",
)


def _was_stopped(view: SessionView) -> bool:
    """Whether a stop holds the queue: the last turn was cancelled and nothing was sent since."""
    last = view.last_turn
    if last is None or last.outcome != "cancelled" or not view.queue:
        return False
    return all(queued.time <= last.time for queued in view.queue)


def _again(earlier: PermissionResolved, option: str) -> str:
    if earlier.option == option:
        return option  # the same answer again: a retry, not a conflict
    if earlier.by in ("deadline", "cancel", "server"):
        raise SessionGone(
            "The permission request has ended; nothing runs on this answer.", reason="expired"
        )
    raise AlreadyAnswered(
        f"The request was answered with {earlier.option!r} by {earlier.by!r} already.",
        reason="already_resolved",
    )


def _dated(request: PermissionRequested, until: str) -> PermissionRequested:
    return msgspec.structs.replace(request, expires_at=until)
