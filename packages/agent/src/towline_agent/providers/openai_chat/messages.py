"""The messages of Chat Completions. Pure: the same conversation, the same bytes."""

import json
import re
from typing import Any, Final

import msgspec

from towline_agent.providers.base import Request, ToolSpec
from towline_agent.providers.fragments import Prefixes, to_json
from towline_agent.providers.json_value import as_object
from towline_agent.providers.openai_chat.decode import DETAILS, DIALECT
from towline_agent.providers.openai_chat.flags import ChatFlags
from towline_agent.providers.wire_call import wire_arguments, wire_name
from towline_protocol import (
    Block,
    File,
    Image,
    Message,
    Opaque,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    block_text,
)

__all__ = ["MessageEncoder"]

_Json = dict[str, Any]

_BASE62: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_SHORT_ID: Final = 9
_JOINED: Final = frozenset({"tool", "user"})
_ERROR_MARK: Final = "Error: "
_WORDS_END: Final = b'"}'
_PARTS_END: Final = b"]}"
_SHOWN: Final = (Text, Image, File)
_EMPTY: Final = Text(text="")
_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,40}")
"""Ids that OpenAI takes, and all whom its gateways pass them on to."""


class _Calls:
    """What the calls so far are named on the wire: all that later messages depend on."""

    __slots__ = ("end", "ids", "names", "taken")

    def __init__(self, ids: dict[str, str], names: dict[str, str], taken: set[str]) -> None:
        self.ids = ids  # our call ids to those on the wire
        self.names = names
        self.taken = taken
        self.end = b""  # how the JSON of the last message ends, if more words can go there

    def copy(self) -> "_Calls":
        twin = _Calls(self.ids.copy(), self.names.copy(), self.taken.copy())
        twin.end = self.end
        return twin

    def add(self, call: ToolCall, *, short: bool, foreign: bool) -> str:
        """The id of a call on the wire: the provider's own where no earlier call has it.

        Another provider's goes only if this one could have made it.
        """
        wire = call.wire_id or ""
        if foreign and _ID.fullmatch(wire) is None:
            wire = ""
        if not wire or wire in self.taken:
            ours = call.id not in self.taken and _ID.fullmatch(call.id) is not None
            wire = call.id if ours else _made(call.id, len(self.taken))
        self.taken.add(wire)
        self.names[call.id] = call.name
        wire = self.ids[call.id] = _shorten(wire) if short else wire
        return wire


