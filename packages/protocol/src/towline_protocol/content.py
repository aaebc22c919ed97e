"""Blocks: what a message is made of."""

from typing import Any, Final

import msgspec

from towline_protocol.ids import CallId

__all__ = [
    "Block",
    "File",
    "Image",
    "Opaque",
    "Private",
    "PromptBlock",
    "ResultBlock",
    "Text",
    "Thinking",
    "ToolCall",
    "ToolResult",
    "Unknown",
    "block_text",
    "restore_private",
    "strip_private",
]


class _Block(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="type"):
    pass


class Text(_Block, frozen=True, kw_only=True, gc=False, tag="text"):
    """Words, as Markdown."""

    text: str
    """The words; always whole, never cut by reference (C1.10)."""


class Thinking(_Block, frozen=True, kw_only=True, gc=False, tag="thinking"):
    """What a model thought before it spoke (A1.3)."""

    text: str
    """The thought as far as the provider shows it; may be empty."""
    signature: str | None = None
    """The provider's proof that the thought is its own; private (C1.9)."""
    redacted: bool = False
    """The provider hides the words; only the signature is kept."""


class Image(_Block, frozen=True, kw_only=True, gc=False, tag="image"):
    """A picture (A1.4)."""

    media_type: str
    """Such as `image/png`."""
    data: str | None = None
    """Base 64; only on the way to and from a provider, never in an event (C1.10)."""
    file: str | None = None
    """The content hash under which the bytes are kept."""


class File(_Block, frozen=True, kw_only=True, gc=False, tag="file"):
    """A document (A1.5)."""

    name: str
    """The name it came with."""
    media_type: str
    """Such as `application/pdf`."""
    data: str | None = None
    """Base 64; only on the way to and from a provider."""
    file: str | None = None
    """The content hash under which the bytes are kept."""
    path: str | None = None
    """Where it stands in the session's folder, of a file that a prompt mentions (A5.79)."""
    lines: str | None = None
    """The lines of it that are meant, such as `3-9`; `None` for all of them."""
    selection: bool = False
    """Whether somebody marked these lines in an editor."""


class ToolCall(_Block, frozen=True, kw_only=True, gc=False, tag="tool_call"):
    """The model asks for a tool (A1.6)."""

    id: CallId
    """Our own id of the call."""
    name: str
    """The tool's name as the model wrote it."""
    arguments: str
    """The JSON text exactly as the model wrote it; may be broken."""
    wire_id: str | None = None
    """The provider's id: may be empty, repeated or reused, so it is never a key; private."""
    signature: str | None = None
    """The provider's proof that belongs to this call; private."""


class Opaque(_Block, frozen=True, kw_only=True, tag="opaque"):
    """A vendor's own block, replayed unchanged and in its place (A1.8)."""

    dialect: str
    """The dialect that understands it."""
    raw: Any = None
    """The block as it came; private, so `None` outside the server."""


class Unknown(_Block, frozen=True, kw_only=True, tag="unknown"):
    """A block or event of a kind this reader does not know (C1.11)."""

    name: str
    """The kind as it came."""
    raw: dict[str, Any]
    """The whole value as it came."""


ResultBlock = Text | Image | File | Unknown
"""What a tool may answer with."""


class ToolResult(_Block, frozen=True, kw_only=True, tag="tool_result"):
    """What a call came to (A1.7)."""

    call: CallId
    """The call it answers."""
    content: tuple[ResultBlock, ...]
    """The answer; empty is a valid answer (S33)."""
    is_error: bool = False
    """Whether the model is told that the call failed."""


Block = Text | Thinking | Image | File | ToolCall | ToolResult | Opaque | Unknown
"""One part of a message."""


PromptBlock = Text | Image | File
"""What a person may put into a prompt."""


class Private(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What only a provider needs of one block, kept beside the event (C1.9, A1.11)."""

    block: int
    """The block's place in its message, from 0."""
    signature: str | None = None
    """Of a thought or a call."""
    wire_id: str | None = None
    """The provider's id of a call."""
    raw: Any = None
    """The body of an opaque block; the whole text of one, or the whole arguments of a call, of
    which the event shows only a part (C1.10)."""


_PARTED: Final = frozenset({Thinking, ToolCall, Opaque})
"""Blocks that may have something private."""


def strip_private(blocks: tuple[Block, ...]) -> tuple[tuple[Block, ...], tuple[Private, ...]]:
    """Part blocks in what everybody may see and what stays in the server.

    `restore_private` puts them together again.
    """
    if _PARTED.isdisjoint(map(type, blocks)):
        return blocks, ()
    public: list[Block] = []
    private: list[Private] = []
    for place, block in enumerate(blocks):
        if type(block) is ToolCall and not (block.wire_id is None and block.signature is None):
            private.append(Private(block=place, signature=block.signature, wire_id=block.wire_id))
            public.append(ToolCall(id=block.id, name=block.name, arguments=block.arguments))
        elif type(block) is Thinking and block.signature is not None:
            private.append(Private(block=place, signature=block.signature))
            public.append(Thinking(text=block.text, redacted=block.redacted))
        elif type(block) is Opaque and block.raw is not None:
            private.append(Private(block=place, raw=block.raw))
            public.append(Opaque(dialect=block.dialect))
        else:
            public.append(block)
    return tuple(public), tuple(private)


def restore_private(
    blocks: tuple[Block, ...], private: tuple[Private, ...] = ()
) -> tuple[Block, ...]:
    """Put back what `strip_private` took out, and what an event has no room for (C1.10).

    Parts that fit no block are left out.
    """
    if not private:
        return blocks
    restored = list(blocks)
    for place, part in {part.block: part for part in private}.items():
        if 0 <= place < len(restored):
            restored[place] = _restored(restored[place], part)
    return tuple(restored)


def _restored(block: Block, part: Private) -> Block:
    # Classes of msgspec make `match` cost three times as much.
    if type(block) is ToolCall:
        return ToolCall(
            id=block.id,
            name=block.name,
            arguments=part.raw if isinstance(part.raw, str) else block.arguments,
            wire_id=part.wire_id,
            signature=part.signature,
        )
    if type(block) is Text and isinstance(part.raw, str):
        return Text(text=part.raw)
    if type(block) is Thinking:
        return Thinking(text=block.text, redacted=block.redacted, signature=part.signature)
    if type(block) is Opaque:
        return Opaque(dialect=block.dialect, raw=part.raw)
    return block


def block_text(blocks: tuple[Block, ...] | tuple[ResultBlock, ...]) -> str:
    """The text of all text blocks, joined as it stands."""
    return "".join([block.text for block in blocks if type(block) is Text])
