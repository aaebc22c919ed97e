"""The agents of a server: named specs, and the plan that a turn runs by."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from towline_agent import (
    Clock,
    LocalWorkspace,
    Mint,
    Plan,
    Provider,
    Rule,
    Slot,
    Tool,
    Toolset,
    system_prompt,
)
from towline_protocol import Limits, SessionView, UsageError

__all__ = ["DEFAULT_AGENT", "AgentSpec", "Agents", "Connect", "Connection"]

DEFAULT_AGENT: Final = "towline"
"""The agent of a session that names none."""


class Connection(NamedTuple):
    """A provider, and the places it has when they are few."""

    provider: Provider
    """Who is asked."""
    slot: Slot | None = None
    """`None` when it serves any number at once."""


Connect = Callable[[str], Awaitable[Connection]]
"""Finds the provider of a `provider/model`; raises `TowlineError` when there is none."""


@dataclass(frozen=True, kw_only=True)
class AgentSpec:
    """One agent: what it is told and what it may call. Never comes from a client (C2.9)."""

    name: str
    """Its name."""
    instructions: str = ""
    """What it is and how it should behave."""
    tools: Toolset = field(default_factory=Toolset)
    """What its model may call."""
    limits: Limits = field(default_factory=Limits)
    """The bounds of its turns."""
    fallbacks: tuple[str, ...] = ()
    """Models that are asked, in this order, when a session's own cannot serve (A3.35)."""
    server_tools: tuple[str, ...] = ()
    """Tools of the provider's own that it may use, such as `web_search` (A2.60)."""


class Agents:
    """Makes plans out of specs and a session's settings; keeps one provider a model."""

    def __init__(
        self,
        specs: Mapping[str, AgentSpec],
        *,
        connect: Connect,
        default_model: str,
        clock: Clock,
        mint: Mint,
        hidden: Sequence[Path] = (),
    ) -> None:
        self.default_model = default_model
        """`provider/model` of a session that names none."""
        self._specs = dict(specs)
        self._connect = connect
        self._clock = clock
        self._mint = mint
        self._hidden = tuple(hidden)
        self._connections: dict[str, Connection] = {}
        self._connecting = asyncio.Lock()

    def spec(self, name: str) -> AgentSpec:
        """The spec of that name.

        Raises:
            UsageError: There is none.
        """
        found = self._specs.get(name)
        if found is None:
            known = ", ".join(sorted(self._specs))
            raise UsageError(f"There is no agent {name!r}; the agents are: {known}.")
        return found

    async def plan(
        self,
        view: SessionView,
        rules: list[Rule],
        limits: Limits | None = None,
        tools: Sequence[Tool] = (),
    ) -> Plan:
        """What the next turn of a session runs by.

        Args:
            view: The session.
            rules: What people allowed for it.
            limits: The turn's bounds; `None` for the agent's own.
            tools: Tools of the session itself, behind the agent's.

        Raises:
            TowlineError: Its agent or its model cannot be had.
        """
        spec = self.spec(view.agent)
        connection = await self._connection(view.model)
        others = [name for name in spec.fallbacks if name != view.model]
        fallbacks = tuple([(await self._connection(name)).provider for name in others])
        workspace = LocalWorkspace(view.cwd or ".", hidden=self._hidden)
        return Plan(
            provider=connection.provider,
            system=system_prompt(spec.name, spec.instructions, workspace),
            tools=Toolset([*spec.tools.values(), *tools]) if tools else spec.tools,
            workspace=workspace,
            clock=self._clock,
            mint=self._mint,
            mode=view.mode,
            rules=rules,
            limits=limits or spec.limits,
            slot=connection.slot,
            fallbacks=fallbacks,
            cache_key=view.session,
            server_tools=spec.server_tools,
        )

    async def aclose(self) -> None:
        """Give back the providers' connections."""
        for connection in self._connections.values():
            await connection.provider.aclose()

    async def _connection(self, model: str) -> Connection:
        found = self._connections.get(model)
        if found is not None:
            return found  # never behind a model that takes its time
        async with self._connecting:
            found = self._connections.get(model)
            if found is None:
                found = self._connections[model] = await self._connect(model)
            return found
