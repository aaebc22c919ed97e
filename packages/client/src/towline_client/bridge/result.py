"""What a tool's function returned, as what the server is sent. Pure."""

import binascii
from collections.abc import Sequence
from typing import Final, TypeGuard, cast

from towline_protocol import ClientBlock, Image, Text, UsageError, mend_text, value_text

__all__ = ["MAX_BLOCKS", "MAX_PICTURE", "to_content"]

MAX_PICTURE: Final = 20 * 1024 * 1024
"""Bytes of one picture (C5.12)."""
MAX_BLOCKS: Final = 64
"""Blocks of one result, as many as a prompt has (C6)."""

_MAGIC: Final = (
    (b"\x89PNG\r\n\x1a\n", b"", "image/png"),
    (b"\xff\xd8\xff", b"", "image/jpeg"),
    (b"GIF87a", b"", "image/gif"),
    (b"GIF89a", b"", "image/gif"),
    (b"RIFF", b"WEBP", "image/webp"),
)
"""What stands at the beginning, what stands at byte 8, and what that means."""
_HEAD_CHARS: Final = 24  # of base 64: the bytes that the table looks at


def to_content(value: object) -> tuple[ClientBlock, ...]:
    """A string, a block and blocks pass as they are, `None` is `null`, all else becomes JSON.

    Raises:
        UsageError: A picture is none or too large, there are too many blocks, or JSON can't hold
            the value.
    """
    if _is_block(value):
        return (_check(value),)
    if _is_blocks(value):
        if len(value) > MAX_BLOCKS:
            raise UsageError(
                f"A tool returned {len(value)} blocks; {MAX_BLOCKS} are the most. Return fewer."
            )
        return tuple(_check(block) for block in value)
    return (Text(text=value_text(value)),)


def _is_block(value: object) -> TypeGuard[ClientBlock]:
    return isinstance(value, Text | Image)


def _is_blocks(value: object) -> TypeGuard[Sequence[ClientBlock]]:
    if not isinstance(value, list | tuple) or not value:
        return False
    return all(_is_block(item) for item in cast("Sequence[object]", value))


def _check(block: ClientBlock) -> ClientBlock:
    if isinstance(block, Text):
        return Text(text=mend_text(block.text))
    data = block.data
    if not data or block.file is not None:
        raise UsageError(
            "A tool returned a picture without its bytes; put them into `data`, as base 64, and "
            "name no file."
        )
    if len(data) > (MAX_PICTURE + 2) // 3 * 4:
        raise UsageError(
            f"A tool returned a picture of more than {MAX_PICTURE} bytes; make it smaller."
        )
    kind = _sniff(data)
    if kind != block.media_type:
        raise UsageError(
            f"A tool returned a picture as {block.media_type!r} whose bytes are "
            f"{kind or 'no picture'}; return a PNG, JPEG, GIF or WebP under its own type."
        )
    return block


def _sniff(data: str) -> str | None:
    """What the bytes of a base 64 text are; `None` for no picture, or no base 64."""
    try:
        head = binascii.a2b_base64(data[:_HEAD_CHARS], strict_mode=True)
    except ValueError:
        return None
    for start, inner, kind in _MAGIC:
        if head.startswith(start) and head[8:].startswith(inner):
            return kind
    return None
