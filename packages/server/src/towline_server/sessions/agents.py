"""The agents of a server: named specs, and the plan that a turn runs by."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from towline_agent import (
    SPAWN_AGENT,
    Clock,
    Keeper,
    LocalWorkspace,
    Mint,
    Model,
    Plan,
    Provider,
    Rule,
    Slot,
    Tool,
    Toolset,
    system_prompt,
)
from towline_protocol import Limits, SessionView, UsageError
from towline_server.errors import Rejected
from towline_server.sessions.connection import Connect, Connection, Line
from towline_server.sessions.project import Projects
from towline_server.sessions.question import ASK_USER

__all__ = ["DEFAULT_AGENT", "OWN_TOOLS", "AgentSpec", "Agents", "Connect", "Connection"]

OWN_TOOLS: Final = (ASK_USER, SPAWN_AGENT, "read_memory", "write_memory")
"""Names of the tools that a session itself may bring along."""
DEFAULT_AGENT: Final = "towline"
"""The agent of a session that names none, where there is one of that name; else the first one."""


@dataclass(frozen=True, kw_only=True)
class AgentSpec:
    """One agent: what it is told and what it may call. Never comes from a client (C2.9)."""

    name: str
    """Its name."""
    instructions: str = ""
    """What it is and how it should behave."""
    tools: Toolset = field(default_factory=Toolset)
    """What its model may call."""
    few_tools: tuple[str, ...] = ()
    """Which of its tools a small model is offered, one that gets no instructions; all of them when
    none of these is there."""
    limits: Limits = field(default_factory=Limits)
    """The bounds of its turns."""
    fallbacks: tuple[str, ...] = ()
    """Models that are asked, in this order, when a session's own cannot serve (A3.35)."""
    server_tools: tuple[str, ...] = ()
    """Tools of the provider's own that it may use, such as `web_search` (A2.60)."""
    trusts_client_effects: bool = False
    """Whether the effect that a client declares of its tool counts; else it is `write` (C5.12)."""
    asks: bool = True
    """Whether it may ask people questions, by the tool `ask_user`."""
    remembers: bool = False
    """Whether it keeps notes on a project, by the tools `read_memory` and `write_memory`."""
    agents: tuple[str, ...] = ()
    """Agents that its model may hand tasks to, by the tool `spawn_agent` (D5)."""
    description: str = ""
    """What it is for, in a sentence for models that may hand it tasks."""
    hidden: bool = False
    """Whether it works for other agents alone: people are not offered it."""


