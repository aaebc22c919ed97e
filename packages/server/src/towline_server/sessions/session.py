"""One live session: admits prompts, runs turns one after the other, asks people."""

import asyncio
import logging
import time
from typing import Final

from towline_agent import Clock, Mint, Start, Stop, Tool, run_turn
from towline_protocol import (
    DENY,
    INTERRUPTED,
    Block,
    Event,
    Fault,
    Limits,
    MessageDiscarded,
    Partial,
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
    reduce,
)
from towline_server.errors import (
    InboxFull,
    SessionBusy,
    SessionGone,
    StoreError,
)
from towline_server.sessions.agents import Agents
from towline_server.sessions.log import Log
from towline_server.sessions.recovery import MAX_ATTEMPTS, SERVER
from towline_server.sessions.request import Remember, Requests

__all__ = ["MAX_INBOX", "Session"]

_log: Final = logging.getLogger("towline.server")

MAX_INBOX: Final = 32
"""Prompts that may wait in a session (C6)."""


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
        draining: bool = False,
    ) -> None:
        """Take a session over; nothing runs yet.

        Args:
            log: Its way into the store.
            agents: Makes its turns' plans.
            clock: Time.
            mint: Ids.
            permission_window_s: Seconds until a permission request is denied.
            draining: The server shuts down: no turn may start.
        """
        self.log = log
        """Its way into the store."""
        self.requests = Requests(log, clock=clock, window_s=permission_window_s)
        """What people are asked."""
        self._agents = agents
        self._mint = mint
        self._runner: asyncio.Task[None] | None = None
        self._stop: asyncio.Future[Stop] | None = None
        self._held = log.ahead.held
        self._draining = draining

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
        limits: Limits | None = None,
        speak: bool = False,
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
        accepted = self.take(content, when=when, key=key, limits=limits, speak=speak)
        self._held = False  # at once: a stop that comes while it is committed holds it again
        if remember is not None:
            self.log.keep(remember(accepted))
        await self.log.settle()
        self.wake()
        return accepted

    def take(
        self,
        content: tuple[Block, ...],
        *,
        when: str = "auto",
        key: str | None = None,
        limits: Limits | None = None,
        speak: bool = False,
    ) -> PromptAccepted:
        """Emit a prompt's admission; it runs after the next `settle` and `wake`."""
        prompt = PromptId(self._mint("pmt"))
        position = len(self.log.ahead.view.queue)
        self.log.emit(
            PromptAdmitted(
                prompt=prompt,
                content=content,
                when=when,
                key=key,
                position=position,
                limits=limits,
                speak=speak,
            ),
            outside=True,
        )
        return PromptAccepted(prompt=prompt, position=position, session=self.log.session)

    def interrupt(self, by: str, reason: str, turn: TurnId | None = None) -> TurnId | None:
        """Stop the running turn; its end comes as an event. The queue is held (C2.11).

        Returns:
            The turn that is stopping; `None` when there is none, or another one than asked.
        """
        running = self.log.turn  # also of a turn that is about to begin
        if running is None or self._stop is None or (turn is not None and turn != running):
            return None
        last = self.log.ahead.view.last_turn
        if last is not None and last.id == running:
            return None  # its end is on its way into the store
        self._held = True
        if not self._stop.done():
            self._stop.set_result(Stop(by=by, reason=reason))
        return running

    # running turns

    def wake(self) -> None:
        """Run what waits, unless a turn runs already or the queue is held."""
        if self.busy or self._held or self._draining or not self.log.ahead.view.queue:
            return
        self._runner = asyncio.create_task(self._supervise(None, None))

    def resume(self, start: Start, fault: Fault | None = None) -> None:
        """Go on with a turn that a crash cut (C5.4), unless the server shuts down.

        Args:
            start: Where it was cut.
            fault: Why it cannot go on: it ends with this instead.
        """
        if not self._draining:
            self.log.turn = start.turn
            self._stop = asyncio.get_running_loop().create_future()
            self._runner = asyncio.create_task(self._supervise(start, fault))

    async def drain(self, grace_s: float) -> None:
        """Let the running turn end, for so long; then interrupt it (C5.14)."""
        self._draining = True
        runner = self._runner
        if runner is None or runner.done():
            return
        until = time.monotonic() + grace_s
        while not runner.done() and time.monotonic() < until:
            if self.requests.waiting:
                return  # nobody can answer any more: it is asked again after the restart (C5.8)
            await asyncio.wait({runner}, timeout=_LOOK_S)
        if not runner.done():
            self.interrupt(SERVER, "the server shuts down")
            await asyncio.wait({runner}, timeout=grace_s)

    async def close(self) -> None:
        """Leave memory: the running turn stays open in the log, to be resumed.

        What ends with it, such as a request that nobody can answer any more, is not written down:
        for the log this is a crash.
        """
        self._draining = True
        self.log.hub.close()
        await self.log.close()
        if self._runner is not None:
            self._runner.cancel()
            await asyncio.wait({self._runner})

    async def _supervise(self, start: Start | None, fault: Fault | None) -> None:
        """Turn after turn while prompts wait. A rim: a surprise is logged, never silent."""
        try:
            if start is not None:
                await self._run(start, fault)
            while self.log.ahead.view.queue and not self._held and not self._draining:
                prompt = self.log.ahead.view.queue[0].prompt
                speak = prompt in self.log.ahead.speaks
                turn = TurnId(self._mint("trn"))
                await self._run(Start(turn=turn, prompt=prompt, speak=speak))
        except StoreError as error:  # it has left memory already
            _log.error("Session %s stopped: %s", self.log.session, error.message)
        except Exception:
            _log.exception("Session %s stopped by a fault of ours", self.log.session)

    async def _run(self, start: Start, fault: Fault | None = None) -> None:
        """One turn from its start to its end."""
        self.log.turn = start.turn
        if self._stop is None:
            self._stop = asyncio.get_running_loop().create_future()
        try:
            for message in self.log.ahead.open_messages:
                self.emit(MessageDiscarded(message=message, reason="the server was restarted"))
            if start.attempt > MAX_ATTEMPTS:
                fault = fault or _TOO_OFTEN
            fault = fault or await self._attempt(start)
            if fault is not None:
                await self._give_up(start, fault)
        finally:
            self.log.turn = None
            self._stop = None

    async def _attempt(self, start: Start) -> Fault | None:
        """Run the turn; gives what kept it from an end of its own (C1.20). A rim."""
        try:
            ahead = self.log.ahead
            asked = ahead.turn_limits if start.attempt else ahead.limits.get(start.prompt)
            plan = await self._agents.plan(ahead.view, ahead.rules, asked, self._own_tools())
            await run_turn(plan, self, start)
        except StoreError:
            raise
        except TowlineError as error:
            return error.fault()
        except Exception:
            _log.exception("The turn %s could not be run by a fault of ours", start.turn)
            return _INTERNAL
        return None

    def _own_tools(self) -> tuple[Tool, ...]:
        """Tools that lead out of the server, to people and to clients."""
        return ()

    async def _give_up(self, start: Start, fault: Fault) -> None:
        """End a turn that cannot run: the prompt was admitted, so it gets its answer."""
        view = self.log.ahead.view
        if view.turn is None:
            self.emit(TurnStarted(prompt=start.prompt, model=view.model, limits=_NO_LIMITS))
            self.emit(PromptDelivered(prompt=start.prompt, turn=start.turn, how="started"))
        self._close_open_parts()
        self.emit(TurnFailed(fault=fault, usage=start.spent.usage))
        await self.settle()

    # the host of the running turn

    def emit(self, event: Event, private: tuple[Private, ...] = ()) -> None:
        """Take in an event of the turn, in order."""
        self.log.emit(event, private)

    async def settle(self) -> None:
        """Wait until all that was emitted is durable."""
        await self.log.settle()

    async def ask(self, request: PermissionRequested) -> PermissionResolved:
        """Let people decide (C5.9)."""
        return await self.requests.ask(request)

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
            self._held = False  # a full inbox that is held would never have room again
            self.wake()
            raise InboxFull(
                f"{MAX_INBOX} prompts wait already; wait until some of them have run.",
                retry_after_s=5,
                reason="inbox_full",
            )

    def _close_open_parts(self) -> None:
        """Nothing of a turn that is given up stays open (C1.23)."""
        view = self.log.ahead.view
        for message in view.open_messages:
            self.emit(MessageDiscarded(message=message.id, reason="the turn failed"))
        for request in view.permissions:
            self.emit(PermissionResolved(permission=request.permission, option=DENY, by=SERVER))
        for call in view.open_calls:
            self.emit(
                ToolEnded(
                    call=call.call,
                    status="unknown",
                    content=(Text(text=INTERRUPTED),),
                    is_error=True,
                )
            )


_LOOK_S: Final = 0.2  # how soon a drain sees that a turn waits for a person
_NO_LIMITS: Final = Limits()

_TOO_OFTEN: Final = Fault(
    code="internal_error",
    message=f"The turn was cut {MAX_ATTEMPTS} times by a restart and was given up. Look at what it "
    "has done, then send the prompt again.",
    reason="resumed_too_often",
)

_INTERNAL: Final = Fault(
    code="internal_error",
    message="The turn broke by a fault in towline; the server's log has the traceback. Send the "
    "prompt again.",
)
