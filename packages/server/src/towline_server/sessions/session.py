"""One live session: what is shown of it, and what clients ask of it."""

import contextlib
import logging
from collections.abc import Awaitable, Callable, Generator
from pathlib import Path
from typing import Final

import msgspec

from towline_agent import Clock, Keeper, Mint, Tool, ToolState
from towline_protocol import (
    History,
    Notice,
    Partial,
    PromptAccepted,
    PromptId,
    SessionId,
    SessionInfo,
    SessionView,
    TurnId,
    TurnReverted,
    reduce,
)
from towline_server.errors import (
    InboxFull,
    Rejected,
    SessionBusy,
)
from towline_server.sessions.agents import Agents
from towline_server.sessions.budget import Budget
from towline_server.sessions.catalog import describe
from towline_server.sessions.client_call import ClientCalls
from towline_server.sessions.deadline import OpenRequests, Patience
from towline_server.sessions.files import Files
from towline_server.sessions.going_back import GoingBack
from towline_server.sessions.history import read_history
from towline_server.sessions.inbox import Inbox, Said
from towline_server.sessions.kept_files import KeptFiles
from towline_server.sessions.lead import Boss, Lead, Remember
from towline_server.sessions.log import Log
from towline_server.sessions.orphan import OrphanWatch
from towline_server.sessions.own import OwnThings
from towline_server.sessions.question import Questions
from towline_server.sessions.request import Requests
from towline_server.sessions.runner import Runner
from towline_server.sessions.sub_agents import Staff, SubAgents

__all__ = ["Session"]

_log: Final = logging.getLogger("towline.server")