class MessageEncoder:
    """Encodes conversations for one model; keeps what it has encoded.

    Args:
        model: The model's name, as `provider/model`.
        flags: How the gateway speaks.
    """

    def __init__(self, model: str, flags: ChatFlags) -> None:
        self._model = model
        self._flags = flags
        self._prefixes = Prefixes(lambda: _Calls({}, {}, set()), self._add)
        self._system: tuple[str, bytes] = ("", b"")
        self._tools: tuple[tuple[ToolSpec, ...], msgspec.Raw] = ((), msgspec.Raw(b"[]"))
        self.notices: list[str] = []
        """What was left out since somebody looked."""

    def encode(self, request: Request) -> msgspec.Raw:
        """All messages as a JSON array, in bytes that stay the same from step to step (A4.5).

        The last one carries the trailing words, which the next request does not repeat.
        """
        encoded, calls = self._prefixes.encode(self._joined(request.messages))
        parts: list[bytes | memoryview] = [b"["]
        if request.system:
            if request.system != self._system[0]:
                said = to_json({"role": "system", "content": request.system})
                self._system = (request.system, said)
            parts += self._system[1:]
            if encoded or request.trailing:
                parts.append(b",")
        parts += _with_trailing(encoded, calls.end, request.trailing)
        parts.append(b"]")
        return msgspec.Raw(b"".join(parts))

    def tools(self, specs: tuple[ToolSpec, ...]) -> msgspec.Raw:
        """All tools as a JSON array."""
        if specs != self._tools[0]:
            self._tools = (specs, msgspec.Raw(to_json([_tool(spec) for spec in specs])))
        return self._tools[1]

    def _joined(self, messages: tuple[Message, ...]) -> tuple[Message, ...]:
        """The messages as they go out; what went out before needs no look."""
        known = self._prefixes.count_known(messages) - 1
        if known <= 0:
            return _joined(messages)
        return (*messages[:known], *_joined(messages[known:]))

    def _add(self, calls: _Calls, messages: tuple[Message, ...]) -> bytes:
        wire: list[_Json] = []
        before = 0
        for message in messages:
            before = len(wire)
            self._write(wire, calls, message)
        calls.end = _end_of(wire[before:])
        return _items(wire)

    def _write(self, wire: list[_Json], calls: _Calls, message: Message) -> None:
        results: list[ToolResult] = []
        rest: list[Block] = []
        for block in message.content:
            if type(block) is ToolResult:
                results.append(block)
            else:
                rest.append(block)
        if results:
            pictures: list[_Json] = []
            wire += [self._result(calls, result, pictures) for result in results]
            if pictures:
                wire.append({"role": "user", "content": pictures})
        if message.role == "assistant":
            # what another model has proved or thought means nothing here (A2.32)
            foreign = message.model is not None and message.model != self._model
            self._write_answer(wire, calls, rest, foreign=foreign)
        elif rest:
            self._write_parts(wire, "system" if message.role == "system" else "user", rest)

    def _write_answer(
        self, wire: list[_Json], calls: _Calls, blocks: list[Block], *, foreign: bool
    ) -> None:
        text = ""
        asked: list[_Json] = []
        for block in blocks:
            if type(block) is ToolCall:
                asked.append(self._call(calls, block, foreign=foreign))
            elif type(block) is Text:
                text += block.text
        if not asked and not text.strip():
            return  # nothing that this dialect can say (R37)
        message: _Json = {"role": "assistant", "content": text or None}
        if self._flags.replay is not None and not foreign:
            message.update(_replayed(self._flags.replay, blocks))
        if asked:
            message["tool_calls"] = asked
        wire.append(message)

    def _call(self, calls: _Calls, call: ToolCall, *, foreign: bool) -> _Json:
        encoded: _Json = {
            "id": calls.add(call, short=self._flags.short_call_ids, foreign=foreign),
            "type": "function",
            "function": {
                "name": wire_name(call.name),
                "arguments": wire_arguments(call.arguments),
            },
        }
        if call.signature and self._flags.call_signatures and not foreign:
            encoded["extra_content"] = {"google": {"thought_signature": call.signature}}
        return encoded

    def _result(self, calls: _Calls, result: ToolResult, pictures: list[_Json]) -> _Json:
        """A tool's message; what is no text goes to `pictures` (A2.5)."""
        texts = [block.text for block in result.content if type(block) is Text and block.text]
        text = "\n".join(texts)
        others: list[Image | File] = []
        if len(texts) < len(result.content):
            others = [block for block in result.content if isinstance(block, Image | File)]
        if others:
            name = calls.names.get(result.call, "the tool")
            text = text or "[what it returned is shown below]"
            pictures.append(_text(f"Returned by {name}:"))
            pictures.extend(self._part(block) for block in others)
        if result.is_error and not text.startswith(_ERROR_MARK):
            text = _ERROR_MARK + text
        if self._flags.wrap_results:
            text = json.dumps({"result": text}, ensure_ascii=False)
        id_ = calls.ids.get(result.call, result.call)
        return {"role": "tool", "tool_call_id": id_, "content": text}

    def _write_parts(self, wire: list[_Json], role: str, blocks: list[Block]) -> None:
        first = blocks[0]
        if len(blocks) == 1 and type(first) is Text:
            content: Any = first.text
        else:
            shown = (b for b in blocks if isinstance(b, _SHOWN) and b != _EMPTY)
            content = [self._part(block) for block in shown]
            if len(content) == 1 and "text" in content[0]:
                content = content[0]["text"]
        if content:
            wire.append({"role": role, "content": content})

    def _part(self, block: Text | Image | File) -> _Json:
        if isinstance(block, Text):
            return _text(block.text)
        if block.data is None:
            self.notices.append(f"A {block.media_type} block without its bytes was left out.")
            return _text(f"[a {block.media_type} block that is no longer there]")
        url = f"data:{block.media_type};base64,{block.data}"
        if isinstance(block, Image):
            return {"type": "image_url", "image_url": {"url": url}}
        return {"type": "file", "file": {"filename": block.name, "file_data": url}}


