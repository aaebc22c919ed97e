"""Under which ids a conversation's calls and items go on the wire: none goes twice."""

import hashlib
import re
from typing import Any, Final, cast

import msgspec

from towline_agent.providers.openai_responses.items import DIALECT
from towline_protocol import Block, Message, Opaque, ToolCall, ToolResult

__all__ = ["Wire", "WireIds"]

_NAME: Final = re.compile(r"[!-~]{1,64}")
"""Ids of calls that the API takes."""


class Wire(msgspec.Struct, frozen=True):
    """All that the items of a message depend on besides the message itself."""

    foreign: bool
    """Whether another model wrote it: what that one's vendor alone understands is left out
    (A2.32)."""
    names: tuple[str, ...] = ()
    """The ids of its calls and results, in their order; empty for a result without a call."""
    repeated: tuple[int, ...] = ()
    """Places of blocks whose item went before under the same id."""


class WireIds:
    """The ids that a conversation has used so far: all that later messages depend on."""

    __slots__ = ("_names", "_sent", "_tools", "_used")

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._tools: dict[str, str] = {}
        self._used: set[str] = set()
        self._sent: set[str] = set()

    def copy(self) -> "WireIds":
        """The same ids, to go on from there."""
        made = WireIds()
        made._names, made._tools = self._names.copy(), self._tools.copy()
        made._used, made._sent = self._used.copy(), self._sent.copy()
        return made

    def add(self, message: Message, *, foreign: bool) -> Wire:
        """Take in the next message.

        Args:
            message: The message.
            foreign: Whether another model wrote it.
        """
        names: list[str] = []
        repeated: list[int] = []
        for at, block in enumerate(message.content):
            kind = type(block)
            if kind is ToolResult:
                names.append(self._names.get(cast("ToolResult", block).call, ""))
            elif kind is ToolCall:
                names.append(self._name(cast("ToolCall", block)))
            key = "" if foreign else _item_key(block)
            if key and key in self._sent:
                repeated.append(at)
            elif key:
                self._sent.add(key)
        return Wire(foreign, tuple(names), tuple(repeated))

    def tool(self, call: str) -> str:
        """The name of the tool that a call asked for."""
        return self._tools.get(call, "the tool")

    def _name(self, call: ToolCall) -> str:
        """The provider's own id where no earlier call has it, else ours."""
        wanted = (call.wire_id or "", call.id)
        free = (id_ for id_ in wanted if _NAME.fullmatch(id_) and id_ not in self._used)
        name = next(free, "") or _made(call.id, len(self._used))
        self._used.add(name)
        self._names[call.id] = name
        self._tools[call.id] = call.name
        return name


def _made(id_: str, number: int) -> str:
    """An id that no other call has."""
    told = f"{number} {id_}".encode("utf-8", "replace")
    return f"call_{hashlib.sha256(told).hexdigest()[:32]}"


def _item_key(block: Block) -> str:
    """What tells an item from all others; empty when it has no id."""
    if type(block) is ToolCall:
        return block.signature or ""
    if type(block) is not Opaque or block.dialect != DIALECT or not isinstance(block.raw, dict):
        return ""
    id_: Any = cast("dict[str, Any]", block.raw).get("id")
    return id_ if isinstance(id_, str) else ""
