"""The agent that comes with the product."""

from typing import Final

from towline_agent import Toolset, builtin_tools
from towline_server import AgentSpec

__all__ = ["INSTRUCTIONS", "NAME", "make_assistant"]

NAME: Final = "towline"
"""What the agent calls itself."""

INSTRUCTIONS: Final = (
    "You help a person with their work and their files. Use a tool when you need facts from this "
    "machine; answer in plain words otherwise. Say what you did and what you are not sure of."
)
"""Short on purpose: a small model reads every word again and again."""


def make_assistant() -> AgentSpec:
    """The spec: the built-in tools and short instructions."""
    return AgentSpec(name=NAME, instructions=INSTRUCTIONS, tools=Toolset(builtin_tools()))
