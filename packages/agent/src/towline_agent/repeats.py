"""Telling when a model goes round in a circle (A4.21, A4.22)."""

import functools
from typing import Any, Final

import msgspec

from towline_agent.errors import LimitReached
from towline_protocol import CallId, Message, Text, ToolCall, ToolResult

__all__ = ["Repeat", "find_repeat"]

_NOTICED: Final = 3
"""Times in a row that earn a notice (A4.21)."""
_ENDED: Final = 5
"""Times in a row, with the same results, that end the turn (A4.22)."""
_KEPT_CHARS: Final = 2_000
_OWN: Final = "<system-reminder>"
"""How words of ours begin; nobody said them, so they begin nothing anew (R51)."""

_Call = tuple[str, str]
"""A tool's name, and its arguments in one form for all that say the same."""


class Repeat(msgspec.Struct, frozen=True):
    """The same calls, several steps in a row."""

    tools: str
    """What is called, by name."""
    times: int
    """Steps in a row with these calls and arguments."""
    same: int
    """The last of these whose results were the same too."""

    @property
    def notice(self) -> str:
        """What the model should be told; empty while there is nothing to say (A4.21)."""
        if self.times < _NOTICED:
            return ""
        told = (
            "The results were the same each time, and will be so again: do something else, or say "
            "what keeps you from going on."
            if self.same >= _NOTICED
            else "If you are waiting for something, say so and let the person decide how long."
        )
        return (
            f"You have called {self.tools} with the same arguments {self.times} times in a row. "
            f"{told}"
        )

    @property
    def error(self) -> LimitReached | None:
        """The failure that ends the turn; `None` to go on (A4.22, D17)."""
        if self.same < _ENDED:
            return None
        return LimitReached(
            f"The model called {self.tools!r} with the same arguments {self.same} times in a row "
            "and got the same results. Say what it should do instead, or take another model."
        )


def find_repeat(messages: tuple[Message, ...]) -> Repeat | None:
    """What the model does over and over; `None` when it called nothing since a person spoke.

    Arguments are compared as JSON values, and as text when they are no JSON. What a person says
    begins a new row. Nothing but the messages counts, so a turn that is resumed knows the same.

    Args:
        messages: The conversation, every call with its result and an id of its own, as
            `Transcript.messages` gives it.
    """
    row: list[Message] = []  # of steps with the same calls, the last one first
    calls: set[_Call] = set()
    results: list[Message] = []
    for message in reversed(messages):
        if message.role == "assistant":
            asked = _calls_of(message)
            if row and asked and asked != calls:
                break
            if asked:
                calls = asked
                row.append(message)
        elif message.role == "tool":
            results.append(message)
        elif message.role == "user" and not _is_ours(message):
            break
    if not row:
        return None
    same = 1 if len(row) == 1 else _count_same(row, results)
    return Repeat(", ".join(sorted({name for name, _ in calls})), len(row), same)


def _is_ours(message: Message) -> bool:
    for block in message.content:
        if not isinstance(block, Text) or not block.text.startswith(_OWN):
            return False
    return True


def _calls_of(message: Message) -> set[_Call]:
    """What a step called; the same call twice counts once."""
    return {
        (block.name, _canonical(block.arguments))
        for block in message.content
        if type(block) is ToolCall
    }


def _count_same(row: list[Message], results: list[Message]) -> int:
    """How many steps of a row, from its first on, came to the same."""
    found: dict[CallId, ToolResult] = {}
    for message in results:
        for block in message.content:
            if type(block) is ToolResult:
                found[block.call] = block
    first = _came_to(row[0], found)
    same = 1
    while same < len(row) and _came_to(row[same], found) == first:
        same += 1
    return same


def _came_to(message: Message, results: dict[CallId, ToolResult]) -> dict[_Call, tuple[Any, ...]]:
    """The result of each call of a step."""
    step: dict[_Call, tuple[Any, ...]] = {}
    for block in message.content:
        if type(block) is ToolCall:
            result = results.get(block.id)
            came_to = () if result is None else (result.content, result.is_error)
            step.setdefault((block.name, _canonical(block.arguments)), came_to)
    return step


def _canonical(arguments: str) -> str:
    """The same text for arguments that say the same."""
    return (_kept if len(arguments) <= _KEPT_CHARS else _make_canonical)(arguments)


def _make_canonical(arguments: str) -> str:
    try:
        value: Any = msgspec.json.decode(arguments or "{}")
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return arguments
    return msgspec.json.encode(value, order="sorted").decode()


_kept: Final = functools.lru_cache(maxsize=64)(_make_canonical)
"""The same for what is short: every step asks for the last ones again."""
