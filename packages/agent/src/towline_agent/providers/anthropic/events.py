"""The events of a streamed message as typed structs.

Hot fields have their official types. What msgspec refuses is read once more by hand, so that a
field of a wrong type is a missing field and nothing else (A2.24).
"""

import json
from typing import Any, Final, cast

import msgspec

from towline_agent.providers.json_value import as_object, to_text

__all__ = [
    "Delta",
    "MessageEvent",
    "decode_event",
    "read_again",
    "read_delta",
    "read_document",
]

_Json = dict[str, Any]


class Delta(msgspec.Struct, gc=False):
    """A piece of a block, or the end of a message."""

    type: str = ""
    """Of what kind the piece is."""
    text: str | None = None
    """More text."""
    thinking: str | None = None
    """More thinking."""
    partial_json: str | None = None
    """More of the JSON text of a call's input."""
    signature: str | None = None
    """More of the proof of a thought."""
    citation: Any = None
    """A source of the text."""
    stop_reason: Any = None
    """Why the model stopped."""
    stop_details: Any = None
    """More on why."""


class MessageEvent(msgspec.Struct, gc=False):
    """One event."""

    type: str = ""
    """What happened; when it is missing the name of the event says it."""
    index: int | None = None
    """The block's number within this response."""
    delta: Delta | None = None
    """What is new."""
    content_block: Any = None
    """A block that begins."""
    message: Any = None
    """The message that begins."""
    usage: Any = None
    """Token counts so far."""
    context_management: Any = None
    """What was left out of the conversation to make room."""
    error: Any = None
    """What went wrong."""


decode_event: Final = msgspec.json.Decoder(MessageEvent).decode
"""An event out of JSON, fast; what it refuses is for `read_again`."""

_TEXTS: Final = ("text", "thinking", "signature")
_INDEX_DIGITS: Final = 6


def read_again(data: bytes) -> MessageEvent | None:
    """An event that msgspec refuses: half characters, fields of wrong types.

    `None` stands for JSON that is no object: gateways send such as a sign of life.

    Raises:
        ValueError: The bytes are no JSON.
    """
    found = read_document(data)
    if found is None:
        return None
    return MessageEvent(
        type=_text(found.get("type")) or "",
        index=_number(found.get("index")),
        delta=_delta(found.get("delta")),
        content_block=found.get("content_block"),
        message=found.get("message"),
        usage=found.get("usage"),
        context_management=found.get("context_management"),
        error=found.get("error"),
    )


def read_delta(data: bytes) -> _Json:
    """The whole delta of an event that was readable, for kinds that nobody knows."""
    try:
        return as_object((read_document(data) or {}).get("delta"))
    except ValueError:
        return {}


def read_document(data: bytes) -> _Json | None:
    """A whole message, or whatever else stands in its place.

    `None` stands for JSON that is no object.

    Raises:
        ValueError: The bytes are no JSON.
    """
    try:
        value: Any = json.loads(data)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    return cast("_Json", value) if isinstance(value, dict) else None


def _delta(value: Any) -> Delta | None:
    if not isinstance(value, dict):
        return None
    found = cast("_Json", value)
    piece: Any = found.get("partial_json")
    return Delta(
        type=_text(found.get("type")) or "",
        partial_json=piece if isinstance(piece, str | None) else to_text(piece),
        citation=found.get("citation"),
        stop_reason=found.get("stop_reason"),
        stop_details=found.get("stop_details"),
        **{key: _text(found.get(key)) for key in _TEXTS},
    )


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _number(value: Any) -> int | None:
    if isinstance(value, str) and value.isdecimal() and value.isascii():
        return int(value[:_INDEX_DIGITS])
    return value if isinstance(value, int) and not isinstance(value, bool) else None
