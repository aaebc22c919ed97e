"""From one neutral block to the parts that say the same."""

import base64
import binascii
import json
from typing import Any, Final, cast

from towline_agent.providers.fragments import to_json
from towline_agent.providers.gemini.decode import SIGNATURE
from towline_agent.providers.wire_call import wire_name
from towline_protocol import File, Image, Text, ToolCall, ToolResult

__all__ = [
    "MEDIA_CHARS",
    "call_part",
    "media_chars",
    "media_parts",
    "replay_part",
    "response_part",
]

_Json = dict[str, Any]

MEDIA_CHARS: Final = 6000
"""What a picture or a file counts for in an estimate: 1,500 tokens (A3.28)."""
_READ: Final = (
    "image/png", "image/jpeg", "image/webp", "image/heic", "image/heif", "application/pdf",
    "audio/", "video/",
)  # fmt: skip
"""Beginnings of the kinds of bytes that models read as they are."""
_WRITTEN: Final = (
    "text/", "application/json", "application/xml", "application/yaml", "application/x-yaml",
    "application/javascript", "image/svg+xml",
)  # fmt: skip
"""Kinds that are words, whatever they are called."""


def call_part(call: ToolCall, wire_id: str | None, signature: str | None) -> _Json:
    """A call as the model is reminded of it.

    Args:
        call: The call.
        wire_id: Its id on the wire; `None` where the provider gave none (A2.48).
        signature: The proof that came with it (A2.46).
    """
    called: _Json = {"name": _function_name(call.name), "args": _arguments(call.arguments)}
    if wire_id is not None:
        called["id"] = wire_id
    part: _Json = {"functionCall": called}
    if signature:
        part[SIGNATURE] = signature
    return part


def response_part(result: ToolResult, name: str, wire_id: str | None) -> _Json:
    """What a call came to, in words; pictures and files are for `media_parts`."""
    text = "\n".join(b.text for b in result.content if isinstance(b, Text) and b.text)
    if not text and any(isinstance(block, Image | File) for block in result.content):
        text = "What it returned is shown below."
    response = {"error" if result.is_error else "output": text}
    answered: _Json = {"name": _function_name(name), "response": response}
    if wire_id is not None:
        answered["id"] = wire_id
    return {"functionResponse": answered}


def media_parts(block: Image | File, notices: list[str]) -> list[_Json]:
    """A picture or a file; words in a file as words, since models refuse most kinds of text.

    Args:
        block: The picture or file.
        notices: Takes in what was left out and why (A1.19).
    """
    kind = block.media_type.lower()
    name = block.name if isinstance(block, File) else ""
    if block.data is None:
        notices.append(f"A {kind} block without its bytes was left out.")
        return [{"text": f"[a {kind} block that is no longer there]"}]
    if kind.startswith(_WRITTEN):
        return [{"text": f"File {name}:\n{_words(block.data)}" if name else _words(block.data)}]
    if not kind.startswith(_READ):
        notices.append(f"A block of the kind {kind!r} was left out: Gemini does not read it.")
        return [{"text": f"[{name or 'a block'} of the kind {kind}, which you cannot read]"}]
    part = {"inlineData": {"mimeType": kind, "data": block.data}}
    return [{"text": f"File {name}:"}, part] if name else [part]


def media_chars(block: Image | File) -> int:
    """How much shorter a picture or file counts than its bytes are; 0 for words."""
    if block.data is None or block.media_type.lower().startswith(_WRITTEN):
        return 0
    return max(0, len(block.data) - MEDIA_CHARS)


def replay_part(parts: list[_Json], raw: _Json) -> None:
    """Put back a part that was kept as it came, behind what came before it.

    Args:
        parts: The parts so far. A proof alone goes to the text before it.
        raw: The part.
    """
    if not raw:
        return
    if raw.keys() != {SIGNATURE}:
        parts.append(raw)
    elif parts and parts[-1].keys() == {"text"}:
        parts[-1] = {**parts[-1], **raw}
    else:
        parts.append({"text": "", **raw})


def _function_name(name: str) -> str:
    """A name as this API takes it: it begins with a letter or an underscore."""
    name = wire_name(name)
    return name if name[0].isalpha() or name[0] == "_" else f"_{name[:63]}"


def _arguments(text: str) -> Any:
    """Arguments as an object: the API refuses a whole history for a broken one."""
    try:
        value: Any = json.loads(text or "{}")
        if isinstance(value, dict):
            to_json(cast("_Json", value))  # what nests too deep fails here, not with its message
            return cast("_Json", value)
    except (ValueError, RecursionError):
        pass
    return {"broken_arguments": text}


def _words(data: str) -> str:
    try:
        return base64.b64decode(data, validate=True).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        return "[its words cannot be read]"
