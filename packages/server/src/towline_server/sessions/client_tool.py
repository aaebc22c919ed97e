"""Tools that clients declare: checked, and made into tools of the agent (C5.12, C6)."""

from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Any, Final, cast

import msgspec

from towline_agent import Tool, ToolContext, ToolOutput, make_tool
from towline_protocol import CallId, ClientTool, UsageError, encode
from towline_server.errors import Rejected
from towline_server.sessions.agents import OWN_TOOLS, AgentSpec

__all__ = [
    "MAX_CLIENT_TOOLS",
    "MAX_SCHEMA_BYTES",
    "check_reader",
    "check_tools",
    "make_client_tool",
    "taken_names",
    "too_many",
]

MAX_CLIENT_TOOLS: Final = 32
"""Tools that all clients of a session declare together (C6)."""
MAX_SCHEMA_BYTES: Final = 32 * 1024
"""Bytes of one tool's JSON Schema (C6)."""

_MAX_BYTES: Final = 1_000_000  # of one declaration: its event stays below the largest one (C6)
_MAX_DESCRIPTION: Final = 4096  # characters, more than any provider takes
_MAX_LEVELS: Final = 32  # of a schema: it is read by functions that call themselves
_EFFECTS: Final = ("read", "write", "exec", "network")
_TIMEOUT_S: Final = (1.0, 600.0)
_READER_CHARS: Final = 64  # as many as the name of a stream's reader

_UNTRUSTED: Final = (
    "It runs in a client, and this server takes no client's word for what its tools do "
    "(`trusts_client_effects`)."
)

_Run = Callable[[CallId, ClientTool], Awaitable[ToolOutput]]


def check_reader(reader: str) -> str:
    """The name of a client itself, when it is one.

    Raises:
        UsageError: It is empty, too long, or has characters that nobody can see.
    """
    if not reader or len(reader) > _READER_CHARS or not reader.isprintable():
        raise UsageError(
            f"reader={reader[:_READER_CHARS]!r} can't name a client; use 1 to {_READER_CHARS} "
            "characters, the same as `?reader=` of its event stream."
        )
    return reader


def taken_names(spec: AgentSpec) -> frozenset[str]:
    """The names that no client's tool can have: those of the agent's own."""
    return frozenset((*OWN_TOOLS, *spec.tools, *spec.server_tools))


def check_tools(tools: Sequence[ClientTool], taken: Collection[str]) -> None:
    """Refuse a declaration that does not hold, whole.

    Args:
        tools: What one client declares.
        taken: Names of the agent's own tools.

    Raises:
        Rejected: A tool is no tool, is too large, or is called as another one.
    """
    if len(tools) > MAX_CLIENT_TOOLS:
        raise too_many(len(tools))
    seen = set(taken)
    for tool in tools:
        if tool.name in seen:
            raise Rejected(
                f"There is a tool {tool.name!r} already; give each a name of its own, other than "
                "those of the agent's tools.",
                reason="name_taken",
            )
        seen.add(tool.name)
        _check_tool(tool)
    size = len(encode(tools))
    if size > _MAX_BYTES:
        raise Rejected(
            f"The tools of one client have at most {_MAX_BYTES} bytes together; these have {size}. "
            "Describe them in fewer words.",
            reason="tools_too_large",
        )


def too_many(count: int) -> Rejected:
    """The refusal of more tools than a session takes."""
    return Rejected(
        f"The clients of a session declare at most {MAX_CLIENT_TOOLS} tools together; these would "
        f"be {count}. Leave some out.",
        reason="too_many_tools",
    )


def make_client_tool(tool: ClientTool, run: _Run, *, trusted: bool) -> Tool:
    """The agent's tool for a client's one.

    It bounds itself, and running it again after a crash only waits again for the same offer.

    Args:
        tool: What the client declared.
        run: Brings a call to its result.
        trusted: Whether the effect that the client declares counts; else it is `write`.

    Raises:
        UsageError: The name or the schema is bad.
    """

    async def handle(context: ToolContext, arguments: dict[str, Any]) -> ToolOutput:
        del arguments  # the client reads them in the call
        return await run(context.call, tool)

    made = make_tool(
        tool.name,
        tool.description,
        tool.parameters,
        handle,
        effect=tool.effect if trusted else "write",
    )
    return msgspec.structs.replace(
        made,
        timeout_s=None,
        idempotent=True,
        rooted=False,
        reason=None if trusted else _UNTRUSTED,
    )


def _check_tool(tool: ClientTool) -> None:
    if not tool.description.strip() or len(tool.description) > _MAX_DESCRIPTION:
        raise Rejected(
            f"Tool {tool.name[:64]!r} needs a description of 1 to {_MAX_DESCRIPTION} characters."
        )
    if tool.effect not in _EFFECTS:
        raise Rejected(
            f"Tool {tool.name[:64]!r} has the effect {tool.effect[:64]!r}; use one of "
            f"{', '.join(_EFFECTS)}."
        )
    least_s, most_s = _TIMEOUT_S
    if not least_s <= tool.timeout_s <= most_s:
        raise Rejected(
            f"Tool {tool.name[:64]!r} has timeout_s={tool.timeout_s!r}; it takes {least_s:g} to "
            f"{most_s:g} seconds."
        )
    _check_schema(tool)


def _check_schema(tool: ClientTool) -> None:
    size = len(encode(tool.parameters))
    if size > MAX_SCHEMA_BYTES:
        raise Rejected(
            f"The schema of tool {tool.name[:64]!r} has {size} bytes; it takes {MAX_SCHEMA_BYTES} "
            "at most. Describe fewer arguments, or in fewer words.",
            reason="schema_too_large",
        )
    if _levels(tool.parameters) > _MAX_LEVELS:
        raise Rejected(
            f"The schema of tool {tool.name[:64]!r} has more than {_MAX_LEVELS} levels; make it "
            "flatter."
        )
    try:  # a tool that is only looked at
        make_tool(tool.name, tool.description, tool.parameters, _tell_back)
    except UsageError as error:
        raise Rejected(error.message) from error


def _tell_back(arguments: dict[str, Any]) -> dict[str, Any]:
    return arguments


def _levels(value: object) -> int:
    """How deep a JSON value is, up to one level more than may be."""
    level = [value]
    for depth in range(_MAX_LEVELS + 1):
        below: list[object] = []
        for part in level:
            if isinstance(part, dict):
                below.extend(cast("dict[str, object]", part).values())
            elif isinstance(part, list):
                below.extend(cast("list[object]", part))
        if not below:
            return depth
        level = below
    return _MAX_LEVELS + 1