class Agents:
    """Makes plans out of specs and a session's settings; keeps one provider a model."""

    def __init__(
        self,
        specs: Mapping[str, AgentSpec],
        *,
        connect: Connect,
        default_model: str | Callable[[], str],
        clock: Clock,
        mint: Mint,
        hidden: Sequence[Path] = (),
        sandbox: str = "auto",
        projects: Projects | None = None,
        knows: Callable[[str], bool] = lambda model: True,
    ) -> None:
        """Nobody is asked yet.

        Args:
            specs: The agents by name.
            connect: Finds a model's provider.
            default_model: The model of a session that names none, or what tells it.
            clock: Time.
            mint: Ids.
            hidden: Places that no tool may read.
            sandbox: Whether programs run in one: `auto`, `off` or `required` (A5.21).
            projects: Looks into the folders of sessions; one that knows no roots when left out.
            knows: Whether there is a provider for a `provider/model`.

        Raises:
            UsageError: There is no agent, or one is called otherwise than its spec says.
        """
        self._default_model = default_model
        self._specs = _checked(specs)
        self._connect = connect
        self._clock = clock
        self._mint = mint
        self._hidden = tuple(hidden)
        self._sandbox = sandbox
        self.projects = Projects((), hidden=hidden) if projects is None else projects
        """Looks into the folders of sessions."""
        self._knows = knows
        self._lines: dict[str, tuple[Line, Slot | None]] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self._connecting = asyncio.Lock()

    @property
    def specs(self) -> tuple[AgentSpec, ...]:
        """What people are offered: the one of a session that names none, then the others."""
        usual = self._specs.get(DEFAULT_AGENT)
        rest = [spec for spec in self._specs.values() if spec is not usual and not spec.hidden]
        return tuple(rest) if usual is None else (usual, *rest)

    @property
    def default_agent(self) -> str:
        """The agent of a session that names none."""
        return self.specs[0].name

    @property
    def default_model(self) -> str:
        """`provider/model` of a session that names none and is made now."""
        chosen = self._default_model
        return chosen if isinstance(chosen, str) else chosen()

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

    def offered(self, name: str) -> AgentSpec:
        """The spec of that name, if people may begin sessions with it.

        Raises:
            UsageError: There is none.
        """
        found = self._specs.get(name)
        if found is None or found.hidden:
            known = ", ".join(sorted(spec.name for spec in self.specs))
            raise UsageError(f"There is no agent {name!r}; the agents are: {known}.")
        return found

    def check_model(self, name: str) -> None:
        """Refuse a model that can never be had. What only lacks a key may get one later.

        Raises:
            Rejected: It is no `provider/model`, or nobody knows its provider.
        """
        provider, _, model = name.partition("/")
        if not provider.strip() or not model.strip():
            raise Rejected(
                f"{name!r} is no model; write it as 'provider/model'.", reason="unknown_model"
            )
        if not self._knows(name):
            raise Rejected(
                f"The model {name!r} cannot be had: there is no provider {provider!r}. List the "
                "models to see those that are offered.",
                reason="unknown_model",
            )

    async def plan(
        self,
        view: SessionView,
        rules: list[Rule],
        limits: Limits | None = None,
        tools: Sequence[Tool] = (),
        keeper: Keeper | None = None,
    ) -> Plan:
        """What the next turn of a session runs by.

        Args:
            view: The session.
            rules: What people allowed for it.
            limits: The turn's bounds; `None` for the agent's own.
            tools: Tools of the session itself, behind the agent's.
            keeper: Keeps the files that the turn touches.

        Raises:
            TowlineError: Its agent or its model cannot be had.
        """
        spec = self.spec(view.agent)
        line, slot = await self._line(view.model)
        others = [name for name in spec.fallbacks if name != view.model]
        fallbacks = tuple([(await self._line(name))[0] for name in others])
        cwd = view.cwd or "."
        if view.cwd is not None:
            self.projects.check(view.cwd)
        workspace = LocalWorkspace(cwd, hidden=self._hidden, sandbox=self._sandbox, keeper=keeper)
        words = limits_told = ""
        if not line.model.bare_prompt:
            words = await self.projects.instructions(cwd)
            limits_told = await workspace.tell_limits()
        return Plan(
            provider=line,
            system=system_prompt(
                spec.name,
                spec.instructions,
                workspace,
                project=words,
                mode=view.mode,
                limits=limits_told,
            ),
            tools=_with_own(spec, line.model, tools),
            workspace=workspace,
            clock=self._clock,
            mint=self._mint,
            mode=view.mode,
            rules=rules,
            limits=limits or spec.limits,
            slot=slot,
            fallbacks=fallbacks,
            cache_key=view.session,
            server_tools=spec.server_tools,
        )

    def renew(self) -> None:
        """Let go of connections with changed keys or addresses, once nobody uses them."""
        for line, _ in self._lines.values():
            line.renew()

    async def aclose(self) -> None:
        """Give back the providers' connections."""
        self.projects.policies.close()
        for line, _ in self._lines.values():
            await line.aclose()
        if self._closing:
            await asyncio.wait(self._closing)

    async def _line(self, model: str) -> tuple[Line, Slot | None]:
        found = self._lines.get(model)
        if found is not None:
            return found  # never behind a model that takes its time
        async with self._connecting:
            found = self._lines.get(model)
            if found is None:
                first = await self._connect(model)
                line = Line(model, first, self._connect, self._close)
                found = self._lines[model] = (line, first.slot)
            return found

    def _close(self, provider: Provider) -> None:
        task = asyncio.create_task(provider.aclose())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)


def _checked(specs: Mapping[str, AgentSpec]) -> dict[str, AgentSpec]:
    if not specs:
        raise UsageError(
            "There is no agent; give one, such as {'helper': AgentSpec(name='helper')}."
        )
    for name, spec in specs.items():
        if name != spec.name:
            raise UsageError(
                f"The agent {name!r} has a spec of the name {spec.name!r}; give both the same name."
            )
        unknown = [other for other in spec.agents if other not in specs]
        if unknown:
            raise UsageError(
                f"The agent {name!r} may hand tasks to {unknown[0]!r}, which is not there; give a "
                "spec of that name."
            )
    if all(spec.hidden for spec in specs.values()):
        raise UsageError("All agents are hidden, so people could talk to none; show one.")
    return dict(specs)


def _needs(spec: AgentSpec, model: Model, *, may_ask: bool) -> dict[str, bool]:
    """Which of a session's own tools an agent gets."""
    remembers = spec.remembers and not model.bare_prompt
    return {
        ASK_USER: may_ask,
        SPAWN_AGENT: not model.bare_prompt,
        "read_memory": remembers,
        "write_memory": remembers,
    }


def _with_own(spec: AgentSpec, model: Model, tools: Sequence[Tool]) -> Toolset:
    """The agent's tools, then the session's own.

    A model that gets no instructions of ours is too small to know when to ask.
    """
    may_ask = spec.asks and not model.bare_prompt and ASK_USER not in spec.tools
    unfit = {name for name, fits in _needs(spec, model, may_ask=may_ask).items() if not fits}
    own = [made for made in tools if made.name not in unfit and made.name not in spec.tools]
    few = [spec.tools[name] for name in spec.few_tools if name in spec.tools]
    given = few if few and model.bare_prompt else list(spec.tools.values())
    return Toolset([*given, *own])
