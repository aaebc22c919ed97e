"""The bytes of files, put into a request right before it goes out; the log has only hashes."""

import base64
from collections.abc import Callable
from typing import Final

import msgspec

from towline_agent import Paced, Piece, Plan, Provider, Request, StepResult, wrap_text
from towline_protocol import Block, File, Image, Message, ResultBlock, Text, ToolResult
from towline_server.errors import FileNotFound, StoreError
from towline_server.sessions.files import MAX_TOGETHER, Files
from towline_server.sessions.sniff import PICTURES, TEXT

__all__ = ["MAX_TEXT", "FilledProvider", "with_files"]

MAX_TEXT: Final = 40_000
"""Characters of a text file that a model is given (A5.80)."""

_MOST_BYTES: Final = 4  # of a character in UTF-8
_Media = Image | File


class FilledProvider:
    """A provider that is given files with their bytes; in all else the one behind it.

    A file that cannot be read, or that the model cannot see, is a line that says so: no step fails
    for it. It is made for one turn, and keeps what it has read for the turn's next step.

    Args:
        provider: Who is asked.
        files: Where the bytes are.
        user: Whose files they are.
    """

    def __init__(self, provider: Provider, files: Files, user: str) -> None:
        self.model = provider.model
        """What is known of the model."""
        self._provider = provider
        self._files = files
        self._user = user
        self._read: dict[str, Block] = {}
        self._filled: dict[int, tuple[Message, dict[str, Block], Message]] = {}

    async def step(self, request: Request, on_piece: Callable[[Piece], None]) -> StepResult:
        """Fill in the bytes, then ask."""
        if any(_media(message.content) for message in request.messages):
            request = await self._fill(request)
        return await self._provider.step(request, on_piece)

    async def models(self) -> tuple[str, ...]:
        """The models of the provider's address."""
        return await self._provider.models()

    async def aclose(self) -> None:
        """Give back the provider's connections."""
        await self._provider.aclose()

    def pause_s(self, tokens: int) -> float:
        """Seconds to hold back a request of so many tokens."""
        return self._provider.pause_s(tokens) if isinstance(self._provider, Paced) else 0.0

    async def _fill(self, request: Request) -> Request:
        """The newest files first, as many as fit into a request; the same objects each time."""
        left = MAX_TOGETHER
        messages: list[Message] = []
        for message in reversed(request.messages):
            wanted = {_key(block): block for block in _media(message.content)}
            shown: dict[str, Block] = {}
            for key, block in wanted.items():
                size, filled = await self._look(block, left)
                left -= size
                shown[key] = filled
            messages.append(self._with(message, shown) if shown else message)
        return msgspec.structs.replace(request, messages=tuple(reversed(messages)))

    def _with(self, message: Message, shown: dict[str, Block]) -> Message:
        """The message with these in the places of its files.

        It is made once, so that it stays the same object and what a dialect has encoded of it
        counts on.
        """
        earlier = self._filled.get(id(message))
        if earlier is not None and earlier[0] is message and earlier[1] == shown:
            return earlier[2]
        content = tuple(_put(block, shown) for block in message.content)
        made = msgspec.structs.replace(message, content=content)
        self._filled[id(message)] = message, shown, made
        return made

    async def _look(self, block: _Media, left: int) -> tuple[int, Block]:
        """What a model is shown in place of a block, and how many bytes that takes."""
        if isinstance(block, Image) and self.model.images is False:
            return 0, Text(text=f"[a picture ({block.media_type}) that this model cannot see]")
        if block.file is None:
            return 0, block  # it has its bytes, or never had any
        found = self._read.get(_key(block))
        if found is None:
            try:
                row = await self._files.find(self._user, block.file)
                if row.media_type != TEXT and row.size > left:
                    return 0, _too_many(block)
                found = await self._load(block, block.file, row.media_type)
            except (FileNotFound, StoreError):
                return 0, Text(text=f"[{_title(block)} is no longer there]")
            self._read[_key(block)] = found
        if isinstance(found, Text):
            return 0, found
        size = _size(found)
        return (size, found) if size <= left else (0, _too_many(block))

    async def _load(self, block: _Media, file: str, media_type: str) -> Block:
        first = await self._files.piece(self._user, file, 0) or b""
        if media_type == TEXT:
            return _as_text(block, first)
        pieces = [first]
        while more := await self._files.piece(self._user, file, len(pieces)):
            pieces.append(more)
        data = base64.b64encode(b"".join(pieces)).decode()
        if media_type in PICTURES:
            return Image(media_type=media_type, data=data)
        name = block.name if isinstance(block, File) else "file"
        return File(name=name, media_type=media_type, data=data)


def with_files(plan: Plan, files: Files, user: str, keep: Callable[[str, str], str | None]) -> Plan:
    """A turn's plan whose models see a user's files, and whose long outputs are kept.

    Args:
        plan: The plan.
        files: Where the bytes are.
        user: Whose session it is.
        keep: As `Plan.keep`.
    """
    return msgspec.structs.replace(
        plan,
        provider=FilledProvider(plan.provider, files, user),
        fallbacks=tuple(FilledProvider(other, files, user) for other in plan.fallbacks),
        keep=keep,
    )


def _media(blocks: tuple[Block, ...] | tuple[ResultBlock, ...]) -> list[_Media]:
    """The pictures and documents of a message, those in results too."""
    found: list[_Media] = []
    for block in blocks:
        if isinstance(block, Image | File):
            found.append(block)
        elif isinstance(block, ToolResult):
            found += _media(block.content)
    return found


def _put(block: Block, shown: dict[str, Block]) -> Block:
    if isinstance(block, Image | File):
        return shown[_key(block)]
    if isinstance(block, ToolResult) and _media(block.content):
        content = tuple(_put(part, shown) for part in block.content)
        return msgspec.structs.replace(block, content=content)
    return block


def _key(block: _Media) -> str:
    """What tells two blocks apart: one file may stand in a prompt under two names."""
    name = f"{block.path or block.name} {block.lines}" if isinstance(block, File) else ""
    return f"{block.file or id(block)} {name}"


def _as_text(block: _Media, start: bytes) -> Text:
    """A text file as words that say which file they are of (A5.79, A5.80)."""
    text = start[: MAX_TEXT * _MOST_BYTES + _MOST_BYTES].decode(errors="ignore")
    mark = "\n[… the rest is left out …]" if len(text) > MAX_TEXT else ""
    shown = f"{text[:MAX_TEXT]}{mark}"
    if isinstance(block, File) and block.path is not None:
        tag = "selection" if block.selection else "file"
        return Text(text=wrap_text(tag, shown, path=block.path, lines=block.lines))
    return Text(text=wrap_text("file", shown, name=_title(block)))


def _too_many(block: _Media) -> Text:
    return Text(
        text=f"[{_title(block)} is left out: there are too many files in this conversation]"
    )


def _title(block: _Media) -> str:
    return block.name if isinstance(block, File) else f"a picture ({block.media_type})"


def _size(block: Block) -> int:
    """Bytes that a filled block stands for."""
    data = block.data if isinstance(block, Image | File) else None
    return len(data or "") * 3 // 4
