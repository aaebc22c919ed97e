"""The agent that comes with the product."""

from collections.abc import Iterable
from typing import Final

from towline_agent import Tool, Toolset, builtin_tools
from towline_server import AgentSpec

__all__ = ["INSTRUCTIONS", "NAME", "make_assistant"]

NAME: Final = "towline"
"""What the agent calls itself."""

INSTRUCTIONS: Final = (
    "You help a person with their work and their files. Use a tool when you need facts from this "
    "machine; answer in plain words otherwise. Say what you did and what you are not sure of."
)
"""Short on purpose: a small model reads every word again and again."""


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
        fallbacks=fallbacks,
        trusts_client_effects=trusts_client_effects,
    )
