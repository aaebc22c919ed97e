"""A conversation as text, for one who only has to read it."""

from typing import Final

from towline_agent.limits import cut_result
from towline_protocol import (
    Block,
    File,
    Image,
    Message,
    Text,
    ToolCall,
    ToolResult,
    block_text,
)

__all__ = ["condense"]

_PART_CHARS: Final = (8_000, 4_000, 2_000, 1_000, 500, 250)
"""Of each part; the first with which the whole fits is taken."""
_SPEAKERS: Final = {"user": "Person", "assistant": "Model", "system": "System"}
_BEGIN: Final = "<conversation>\n"
_END: Final = "\n</conversation>"


def condense(messages: tuple[Message, ...], chars: int) -> str:
    """The conversation as text of so many characters at most; long parts lose their middles.

    Pictures are named, not shown; what a model thought is left out.

    Args:
        messages: The conversation.
        chars: At least 100.
    """
    room = chars - len(_BEGIN) - len(_END)
    parts = [part for message in messages for part in _parts(message)]
    text = ""
    for cap in _PART_CHARS:
        text = "\n\n".join(f"{who}: {_shorten(what, cap)}" for who, what in parts)
        if len(text) <= room:
            break
    return f"{_BEGIN}{_shorten(text, room)}{_END}"


def _shorten(text: str, chars: int) -> str:
    return block_text(cut_result((Text(text=text),), chars))


def _parts(message: Message) -> list[tuple[str, str]]:
    """Who says what, block by block."""
    speaker = _SPEAKERS.get(message.role, message.role)
    found = [_part(block, speaker) for block in message.content]
    return [part for part in found if part is not None]


def _part(block: Block, speaker: str) -> tuple[str, str] | None:
    match block:
        case Text():
            return (speaker, block.text) if block.text else None
        case Image() | File():
            return speaker, _name(block)
        case ToolCall():
            return f"Model calls {block.name}", block.arguments
        case ToolResult():
            shown = [
                part.text if isinstance(part, Text) else _name(part)
                for part in block.content
                if isinstance(part, Text | Image | File)
            ]
            return "Error" if block.is_error else "Result", "\n".join(shown)
        case _:
            return None


def _name(block: Image | File) -> str:
    name = block.name if isinstance(block, File) else "a picture"
    return f"[{name}, {block.media_type}]"
