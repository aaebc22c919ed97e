"""Runs the turns of one session, one after the other. Serves the running turn as its host."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Final

import msgspec

from towline_agent import Keeper, Mint, Plan, Start, Stop, Tool, ToolState, compact, run_turn
from towline_protocol import (
    TERMINAL_EVENTS,
    Compacted,
    Event,
    Fault,
    Limits,
    MessageDiscarded,
    Notice,
    PermissionRequested,
    PermissionResolved,
    Private,
    PromptDelivered,
    PromptId,
    ToolEnded,
    TowlineError,
    Transcript,
    TurnCancelled,
    TurnFailed,
    TurnId,
    TurnStarted,
    UsageError,
)
from towline_server.auth.reserved_name import SERVER
from towline_server.errors import StoreError
from towline_server.sessions.agents import Agents
from towline_server.sessions.budget import Budget
from towline_server.sessions.files import Files
from towline_server.sessions.fill import with_files
from towline_server.sessions.held import with_state
from towline_server.sessions.lead import Lead
from towline_server.sessions.log import Log
from towline_server.sessions.open_part import close_parts
from towline_server.sessions.orphan import OrphanWatch
from towline_server.sessions.own import OwnThings
from towline_server.sessions.recovery import MAX_ATTEMPTS, ORPHANED
from towline_server.sessions.reminding import with_reverts

__all__ = ["Ask", "Runner"]

_log: Final = logging.getLogger("towline.server")

Ask = Callable[[PermissionRequested], Awaitable[PermissionResolved]]
"""Lets people decide."""


class Runner:
    """Takes what waits in a session's inbox, turn by turn."""

    def __init__(
        self,
        log: Log,
        *,
        agents: Agents,
        mint: Mint,
        ask: Ask,
        own_tools: Callable[[], tuple[Tool, ...]],
        on_call_end: Callable[[ToolEnded], None],
        orphan: OrphanWatch,
        budget: Budget,
        files: Files,
        own: OwnThings,
        lead: Lead,
        keeper: Callable[[], Keeper | None],
        state: ToolState,
        draining: bool = False,
    ) -> None:
        """Nothing runs yet.

        Args:
            log: The session's way into the store.
            agents: Makes its turns' plans.
            mint: Ids.
            ask: Lets people decide.
            own_tools: Tools that lead out of the server, to people and to clients.
            on_call_end: Told of each call that has ended, before that is durable.
            orphan: Ends a turn that nobody watches, if that is wished.
            budget: What its user's day may cost.
            files: The bytes that its conversation names by hash.
            own: What its agent keeps of its own.
            lead: Leads to the session that it works for, if it is a sub-agent's.
            keeper: Keeps the files that the turn touches; asked once a turn.
            state: What tools hold between turns; closed by whoever made it.
            draining: The server shuts down: no turn may start.
        """
        self.held = log.ahead.held
        """Whether a stop holds back what waits (C2.11)."""
        self.draining = draining
        """Whether no turn may start any more."""
        self._log = log
        self._agents = agents
        self._mint = mint
        self._ask = ask
        self._own_tools = own_tools
        self._on_call_end = on_call_end
        self._orphan = orphan
        self._budget = budget
        self._files = files
        self._own = own
        self._lead = lead
        self._keeper = keeper
        self._pauses = 0
        self._state = state
        self._task: asyncio.Task[None] | None = None
        self._stop: asyncio.Future[Stop] | None = None
        self._over = asyncio.Event()

    @property
    def transcript(self) -> Transcript:
        """The conversation, with all that was emitted."""
        return self._log.ahead.transcript

    @property
    def busy(self) -> bool:
        """Whether a turn runs or is about to."""
        return self._pauses > 0 or (self._task is not None and not self._task.done())

    @contextmanager
    def paused(self) -> Generator[None]:
        """Begin no turn until this ends; then run what has come in the meantime."""
        self._pauses += 1
        try:
            yield
        finally:
            self._pauses -= 1
            self.wake()

    def wake(self) -> None:
        """Run what waits, unless a turn runs already or the queue is held."""
        if self.busy or self.held or self.draining or not self._log.ahead.view.queue:
            return
        self._task = asyncio.create_task(self._supervise(None, None))

    def resume(self, start: Start, fault: Fault | None = None) -> None:
        """Go on with a turn that a crash cut (C5.4), unless the server shuts down.

        Args:
            start: Where it was cut.
            fault: Why it cannot go on: it ends with this instead.
        """
        if not self.draining:
            self._log.turn = start.turn
            self._begin()
            self._task = asyncio.create_task(self._supervise(start, fault))

    async def idle(self) -> None:
        """Wait until no turn runs or is about to."""
        while self._task is not None and not self._task.done():
            await asyncio.wait({self._task})

    async def drain(self, grace_s: float, waits: Callable[[], bool]) -> None:
        """Let the running turn end, for so long; then interrupt it (C5.14).

        Args:
            grace_s: Seconds that it has.
            waits: Whether it waits for people right now, whom it cannot reach any more.
        """
        self.draining = True
        task = self._task
        if task is None or task.done():
            return
        until = time.monotonic() + grace_s
        while not task.done() and time.monotonic() < until:
            if waits():
                return  # nobody can answer any more: it is asked again after the restart (C5.8)
            await asyncio.wait({task}, timeout=_LOOK_S)
        if not task.done() and self._log.turn is not None:  # a summary is cut, and told of later
            self.interrupt(SERVER, "the server shuts down")
            await asyncio.wait({task}, timeout=_STOP_S)

    async def cancel(self) -> None:
        """End what runs, without a word in the log: for the log this is a crash."""
        self.draining = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})

    async def shut(self, by: str, reason: str) -> None:
        """Begin no turn any more, and end the one that runs: its end is emitted after this.

        What does not end in time is cut off.
        """
        if self._log.turn is None:
            await self.cancel()  # a summary at most, which nobody will read
        self.draining = True
        self.interrupt(by, reason)
        if self._task is not None:
            await asyncio.wait({self._task}, timeout=_STOP_S)
            await self.cancel()
        turn = self._log.ahead.view.turn
        if turn is not None:  # it was cut off, or nobody had taken it up
            self._log.turn = turn.id
            usage = self._log.ahead.spent.usage
            self.emit(TurnCancelled(by=by, reason=reason, usage=usage))
            self._log.turn = None

    def tidy(self) -> None:
        """Compact the conversation, then run what has come in the meantime."""
        self._task = asyncio.create_task(self._tidy())

    def interrupt(self, by: str, reason: str, turn: TurnId | None = None) -> TurnId | None:
        """Stop the running turn; its end comes as an event. The queue is held (C2.11).

        Returns:
            The turn that is stopping; `None` when there is none, or another one than asked.
        """
        running = self._log.turn  # also of a turn that is about to begin
        if running is None or self._stop is None or (turn is not None and turn != running):
            return None
        last = self._log.ahead.view.last_turn
        if last is not None and last.id == running:
            return None  # its end is on its way into the store
        self.held = True
        if not self._stop.done():
            self._stop.set_result(Stop(by=by, reason=reason))
        return running

    async def stop(self, by: str, reason: str, turn: TurnId | None = None) -> TurnId | None:
        """Stop the running turn; when this returns its end is durable.

        A turn that does not end in time goes on stopping, and this returns all the same.

        Returns:
            The turn that was stopped; `None` when there is none, or another one than asked.

        Raises:
            StoreError: Its end could not be kept.
        """
        over = self._over
        stopping = self.interrupt(by, reason, turn)
        if stopping is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(_STOP_S):
                    await over.wait()
                await self._log.settle()
        return stopping

    async def _tidy(self) -> None:
        """Compact, then run what has come in the meantime. A rim, as `_supervise` is."""
        try:
            plan = await self._plan(None)
            done = await compact(plan, self)
        except StoreError as error:
            _log.error("Session %s stopped: %s", self._log.session, error.message)
            return
        except TowlineError as error:
            done = error
        except Exception:
            _log.exception(
                "Session %s could not be compacted by a fault of ours", self._log.session
            )
            done = UsageError("The conversation could not be summed up; the log says why.")
        if not isinstance(done, Compacted):
            why = "It would not become shorter." if done is None else done.message
            self._log.emit(Notice(code="not_compacted", message=why))
        await self._supervise(None, None)

    async def _supervise(self, start: Start | None, fault: Fault | None) -> None:
        """Turn after turn while prompts wait. A rim: a surprise is logged, never silent."""
        try:
            if start is not None:
                await self._run(start, fault)
            while self._log.ahead.view.queue and not self.held and not self.draining:
                prompt = self._log.ahead.view.queue[0].prompt
                speak = prompt in self._log.ahead.speaks
                turn = TurnId(self._mint("trn"))
                await self._run(Start(turn=turn, prompt=prompt, speak=speak))
        except StoreError as error:  # it has left memory already
            _log.error("Session %s stopped: %s", self._log.session, error.message)
        except Exception:
            _log.exception("Session %s stopped by a fault of ours", self._log.session)

    def _begin(self) -> None:
        """From now on the turn can be stopped, and its end waited for."""
        self._over = asyncio.Event()
        self._stop = asyncio.get_running_loop().create_future()

    async def _run(self, start: Start, fault: Fault | None = None) -> None:
        """One turn from its start to its end."""
        self._log.turn = start.turn
        if self._stop is None:
            self._begin()
        try:
            for message in self._log.ahead.open_messages:
                self.emit(MessageDiscarded(message=message, reason="the server was restarted"))
            if start.attempt > MAX_ATTEMPTS:
                fault = fault or _TOO_OFTEN
            why = fault or await self._attempt(start)
            if why is not None:
                await self._give_up(start, why)
        finally:
            self._log.turn = None
            self._stop = None
            self._over.set()

    async def _plan(self, limits: Limits | None) -> Plan:
        """What a turn runs by, as the session stands now."""
        ahead = self._log.ahead
        lead = await self._lead.ahead()
        plan = await self._agents.plan(
            ahead.view, lead.rules, limits, self._own_tools(), self._keeper()
        )
        plan = with_reverts(with_state(plan, self._state), tuple(ahead.reverts))
        plan = await self._own.remind(plan, notes=self._agents.spec(ahead.view.agent).remembers)
        policies = self._agents.projects.policies
        policy = await policies.read(self._log.user, ahead.view.cwd or ".")
        # A running turn keeps the mode that it began with; a sub-agent has that of its lead.
        policy = msgspec.structs.replace(policy, mode=lead.view.mode)
        plan = msgspec.structs.replace(plan, policy=lambda: policy)
        return with_files(plan, self._files, self._log.user, self._log.keep_text)

    async def _attempt(self, start: Start) -> Fault | Stop | None:
        """Run the turn; gives what kept it from an end of its own (C1.20). A rim."""
        try:
            ahead = self._log.ahead
            named = ahead.limits.get(start.prompt, ahead.own_limits)
            asked = ahead.turn_limits if start.attempt else named
            plan = await self._plan_unless_stopped(asked)
            if isinstance(plan, Stop):
                return plan
            user = self._log.user
            limits = await self._budget.bound(user, plan.limits)
            if start.attempt:  # a resumed turn keeps the bounds that it began with
                limits = plan.limits
            used_up = await self._lead.bind(partial(self._budget.used_up, user))
            plan = msgspec.structs.replace(plan, limits=limits, used_up=used_up)
            if not self._withdrawn(start):
                await run_turn(plan, self, start)
        except StoreError:
            raise
        except TowlineError as error:
            return error.fault()
        except Exception:
            _log.exception("The turn %s could not be run by a fault of ours", start.turn)
            return _INTERNAL
        return None

    async def _plan_unless_stopped(self, limits: Limits | None) -> Plan | Stop:
        """The plan of a turn; a model that takes its time to connect holds no stop up."""
        assert self._stop is not None
        plan = asyncio.create_task(self._plan(limits))
        try:
            await asyncio.wait({plan, self._stop}, return_when=asyncio.FIRST_COMPLETED)
            return plan.result() if plan.done() else self._stop.result()
        finally:
            plan.cancel()
            await asyncio.wait({plan})

    def _withdrawn(self, start: Start) -> bool:
        """Whether its prompt was taken back while the turn was being made ready."""
        return not start.attempt and start.prompt in self._log.ahead.withdrawn

    async def _give_up(self, start: Start, why: Fault | Stop) -> None:
        """End a turn that cannot run: the prompt was admitted, so it gets its answer."""
        if self._withdrawn(start):
            return
        view = self._log.ahead.view
        if view.turn is None:
            self.emit(TurnStarted(prompt=start.prompt, model=view.model, limits=_NO_LIMITS))
            self.emit(PromptDelivered(prompt=start.prompt, turn=start.turn, how="started"))
        usage = start.spent.usage
        if isinstance(why, Stop):
            self.emit(TurnCancelled(by=why.by, reason=why.reason, usage=usage))
        else:
            self.emit(TurnFailed(fault=why, usage=usage))
        await self.settle()

    # the host of the running turn

    def emit(self, event: Event, private: tuple[Private, ...] = ()) -> None:
        """Take in an event of the turn, in order.

        Before its end all that is open in it ends too (C1.23), also what only the log knows of: a
        request that was shown before a crash, of a turn that is stopped before it asks again.
        """
        if type(event) in TERMINAL_EVENTS:
            self._close_open_parts()
        self._log.emit(event, private)
        if type(event) is ToolEnded:
            self._on_call_end(event)

    async def settle(self) -> None:
        """Wait until all that was emitted is durable."""
        await self._log.settle()

    async def ask(self, request: PermissionRequested) -> PermissionResolved:
        """Let people decide (C5.9)."""
        return await self._ask(request)

    def steers(self) -> tuple[PromptId, ...]:
        """Prompts that are to be said into the running turn."""
        queue = self._log.ahead.view.queue
        return tuple(queued.prompt for queued in queue if queued.when == "steer")

    async def stopped(self) -> Stop:
        """Wait for somebody to stop the turn, or for nobody to watch it for too long (C5.13)."""
        assert self._stop is not None
        await self._orphan.wait_beside(self._stop)
        if not self._stop.done():
            self.interrupt(SERVER, ORPHANED, self._log.turn)
        return await asyncio.shield(self._stop)

    def _close_open_parts(self) -> None:
        """Nothing of a turn that ends stays open."""
        for event in close_parts(self._log.ahead.view, "the turn failed"):
            self.emit(event)


_STOP_S: Final = 30.0  # nothing that a turn runs takes longer to end
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