class Session:
    """A session in memory."""

    def __init__(
        self,
        log: Log,
        *,
        agents: Agents,
        clock: Clock,
        mint: Mint,
        patience: Patience,
        budget: Budget,
        files: Files,
        staff: Staff,
        find_boss: Callable[[str, SessionId], Awaitable[Boss]],
        kept: KeptFiles,
        keeper: Callable[[SessionView, TurnId | None], Keeper | None],
        notes: Path | None = None,
        draining: bool = False,
    ) -> None:
        """Take a session over; nothing runs yet.

        Args:
            log: Its way into the store.
            agents: Makes its turns' plans.
            clock: Time.
            mint: Ids.
            patience: How long it waits for people.
            budget: What its user's day may cost.
            files: The bytes that its conversation names by hash.
            staff: Where the sessions of its sub-agents are.
            find_boss: Finds the session that it works for, if it is a sub-agent's.
            notes: The folder of all users' notes; `None` where there are none.
            kept: What its turns did to files.
            keeper: Makes what keeps the files that a turn touches.
            draining: The server shuts down: no turn may start.
        """
        self._agents = agents
        self.log = log
        """Its way into the store."""
        self._budget = budget
        self._uses = 0
        self.inbox = Inbox(log, mint)
        """What waits for a turn."""
        self.waiting = OpenRequests(clock)
        """What waits for people."""
        self.lead = Lead(log, find_boss)
        """Leads to the session that it works for, if it is a sub-agent's."""
        self.sub_agents = SubAgents(log, agents=agents, mint=mint, staff=staff)
        """The agents that work for it."""
        self.own = OwnThings(log, notes)
        """What its agent keeps of its own."""
        self.requests = Requests(
            log,
            clock=clock,
            patience=patience,
            waiting=self.waiting,
            policies=agents.projects.policies,
            lead=self.lead,
        )
        """What people are asked to allow."""
        self.questions = Questions(
            log, clock=clock, patience=patience, waiting=self.waiting, lead=self.lead
        )
        """What people are asked."""
        self.client_calls = ClientCalls(
            log, spec=lambda: agents.spec(log.ahead.view.agent), clock=clock
        )
        """What runs in clients."""
        self.state = ToolState()
        """What tools hold for it, such as background jobs."""
        self._orphan = OrphanWatch(clock, patience.orphan_s, lambda: log.hub.readers)
        log.hub.on_readers = self._note_readers
        self.runner = Runner(
            log,
            agents=agents,
            mint=mint,
            ask=self.requests.ask,
            own_tools=self._own_tools,
            own=self.own,
            lead=self.lead,
            on_call_end=self.client_calls.note_end,
            orphan=self._orphan,
            budget=budget,
            files=files,
            keeper=lambda: keeper(log.ahead.view, log.turn),
            state=self.state,
            draining=draining,
        )
        """What runs its turns."""
        self.going_back = GoingBack(log, kept=kept, inbox=self.inbox, runner=self.runner)
        """What its turns did to files, and the way back."""

    # what is shown

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
        return self.runner.busy

    @property
    def waits(self) -> bool:
        """Whether its turn waits for a person or a client right now."""
        return self.waiting.waiting or self.client_calls.waiting or self.lead.waiting

    def used_up(self, child: SessionId) -> str | None:
        """Why a sub-agent of it may use nothing more; `None` while it may."""
        return self.sub_agents.used_up(child)

    @property
    def live(self) -> bool:
        """Whether a turn runs, something is pending or a reader is attached (C6)."""
        view = self.log.view
        pending = view.permissions or view.questions
        return view.turn is not None or bool(pending) or self.log.hub.readers > 0

    @property
    def active(self) -> bool:
        """Whether it is live, or about to be, or a background job runs, which has an end."""
        waits = bool(self.log.ahead.view.queue) and not self.runner.held
        return self.live or self.busy or waits or self._uses > 0 or self.state.busy

    @property
    def idle(self) -> bool:
        """Whether nobody would miss it if it left memory now."""
        return not self.active and self.log.settled

    @contextlib.contextmanager
    def in_use(self) -> Generator[None]:
        """Keep it in memory, and its place among the live ones, while somebody waits to change it.

        What is emitted after a wait would be lost if the session had left memory meanwhile.
        """
        self._uses += 1
        try:
            yield
        finally:
            self._uses -= 1

    def view(self) -> SessionView:
        """What a screen shows right now, open messages included."""
        view = self.log.view
        for partial in self.log.partials.frames():
            view = reduce(view, partial)
        return view

    async def history(self, *, before: int, limit: int) -> History:
        """Messages right before an event; see `read_history`."""
        return await read_history(
            self.log.store,
            self.log.session,
            before=before,
            limit=limit,
            undone=tuple(self.log.ahead.undone),
        )

    def partials(self) -> tuple[Partial, ...]:
        """What is open right now."""
        return self.log.partials.frames()

    def info(self, *, ahead: bool = False, read_seq: int = 0) -> SessionInfo:
        """The row of the session list.

        Args:
            ahead: With what is not committed yet: only for an answer kept in the same transaction.
            read_seq: How far its user has read it; the store knows.
        """
        row = msgspec.structs.replace(self.log.row(ahead=ahead), read_seq=read_seq)
        return describe(row, live=self.live)

    # what clients ask

    async def admit(self, said: Said, remember: Remember | None = None) -> PromptAccepted:
        """Make a prompt durable, and start it when nothing else runs (C2.11).

        Raises:
            SessionGone: The session is closed.
            SessionBusy: `when` is `reject` and a turn runs.
            InboxFull: Too many prompts wait.
            BudgetSpent: The user's day has cost what it may.
            StoreError: It could not be kept; nothing was taken.
        """
        with self.in_use():
            await self._budget.check(self.log.user)
        self._check_admission(said.when)
        return await self._start_with(self.inbox.take(said), remember)

    async def say_again(
        self,
        turn: TurnId | None,
        said: Said | None = None,
        *,
        key: str | None = None,
        remember: Remember | None = None,
    ) -> PromptAccepted:
        """Undo a turn, with all after it, and say its prompt again, or something else instead.

        Args:
            turn: The turn; `None` for the last one.
            said: What is said instead; `None` for the same again.
            key: The client's own key of the same again.
            remember: How to keep the answer.

        Raises:
            SessionGone: The session is closed.
            SessionBusy: A turn runs.
            SessionNotFound: There is no such turn.
            Rejected: The turn is no longer in the conversation.
            InboxFull: Too many prompts wait.
            BudgetSpent: The user's day has cost what it may.
            StoreError: It could not be kept; nothing was taken.
        """
        with self.in_use():
            await self._budget.check(self.log.user)
        self._check_idle()
        self._check_admission("auto")
        last = self.log.ahead.view.last_turn
        turn = turn or (None if last is None else last.id)
        if turn is None:
            raise Rejected("Nothing has run here yet; send a prompt.", reason="no_turn")
        return await self._start_with(self.inbox.say_again(turn, said, key), remember)

    async def revert(
        self,
        turn: TurnId,
        *,
        skip_conflicts: bool = False,
        conversation: bool = False,
        remember: Remember | None = None,
    ) -> TurnReverted:
        """Put files back to what they were before a turn; see `GoingBack.revert`.

        Raises:
            SessionGone: The session is closed.
            SessionBusy: A turn runs.
            SessionNotFound: There is no such turn.
            Rejected: The conversation cannot go back to before it, or the folder is gone.
            RootForbidden: The folder lies outside the roots by now.
            StoreError: It could not be done, or not be noted.
        """
        view = self.log.ahead.view
        self.inbox.check_open(view)
        self._check_idle()
        if view.cwd is not None:
            self._agents.projects.check(view.cwd)
        with self.in_use():
            return await self.going_back.revert(
                turn,
                skip_conflicts=skip_conflicts,
                conversation=conversation,
                remember=remember,
            )

    async def withdraw(self, prompt: PromptId) -> None:
        """Take a waiting prompt back; durable when this returns.

        Raises:
            SessionGone: A turn has taken it already.
            SessionNotFound: There was never such a prompt.
            StoreError: It could not be kept.
        """
        self.inbox.withdraw(prompt)
        await self.log.settle()

    async def resume_queue(self) -> None:
        """Run what a stop holds back (C2.11).

        Raises:
            SessionGone: The session is closed.
        """
        self.inbox.check_open(self.log.ahead.view)
        self.runner.held = False
        self.runner.wake()

    async def _start_with(
        self, accepted: PromptAccepted, remember: Remember | None
    ) -> PromptAccepted:
        self.runner.held = False  # at once: a stop that comes while it is committed holds it again
        if remember is not None:
            self.log.keep(remember(accepted))
        await self.log.settle()
        self.runner.wake()
        return accepted

    async def drain(self, grace_s: float) -> None:
        """Let the running turn end, for so long; then interrupt it (C5.14)."""
        await self.runner.drain(grace_s, lambda: self.waits)

    async def shut(self, by: str, reason: str) -> None:
        """Take nothing more and end what runs: the first half of a close for good."""
        self.inbox.shut = True
        await self.going_back.end()
        await self.runner.shut(by, reason)
        await self.state.aclose()

    async def close(self) -> None:
        """Leave memory: the running turn stays open in the log, to be resumed.

        What ends with it, such as a request that nobody can answer any more, is not written down:
        for the log this is a crash.
        """
        self.log.hub.close()
        await self.going_back.end()
        await self.log.close()
        self.client_calls.close()
        await self.runner.cancel()
        await self.state.aclose()

    async def compact(self) -> None:
        """Sum the conversation up; what came of it is told by an event.

        Raises:
            SessionGone: The session is closed.
            SessionBusy: A turn runs.
            BudgetSpent: The user's day has cost what it may.
            StoreError: It could not be noted.
        """
        with self.in_use():
            await self._budget.check(self.log.user)
        self.inbox.check_open(self.log.ahead.view)
        self._check_idle()
        self.runner.tidy()
        self.log.emit(Notice(code="compacting", message="The conversation is being summed up."))
        await self.log.settle()

    def tell_cut(self) -> None:
        """Say that a summary came to nothing which a crash cut, or the session's end."""
        if self.log.ahead.tidying:
            self.log.emit(
                Notice(code="not_compacted", message="It was cut off before it was done."),
                outside=True,
            )

    def _check_idle(self) -> None:
        if self.busy or self.log.turn is not None:
            raise SessionBusy(
                "A turn runs, or files are being put back; stop it or wait for its end, then try "
                "again.",
                reason="turn_active",
            )

    def _note_readers(self) -> None:
        self.waiting.note_readers(self.log.hub.readers)
        self._orphan.note_readers()

    def _check_admission(self, when: str) -> None:
        try:
            self.inbox.check(when, busy=self.busy)
        except InboxFull:
            self.runner.held = False  # a full inbox that is held would never have room again
            self.runner.wake()
            raise

    def tools(self) -> tuple[Tool, ...]:
        """What its model may call, in the order in which it reads them."""
        given = self._agents.spec(self.log.view.agent).tools
        return (*given.values(), *(own for own in self._own_tools() if own.name not in given))

    def _own_tools(self) -> tuple[Tool, ...]:
        """Tools that lead out of the server, to people and to clients."""
        own = (self.questions.tool(), *self.sub_agents.tools(), *self.own.tools())
        return (*own, *self.client_calls.tools(own))
