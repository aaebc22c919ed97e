"""What a tool's function returns, as what a call came to (A4.58)."""

from collections.abc import Sequence
from typing import Any, TypeGuard, cast

import msgspec

from towline_agent.tools.tool import ToolOutput
from towline_protocol import File, Image, ResultBlock, Text, Unknown, UsageError

__all__ = ["mend_text", "to_output"]


def to_output(value: object) -> ToolOutput:
    """A string and blocks pass as they are, `None` is `null`, all else becomes JSON.

    Raises:
        UsageError: The value can't be made into JSON.
    """
    if isinstance(value, str):  # most are
        return ToolOutput(content=(Text(text=mend_text(value)),))
    if isinstance(value, ToolOutput):
        return msgspec.structs.replace(value, content=_mend(value.content))
    if _is_block(value):
        return ToolOutput(content=_mend((value,)))
    if _is_blocks(value):
        return ToolOutput(content=_mend(value))
    return ToolOutput(content=_mend((Text(text=_to_json(value)),)))


def mend_text(text: str) -> str:
    """The text with halves of characters joined, or replaced by U+FFFD.

    Names of files that are no UTF-8 come with such halves, and nothing could store or send them.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


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


def _to_json(value: object) -> str:
    try:
        return msgspec.json.encode(value, enc_hook=_plain).decode()
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(
            f"A tool returned a {type(value).__qualname__} that can't be made into JSON ({error}); "
            "return text, blocks, or what JSON can hold."
        ) from error


def _plain(value: object) -> Any:
    """A pydantic model as plain values; told by its method, so that pydantic is never imported."""
    dump = getattr(value, "model_dump", None)
    if dump is None:
        raise TypeError(f"{type(value).__qualname__} is no JSON type")
    return dump(mode="json")
