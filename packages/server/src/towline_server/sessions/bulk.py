"""What is too large for an event: kept in files, kept beside it, or cut (C1.10, C6). Pure.

Pictures and documents become files. Of long outputs and arguments the event shows the ends; a file
holds the whole for people, and what stands beside the event holds it for the model, so that its
transcript stays exact. Whatever is still too large is cut, with a mark: no commit fails for it.
"""

import base64
import binascii
import hashlib
from typing import Any, Final, NamedTuple, TypeVar, cast

import msgspec

from towline_protocol import (
    AudioArtifact,
    Block,
    Event,
    File,
    Image,
    ImageArtifact,
    MessageEnded,
    Private,
    PromptAdmitted,
    ResultBlock,
    Text,
    ToolCall,
    ToolEnded,
    ToolProposed,
    encode,
)
from towline_server.sessions.sniff import TEXT, sniff
from towline_server.store.records import NewFile

__all__ = [
    "MAX_EVENT",
    "MAX_FILE",
    "MAX_PART",
    "Slim",
    "cut_event",
    "new_text",
    "read_data",
    "slim_event",
]

MAX_EVENT: Final = 1024 * 1024
"""Bytes of an event (C6)."""
MAX_FILE: Final = 20 * 1024 * 1024
"""Bytes of a file (C2, files)."""
MAX_PART: Final = 64 * 1024
"""Bytes of an output, or of a call's arguments, that stand in an event (C1.10)."""

_SHOWN: Final = 8 * 1024
"""Characters of a longer one that the event shows: 32 KiB at most, and some screens of text."""
_STEPS: Final = (65_536, 8192, 1024, 128, 16, 1)
"""Characters of a text, and items of a list, that a cut event keeps: the first that fits."""
_SHORT: Final = 128
"""Characters that no cut touches: ids and words that the event means something by."""
_NAME_CHARS: Final = 64
"""Of a tool's name in the name of a file."""

_E = TypeVar("_E", bound=msgspec.Struct)


class Slim(NamedTuple):
    """An event as it is stored."""

    event: Event
    """What everybody sees."""
    private: tuple[Private, ...] = ()
    """What stands beside it."""
    files: tuple[NewFile, ...] = ()
    """What is kept with it."""
    uses: tuple[str, ...] = ()
    """The hashes that it names."""


def slim_event(event: Event, private: tuple[Private, ...] = ()) -> Slim:
    """An event without what is not for one; most are given back as they are."""
    match event:
        case PromptAdmitted():
            return _slim_prompt(event, private)
        case MessageEnded():
            return _slim_message(event, private)
        case ToolProposed():
            return _slim_proposal(event, private)
        case ToolEnded():
            return _slim_result(event, private)
        case _:
            return Slim(event, private)


def cut_event(event: _E) -> _E:
    """An event that is too large, with its longest texts and lists cut until it fits (C6)."""
    raw = msgspec.to_builtins(event)
    cut = event
    for most in _STEPS:
        cut = msgspec.convert(_cut(raw, most), type(event))
        if len(encode(cut)) <= MAX_EVENT - _ENVELOPE:
            break
    return cut


def new_text(text: str, name: str) -> NewFile | None:
    """A text that is to be kept; `None` when it is too long for a file as well."""
    data = _bytes(text)
    return None if len(data) > MAX_FILE else _new_file(data, name, TEXT)


def read_data(data: str) -> bytes | None:
    """The bytes of a block's Base 64; `None` when it is none."""
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return None


_ENVELOPE: Final = 1024  # what stands round an event, and what a rounding may cost


class _Files:
    """What one event brings along."""

    def __init__(self) -> None:
        self.new: dict[str, NewFile] = {}
        self.uses: dict[str, None] = {}

    def keep(self, data: bytes, name: str = "", media_type: str | None = None) -> NewFile:
        new = _new_file(data, name, media_type or sniff(data))
        self.new[new.file] = new
        self.uses[new.file] = None
        return new

    def keep_text(self, text: str, name: str) -> str:
        return self.keep(_bytes(text), name, TEXT).file

    def move(self, block: Block) -> Block:
        """A block with its bytes in a file; other blocks as they are."""
        if not isinstance(block, Image | File):
            return block
        if block.data is None:
            if block.file is not None:
                self.uses[block.file] = None
            return block
        data = read_data(block.data)
        if not data:
            return Text(text=f"[a {block.media_type[:_SHORT]} block that cannot be read]")
        name = block.name if isinstance(block, File) else ""
        new = self.keep(data, name)
        if isinstance(block, File):
            return File(name=name, media_type=new.media_type, file=new.file)
        return Image(media_type=new.media_type, file=new.file)

    def slim(self, event: Event, private: tuple[Private, ...]) -> Slim:
        return Slim(event, private, tuple(self.new.values()), tuple(self.uses))


def _new_file(data: bytes, name: str, media_type: str) -> NewFile:
    hashed = hashlib.sha256(data).hexdigest()
    return NewFile(file=hashed, media_type=media_type, name=name, data=data)


