"""The agent that comes with the product."""

from collections.abc import Iterable
from typing import Final

from towline_agent import EXPLORE, GENERAL, Model, Tool, Toolset, builtin_tools
from towline_server import AgentSpec

__all__ = [
    "FEW_TOOLS",
    "HELPERS",
    "INSTRUCTIONS",
    "NAME",
    "make_agents",
    "make_assistant",
    "tools_for",
]

NAME: Final = "towline"
"""What the agent calls itself."""

INSTRUCTIONS: Final = """\
You help a person with their work and their files, in the folder below.

- Look before you act: search and read what matters, several things at once. Never guess what a
  file says.
- Change as little as the task needs, in the style that is there. Keep to the edit tools for files.
- After a change, run what shows that it works: the tests, the program. Read the errors and go on
  until it does.
- Do what was asked, and nothing that nobody asked for: no commits, no new dependencies, no
  clean-up elsewhere.
- Ask when a choice is the person's; for small things choose, and say so.
- Say at the end what you did, what you saw to prove it, and what you are not sure of. Be brief."""
"""For a model that can follow them; a small one is told nothing."""

FEW_TOOLS: Final = ("read_file", "list_dir", "run_program", "now")
"""What a small model is offered: with more tools it stops calling any (see `Model.bare_prompt`)."""


HELPERS: Final = (EXPLORE, GENERAL)
"""The agents that it may hand tasks to (D5)."""


def tools_for(tools: Iterable[Tool], model: Model) -> tuple[Tool, ...]:
    """The tools that a model is offered: all of them, or `FEW_TOOLS` for a small one."""
    given = tuple(tools)
    if not model.bare_prompt:
        return given
    return tuple(tool for tool in given if tool.name in FEW_TOOLS) or given


def make_assistant(
    tools: Iterable[Tool] | None = None,
    fallbacks: tuple[str, ...] = (),
    *,
    trusts_client_effects: bool = False,
) -> AgentSpec:
    """The spec: tools and short instructions.

    Args:
        tools: What it may call; `None` for the built-in tools.
        fallbacks: Models that are asked when a session's own cannot serve.
        trusts_client_effects: Whether the effects count that clients declare of their tools.
    """
    given = builtin_tools() if tools is None else tools
    return AgentSpec(
        name=NAME,
        instructions=INSTRUCTIONS,
        tools=Toolset(given),
        few_tools=FEW_TOOLS,
        fallbacks=fallbacks,
        trusts_client_effects=trusts_client_effects,
        remembers=True,
        agents=tuple(agent.name for agent in HELPERS),
    )


def make_agents(assistant: AgentSpec) -> dict[str, AgentSpec]:
    """All agents of the product by name: the assistant, and those that it may hand tasks to.

    Args:
        assistant: What `make_assistant` gave.
    """
    tools = tuple(assistant.tools.values())
    helpers = [
        AgentSpec(
            name=helper.name,
            description=helper.description,
            instructions=helper.instructions,
            tools=helper.choose(tools),
            limits=helper.limits,
            fallbacks=assistant.fallbacks,
            asks=not helper.reads_only,
            hidden=True,
        )
        for helper in HELPERS
    ]
    return {agent.name: agent for agent in (assistant, *helpers)}
