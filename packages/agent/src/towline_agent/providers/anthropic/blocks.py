"""From neutral blocks to those of the Messages API. What it would refuse is left out (R31, R37)."""

import base64
import binascii
from collections.abc import Sequence
from typing import Any, Final, cast

from towline_agent.providers.anthropic.flags import AnthropicFlags
from towline_agent.providers.anthropic.values import is_shallow, read_object
from towline_agent.providers.anthropic.wire_ids import WireIds
from towline_agent.providers.wire_call import wire_name
from towline_protocol import Block, File, Image, Opaque, Text, Thinking, ToolCall, ToolResult

__all__ = ["CITATIONS", "DIALECT", "BlockEncoder"]

DIALECT: Final = "anthropic"
"""The dialect's name in `Opaque` blocks."""
CITATIONS: Final = "citations"
"""The key of an `Opaque` block that holds the citations of the text before it."""

_Json = dict[str, Any]

_PICTURES: Final = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
_PDF: Final = "application/pdf"
_TEXTS: Final = ("application/json", "application/xml", "application/javascript", "application/x-")
_TEXT_ENDS: Final = ("+json", "+xml", "yaml", "toml", "sql")
_FAILED: Final = "The tool failed and gave no reason."
_THOUGHTS: Final = frozenset({"thinking", "redacted_thinking"})


class BlockEncoder:
    """The blocks of one conversation, message after message.

    Args:
        flags: How the gateway speaks.
        ids: The ids of the calls so far.
    """

    def __init__(self, flags: AnthropicFlags, ids: WireIds) -> None:
        self.notices: dict[str, None] = {}
        """What was left out."""
        self._flags = flags
        self._ids = ids

    def copy(self) -> "BlockEncoder":
        """One that goes on by itself, with nothing left out so far."""
        return BlockEncoder(self._flags, self._ids.copy())

    def user(self, blocks: Sequence[Block]) -> list[_Json]:
        """What a person or a tool said; results come first, as the API wants them (A2.40)."""
        results = [self._result(block) for block in blocks if isinstance(block, ToolResult)]
        return results + self._parts(blocks)

    def assistant(self, blocks: Sequence[Block], *, foreign: bool) -> list[_Json]:
        """What a model said, its own proofs and vendor blocks in their places (A2.37, A2.38).

        Args:
            blocks: The message's blocks.
            foreign: Whether another model wrote them: then only words and calls mean something.
        """
        out: list[_Json] = []
        for block in blocks:
            match block:
                case Text():
                    out.extend(_words(block.text))
                case ToolCall():
                    out.append(self._call(block, foreign=foreign))
                case Thinking() if not foreign:
                    out.extend(self._thought(block))
                case Opaque() if block.dialect == DIALECT and not foreign:
                    _add_own(out, block.raw)
                case _:
                    pass
        while out and out[-1]["type"] in _THOUGHTS:  # refused at the end; it led to nothing (R33)
            out.pop()
        return out

    def _call(self, call: ToolCall, *, foreign: bool) -> _Json:
        out: _Json = {"type": "tool_use", "id": self._ids.add(call), "name": wire_name(call.name)}
        out["input"] = _input(call.arguments)
        caller = read_object(call.signature) if call.signature and not foreign else None
        if caller:
            out["caller"] = caller
        return out

    def _thought(self, thought: Thinking) -> list[_Json]:
        if thought.redacted:
            data = thought.signature
            return [{"type": "redacted_thinking", "data": data}] if data else []
        if thought.signature or (thought.text and self._flags.unsigned_thinking):
            signature = thought.signature or ""
            return [{"type": "thinking", "thinking": thought.text, "signature": signature}]
        return []

    def _result(self, result: ToolResult) -> _Json:
        out: _Json = {"type": "tool_result", "tool_use_id": self._ids.find(result.call)}
        parts = self._parts(result.content)
        if not parts and result.is_error:  # an error without a word is refused
            parts = [_text(_FAILED)]
        if len(parts) == 1 and parts[0]["type"] == "text":
            out["content"] = parts[0]["text"]
        elif parts:
            out["content"] = parts
        if result.is_error:
            out["is_error"] = True
        return out

    def _parts(self, blocks: Sequence[Block]) -> list[_Json]:
        out: list[_Json] = []
        for block in blocks:
            match block:
                case Text():
                    out.extend(_words(block.text))
                case Image():
                    out.append(self._picture(block.media_type, block.data))
                case File():
                    out.append(self._document(block))
                case Opaque() if block.dialect == DIALECT:
                    _add_own(out, block.raw)
                case _:
                    pass
        return out

    def _picture(self, media_type: str, data: str | None) -> _Json:
        if not data:
            return self._gone(media_type)
        if media_type not in _PICTURES:
            return self._unknown(media_type)
        source = {"type": "base64", "media_type": media_type, "data": data}
        return {"type": "image", "source": source}

    def _document(self, file: File) -> _Json:
        kind = file.media_type.partition(";")[0].strip().lower()
        if kind.startswith("image/"):
            return self._picture(kind, file.data)
        if file.data is None:
            return self._gone(file.media_type)
        if not file.data:
            return _text(f"[the file {file.name!r} is empty]")
        if kind == _PDF and self._flags.documents:
            source = {"type": "base64", "media_type": _PDF, "data": file.data}
            return _titled({"type": "document", "source": source}, file.name)
        text = _decoded(file.data) if _is_text(kind) else None
        if text is None:
            return self._unknown(file.media_type)
        if not text.strip():
            return _text(f"[the file {file.name!r} is empty]")
        if not self._flags.documents:
            return _text(f"{file.name}:\n{text}")
        source = {"type": "text", "media_type": "text/plain", "data": text}
        return _titled({"type": "document", "source": source}, file.name)

    def _gone(self, media_type: str) -> _Json:
        self.notices[f"A {media_type} block without its bytes was left out."] = None
        return _text(f"[a {media_type} block that is no longer there]")

    def _unknown(self, media_type: str) -> _Json:
        self.notices[f"A {media_type} block was left out: this API does not take its kind."] = None
        return _text(f"[a {media_type} block that cannot be shown here]")


def _add_own(out: list[_Json], raw: Any) -> None:
    """A vendor block as it came, or the citations of the text before it."""
    if not isinstance(raw, dict) or not is_shallow(raw):
        return
    own = cast("_Json", raw)
    if isinstance(own.get("type"), str):
        out.append(own)
    elif own.get(CITATIONS) and out and out[-1]["type"] == "text":
        out[-1][CITATIONS] = own[CITATIONS]


def _words(text: str) -> list[_Json]:
    """A text block; none for white space, which the API refuses (R37)."""
    return [_text(text)] if text.strip() else []


def _text(text: str) -> _Json:
    return {"type": "text", "text": text}


def _titled(block: _Json, title: str) -> _Json:
    return {**block, "title": title} if title.strip() else block


def _input(arguments: str) -> _Json:
    """Arguments as the object that the API wants; broken ones stay readable for the model."""
    if not arguments.strip():
        return {}
    found = read_object(arguments)
    return found if found is not None else {"broken_arguments": arguments}


def _is_text(kind: str) -> bool:
    return kind.startswith(("text/", *_TEXTS)) or kind.endswith(_TEXT_ENDS)


def _decoded(data: str) -> str | None:
    """The text in base 64; `None` when it is no text."""
    try:
        raw = base64.b64decode(data, validate=True)
        return raw.decode()
    except (binascii.Error, ValueError):
        return None