def _slim_prompt(event: PromptAdmitted, private: tuple[Private, ...]) -> Slim:
    if not _holds_bytes(event.content):
        return Slim(event, private)
    files = _Files()
    content = tuple(files.move(block) for block in event.content)
    return files.slim(msgspec.structs.replace(event, content=content), private)


def _slim_message(event: MessageEnded, private: tuple[Private, ...]) -> Slim:
    most = _room([block.arguments for block in event.content if isinstance(block, ToolCall)])
    long = any(isinstance(b, ToolCall) and _is_long(b.arguments, most) for b in event.content)
    if not long and not _holds_bytes(event.content):
        return Slim(event, private)
    files = _Files()
    beside = {part.block: part for part in private}
    content: list[Block] = []
    for place, block in enumerate(event.content):
        if isinstance(block, ToolCall) and _is_long(block.arguments, most):
            part = beside.get(place, Private(block=place))
            beside[place] = msgspec.structs.replace(part, raw=block.arguments)
            shown = _shown(block.arguments, min(_SHOWN, most // 4))
            content.append(msgspec.structs.replace(block, arguments=shown))
        else:
            content.append(files.move(block))
    slim = msgspec.structs.replace(event, content=tuple(content))
    return files.slim(slim, tuple(beside[place] for place in sorted(beside)))


def _slim_proposal(event: ToolProposed, private: tuple[Private, ...]) -> Slim:
    if event.arguments_file is not None:  # out of another log
        return Slim(event, private, uses=(event.arguments_file,))
    if not _is_long(event.arguments):
        return Slim(event, private)
    files = _Files()
    file = files.keep_text(event.arguments, f"{event.tool[:_NAME_CHARS]}-arguments.json")
    shown = _shown(event.arguments)
    slim = msgspec.structs.replace(event, arguments=shown, arguments_file=file)
    return files.slim(slim, private)


def _slim_result(event: ToolEnded, private: tuple[Private, ...]) -> Slim:
    texts = [block.text for block in event.content if isinstance(block, Text)]
    long = _is_long("".join(texts))
    named = _named(event)
    if not long and not named and not _holds_bytes(event.content):
        return Slim(event, private)
    files = _Files()
    files.uses.update(dict.fromkeys(named))
    beside: list[Private] = list(private)
    content = [files.move(block) for block in event.content]
    whole: tuple[str, ...] = ()
    if long:
        whole = (files.keep_text("".join(texts), f"{event.call}-output.txt"),)
        room = max(1, _SHOWN // len(texts))
        for place, block in enumerate(event.content):
            if isinstance(block, Text) and len(block.text) > room:
                beside.append(Private(block=place, raw=block.text))
                content[place] = Text(text=_shown(block.text, room))
    slim = msgspec.structs.replace(
        event,
        content=cast("tuple[ResultBlock, ...]", tuple(content)),
        files=tuple(dict.fromkeys((*event.files, *whole))),
    )
    return files.slim(slim, tuple(beside))


def _named(event: ToolEnded) -> list[str]:
    """The files that a result names outside its content."""
    artifacts = [a.file for a in event.artifacts if isinstance(a, ImageArtifact | AudioArtifact)]
    return [*event.files, *artifacts]


def _holds_bytes(content: tuple[Block, ...] | tuple[ResultBlock, ...]) -> bool:
    return any(isinstance(block, Image | File) for block in content)


def _room(texts: list[str]) -> int:
    """Bytes that each of some texts may have in one event: less, when they are many."""
    if sum(map(len, texts)) <= MAX_EVENT // 8:
        return MAX_PART
    return min(MAX_PART, MAX_EVENT // 2 // len(texts))


def _is_long(text: str, most: int = MAX_PART) -> bool:
    """Whether a text has more bytes than stand in an event; the length alone mostly tells."""
    return len(text) > most // 4 and len(_bytes(text)) > most


def _shown(text: str, most: int = _SHOWN) -> str:
    """The ends of a long text: what went wrong often stands in the last line."""
    if len(text) <= most:
        return text
    head, tail = most - most // 4, most // 4
    gone = len(text) - head - tail
    return f"{text[:head]}\n[… {gone} characters are not shown here …]\n{text[len(text) - tail :]}"


def _bytes(text: str) -> bytes:
    """The text in UTF-8; what cannot be written so is replaced."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode()


def _cut(value: Any, most: int) -> Any:
    """A value without what is longer than `most`."""
    if isinstance(value, str):
        keep = max(most, _SHORT)
        if len(value) <= keep:
            return value
        return f"{value[:keep]}\n[… {len(value) - keep} characters cut …]"
    if isinstance(value, dict):
        pairs = [pair for pair in cast("dict[str, Any]", value).items() if len(pair[0]) <= _SHORT]
        return {key: _cut(part, most) for key, part in pairs[: max(most, _FIELDS)]}
    if isinstance(value, list | tuple):
        return [_cut(part, most) for part in cast("list[Any]", value)[:most]]
    return value


_FIELDS: Final = 32  # more than any event has, so that none loses one of its own
