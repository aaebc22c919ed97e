"""A tool that hands a task to another agent (A4.61)."""

import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, cast

import msgspec

from towline_agent.errors import ToolError
from towline_agent.tools.function import make_tool
from towline_agent.tools.result import to_output
from towline_agent.tools.tool import Tool, ToolContext, ToolOutput
from towline_protocol import TowlineError, UsageError

__all__ = ["SPAWN_AGENT", "AgentRunner", "SubAgentRunner", "make_spawn_agent", "make_sub_agents"]

SPAWN_AGENT: Final = "spawn_agent"
"""The tool's name; whoever is spawned gets no tool of this name."""

AgentRunner = Callable[[str, str | None], Awaitable[str]]
"""Runs another agent: takes the task and the agent's name, `None` for the only one, and returns its
last words; cancelled with the call."""
SubAgentRunner = Callable[[ToolContext, str, str], Awaitable[ToolOutput]]
"""Runs another agent for a call: takes the call, the task and the agent's name. It awaits
`ToolContext.start` once, shows what the agent does, counts what it uses, and ends it when it is
cancelled. Run again for the same call after a crash, it goes on with the same agent."""

_TIMEOUT_S: Final = 1800.0
"""A task of many steps, each with a model and tools that take their time."""
_TITLE_CHARS: Final = 80


def make_spawn_agent(
    run: AgentRunner, agents: Mapping[str, str] | None = None, *, timeout_s: float = _TIMEOUT_S
) -> Tool:
    """The tool `spawn_agent`.

    ```python
    async def run(prompt: str, agent: str | None) -> str:
        return (await Agent("openai/gpt-5-mini", tools=[search]).run(prompt)).final_message

    lead = Agent("openai/gpt-5", tools=[make_spawn_agent(run)])
    ```

    Give the other agent no such tool, or one with a bound of its own: nothing here counts levels.

    Args:
        run: Runs the other agent. What it raises becomes the call's error.
        agents: The agents to choose from, by name, each with what it is for; `None` for one alone.
        timeout_s: Seconds that a task may take.

    Raises:
        UsageError: What should run it is no function, or the agents have no names and words.
    """
    if not callable(run):
        raise UsageError(f"A function must run the other agent, not {run!r}; give an async one.")
    if not _is_named(agents or {}):
        raise UsageError("'agents' must be a dict of names, each with what the agent is for.")

    async def spawn(context: ToolContext, arguments: dict[str, Any]) -> ToolOutput:
        del context
        try:
            asked: object = run(arguments["prompt"], arguments.get("agent"))
            if not inspect.isawaitable(asked):
                raise UsageError(
                    f"The function that runs it gave {asked!r} at once; make it an `async def`."
                )
            answer = await asked
        except ToolError:
            raise
        except TowlineError as error:  # its model or a tool of its own failed: that ends its turn
            raise ToolError(f"The agent failed: {error.message}") from error
        return to_output(answer if answer.strip() else "The agent ended without an answer.")

    return _declare(spawn, agents or {}, timeout_s)


def make_sub_agents(run: SubAgentRunner, agents: Mapping[str, str]) -> Tool:
    """The tool `spawn_agent` for agents that are part of the turn: seen, counted, taken up again.

    Calls of it that follow one another run at the same time. It bounds itself: by the agents'
    limits, and by those of the turn.

    Args:
        run: Runs an agent.
        agents: The agents by name, each with what it is for; one at least.
    """

    async def spawn(context: ToolContext, arguments: dict[str, Any]) -> ToolOutput:
        return await run(context, arguments["prompt"], arguments["agent"])

    made = _declare(spawn, agents, _TIMEOUT_S)
    return msgspec.structs.replace(
        made, idempotent=True, journals=True, together=True, timeout_s=None
    )


def _is_named(agents: object) -> bool:
    if not isinstance(agents, Mapping):
        return False
    pairs = cast("Mapping[object, object]", agents).items()
    return all(isinstance(text, str) for pair in pairs for text in pair)


def _declare(
    spawn: Callable[[ToolContext, dict[str, Any]], Awaitable[ToolOutput]],
    agents: Mapping[str, str],
    timeout_s: float,
) -> Tool:
    made = make_tool(
        SPAWN_AGENT,
        _describe(agents),
        _schema(agents),
        spawn,
        effect="own",
        timeout_s=timeout_s,
        title=_title,
    )
    return msgspec.structs.replace(made, rooted=False)


def _describe(agents: Mapping[str, str]) -> str:
    words = (
        "Hand a task to another agent and get its answer. It starts with an empty conversation and "
        "sees nothing of this one, so say all that it needs: the goal, the paths, what to return."
    )
    if not agents:
        return words
    listed = "\n".join(f"- {name}: {what}" for name, what in agents.items())
    return f"{words}\nThe agents are:\n{listed}"


def _schema(agents: Mapping[str, str]) -> dict[str, Any]:
    properties: dict[str, Any] = {
        "prompt": {"type": "string", "minLength": 1, "description": "The whole task."}
    }
    if agents:
        properties["agent"] = {"enum": list(agents), "type": "string", "description": "Who."}
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _title(arguments: dict[str, Any]) -> str:
    words = " ".join(str(arguments["prompt"]).split())
    shown = words if len(words) <= _TITLE_CHARS else f"{words[:_TITLE_CHARS]}…"
    who = arguments.get("agent")
    return f"Ask {who}: {shown}" if who else f"Hand over: {shown}"