def _replayed(field: str, blocks: list[Block]) -> _Json:
    """The thinking that the gateway wants back."""
    if field == DETAILS:
        ours = (b.raw for b in blocks if isinstance(b, Opaque) and b.dialect == DIALECT)
        kept: Any = next(ours, None)
        return as_object(kept)
    thought = "".join(block.text for block in blocks if isinstance(block, Thinking))
    return {field: thought} if thought else {}


def _end_of(wire: list[_Json]) -> bytes:
    """How the JSON of a message ends: its content stands last. Nothing for the model's own."""
    if not wire or wire[-1]["role"] == "assistant":
        return b""
    return _WORDS_END if isinstance(wire[-1]["content"], str) else _PARTS_END


def _with_trailing(encoded: bytes, end: bytes, words: str) -> tuple[bytes | memoryview, ...]:
    """The words of this step alone, at the end of the last message (A4.11).

    They make no message of their own: some servers refuse a user's message after a tool's.
    """
    if not words:
        return (encoded,)
    if not end:
        said = to_json({"role": "user", "content": words})
        return (encoded, b",", said) if encoded else (said,)
    open_ = memoryview(encoded)[: -len(end)]
    if end == _PARTS_END:
        return open_, b",", to_json(_text(words)), end
    return open_, b"\\n\\n", to_json(words)[1:], b"}"


def _joined(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Each run of tool messages as one, and each run of a person's.

    Pictures come after all results of a run (A2.5). After a turn without an answer two messages of
    a person stand in a row, which some servers refuse.
    """
    if len(messages) == 1 and messages[0].role in _JOINED:
        return messages
    joined: list[Message] = []
    role = ""  # of the last one
    for message in messages:
        if message.role == role and role in _JOINED:
            joined[-1] = Message(role, _together(joined[-1].content, message.content))
        elif not _is_silent(message):
            joined.append(message)
            role = message.role
    return tuple(joined)


def _is_silent(message: Message) -> bool:
    """Whether it is an answer that this dialect cannot say: no words, no calls (R37)."""
    if message.role != "assistant":
        return False
    for block in message.content:
        if type(block) is ToolCall or (type(block) is Text and block.text.strip()):
            return False
    return True


def _together(first: tuple[Block, ...], second: tuple[Block, ...]) -> tuple[Block, ...]:
    """The blocks of both; words alone as one text, which every server takes."""
    if all(isinstance(block, Text) for block in (*first, *second)):
        return (Text(text=f"{block_text(first)}\n\n{block_text(second)}"),)
    return (*first, *second)


def _items(values: list[_Json]) -> bytes:
    """The values as a JSON array has them, without its brackets.

    One with half a character changes nothing about the bytes of the others.
    """
    try:
        return msgspec.json.encode(values)[1:-1]
    except UnicodeEncodeError:
        return b",".join(map(to_json, values))


def _text(text: str) -> _Json:
    return {"type": "text", "text": text}


def _made(id_: str, number: int) -> str:
    """An id that no other call has, for one whose own would be refused."""
    import hashlib  # as below

    told = f"{number} {id_}".encode("utf-8", "replace")
    return f"call_{hashlib.sha256(told).hexdigest()[:32]}"


def _shorten(id_: str) -> str:
    """An id of nine letters and digits: itself if it is one, else made from its hash."""
    if len(id_) == _SHORT_ID and id_.isascii() and id_.isalnum():
        return id_
    import hashlib  # by few vendors alone: it brings OpenSSL along

    number = int.from_bytes(hashlib.sha256(id_.encode()).digest())
    return "".join(_BASE62[number // 62**place % 62] for place in range(_SHORT_ID))


def _tool(tool: ToolSpec) -> _Json:
    function: _Json = {"name": tool.name}
    if tool.description:
        function["description"] = tool.description
    function["parameters"] = tool.parameters
    return {"type": "function", "function": function}
