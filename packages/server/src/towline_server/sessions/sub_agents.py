"""The agents that work for a session's turn, each in a session of its own (D5).

The session's id stands in the call's `tool_started` before the session is made. So after a crash
the call, run again, finds the session that it began, which has gone on by itself or has come to its
end.
"""

import asyncio
import logging
from typing import Final, Protocol

import msgspec

from towline_agent import (
    AGENTS_AT_ONCE,
    Mint,
    Spent,
    Tally,
    Tool,
    ToolContext,
    ToolError,
    ToolOutput,
    last_text,
    make_sub_agents,
    report_end,
    run_to_the_end,
)
from towline_protocol import Event, Parent, SessionCreated, SessionId, Text, ToolProposed
from towline_server.sessions.agents import Agents
from towline_server.sessions.log import Log
from towline_server.sessions.runner import Runner

__all__ = ["Child", "Order", "Staff", "SubAgents"]

_log: Final = logging.getLogger("towline.server")

_TRIES: Final = 3
"""How often a session is loaded again whose log broke while it worked."""
_TITLE_CHARS: Final = 60


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """A task for a sub-agent."""

    id: SessionId
    """Its session, there already or not."""
    user: str
    """Whose it is."""
    created: SessionCreated
    """What it is made of."""
    prompt: str
    """The task."""


class Child(Protocol):
    """A sub-agent's session in memory."""

    @property
    def log(self) -> Log:
        """Its way into the store."""
        ...

    @property
    def runner(self) -> Runner:
        """What runs its turns."""
        ...


class Staff(Protocol):
    """Where the sub-agents' sessions are."""

    async def hire(self, order: Order) -> Child:
        """The session of that id as it is, or made and begun; its turn runs, or has ended.

        Raises:
            TowlineError: It can be neither found nor made.
        """
        ...

    async def dismiss(self, order: Order, reason: str) -> None:
        """End what runs in it and close it for good; durable when this returns."""
        ...


class SubAgents:
    """Spawns the agents of one session, follows them, and brings back what they say.

    Args:
        log: The session's way into the store.
        agents: The agents there are.
        mint: Ids.
        staff: Where their sessions are.
    """

    def __init__(self, log: Log, *, agents: Agents, mint: Mint, staff: Staff) -> None:
        self._log = log
        self._agents = agents
        self._mint = mint
        self._staff = staff
        self._places = asyncio.Semaphore(AGENTS_AT_ONCE)
        self._calls: dict[SessionId, ToolContext] = {}

    def tools(self) -> tuple[Tool, ...]:
        """The tool `spawn_agent`; nothing for a sub-agent, or where the agent has nobody to ask."""
        view = self._log.ahead.view
        named = self._agents.spec(view.agent).agents
        if view.parent is not None or not named:
            return ()
        listed = {name: self._agents.spec(name).description for name in named}
        return (make_sub_agents(self._run, listed),)

    def used_up(self, child: SessionId) -> str | None:
        """Why this sub-agent may use nothing more; `None` while it may."""
        call = self._calls.get(child)
        return None if call is None else call.used_up()

    async def _run(self, context: ToolContext, prompt: str, agent: str) -> ToolOutput:
        known = self._log.ahead.children.get(context.call)
        order = self._order(known or SessionId(self._mint("ses")), context, prompt, agent)
        await context.start(None, child=order.id)
        async with self._places:
            self._calls[order.id] = context
            try:
                return await self._see_through(order, _Follower(context, agent))
            finally:
                del self._calls[order.id]

    def _order(self, id_: SessionId, context: ToolContext, prompt: str, agent: str) -> Order:
        view = self._log.ahead.view
        words = " ".join(prompt.split(maxsplit=_TITLE_CHARS)[:_TITLE_CHARS])
        created = SessionCreated(
            agent=agent,
            model=view.model,
            mode=view.mode,
            title=words[:_TITLE_CHARS] or None,
            cwd=view.cwd,
            parent=Parent(session=self._log.session, call=context.call),
        )
        return Order(id=id_, user=self._log.user, created=created, prompt=prompt)

    async def _see_through(self, order: Order, follower: "_Follower") -> ToolOutput:
        """Stay with a sub-agent to its end; who is cancelled ends it first."""
        try:
            child = await self._to_end(order, follower)
        except asyncio.CancelledError:
            if not self._log.shut:  # else both were cut by a crash, as far as the log knows
                stopping = self._staff.dismiss(order, "the agent that it works for was stopped")
                await run_to_the_end(stopping)
                follower.count()
            raise
        follower.count()
        await self._staff.dismiss(order, "done")
        return _tell(child)

    async def _to_end(self, order: Order, follower: "_Follower") -> Child:
        """The sub-agent's session once nothing runs in it any more."""
        for _ in range(_TRIES):
            child = await self._staff.hire(order)
            with follower.following(child):
                await child.runner.idle()
            if not child.log.shut:
                await child.log.settle()
                return child
        raise ToolError("The agent's session can't be kept; the server's log says why.")


class _Follower:
    """Shows in a call what a sub-agent does, and counts what it uses."""

    def __init__(self, context: ToolContext, agent: str) -> None:
        self._context = context
        self._agent = agent
        self._tally = Tally(context.spend)
        self._child: Child | None = None

    def following(self, child: Child) -> "_Follower":
        """Follow a session while the context lasts."""
        self._child = child
        return self

    def __enter__(self) -> None:
        assert self._child is not None
        self._child.log.on_event = self._see
        self.count()

    def __exit__(self, *_: object) -> None:
        assert self._child is not None
        self._child.log.on_event = None

    def count(self) -> None:
        """Count all that was used so far."""
        if self._child is None:
            return
        ahead = self._child.log.ahead
        spent = ahead.spent
        if ahead.view.turn is None and ahead.view.last_turn is not None:
            last = ahead.view.last_turn
            cost = last.cost if last.outcome == "completed" else spent.cost
            known = spent.known_cost if cost is None else cost
            spent = Spent(usage=last.usage, cost=cost, known_cost=known)
        self._tally.reach(spent)

    def _see(self, event: Event) -> None:
        if isinstance(event, ToolProposed):
            self._context.progress(f"{self._agent}: {event.title}")
        self.count()


def _tell(child: Child) -> ToolOutput:
    """What the model is told of a sub-agent that has ended."""
    ahead = child.log.ahead
    last = ahead.view.last_turn
    if last is None:
        raise ToolError("The agent never began; ask it again, or do it yourself.")
    words = last_text(ahead.transcript.messages())
    if last.outcome == "completed":
        return report_end(words, last.stop_reason or "end_turn")
    why = "was stopped" if last.fault is None else f"failed: {last.fault.message}"
    told = f"The agent {why}" + (f"\nIts last words were:\n{words}" if words else "")
    return ToolOutput(content=(Text(text=told),), is_error=True)
