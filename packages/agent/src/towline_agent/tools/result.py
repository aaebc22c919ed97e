"""What a tool's function returns, as what a call came to (A4.58)."""

from collections.abc import Sequence
from typing import TypeGuard, cast

import msgspec

from towline_agent.tools.tool import ToolOutput
from towline_protocol import File, Image, ResultBlock, Text, Unknown, mend_text, value_text

__all__ = ["to_output"]


def to_output(value: object) -> ToolOutput:
    """A string and blocks pass as they are, `None` is `null`, all else becomes JSON.

    Raises:
        UsageError: The value can't be made into JSON.
    """
    if isinstance(value, str):  # most are
        return ToolOutput(content=(Text(text=value_text(value)),))
    if isinstance(value, ToolOutput):
        return msgspec.structs.replace(value, content=_mend(value.content))
    if _is_block(value):
        return ToolOutput(content=_mend((value,)))
    if _is_blocks(value):
        return ToolOutput(content=_mend(value))
    return ToolOutput(content=(Text(text=value_text(value)),))


def _mend(blocks: Sequence[ResultBlock]) -> tuple[ResultBlock, ...]:
    return tuple(
        Text(text=mend_text(block.text)) if isinstance(block, Text) else block for block in blocks
    )


def _is_block(value: object) -> TypeGuard[ResultBlock]:
    return isinstance(value, Text | Image | File | Unknown)


def _is_blocks(value: object) -> TypeGuard[Sequence[ResultBlock]]:
    if not isinstance(value, list | tuple) or not value:
        return False
    return all(_is_block(item) for item in cast("Sequence[object]", value))
