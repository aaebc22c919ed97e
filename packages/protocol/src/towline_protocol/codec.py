"""Bytes to values and back (C1.11).

The typed decode comes first and is fast. Only when it fails does a second pass look for what this
reader does not know, and keeps it as `Unknown`: a newer peer never breaks an older one.
"""

import functools
from typing import Any, Final, TypeVar, cast

import msgspec

from towline_protocol.artifacts import Artifact, UnknownArtifact
from towline_protocol.content import Block, Unknown
from towline_protocol.events import Envelope, Event
from towline_protocol.frames import CONTROL_FRAMES, Broken, Frame

__all__ = ["decode_answer", "decode_blocks", "decode_envelope", "decode_frame", "encode"]

_T = TypeVar("_T")
_Json = dict[str, Any]


@functools.cache
def _tags(union: Any, field: str) -> frozenset[str]:
    """The wire tags that a union knows."""
    infos = msgspec.inspect.multi_type_info(union.__args__)
    return frozenset(
        str(info.tag)
        for info in infos
        if isinstance(info, msgspec.inspect.StructType) and info.tag_field == field
    )


_encoder: Final = msgspec.json.Encoder()


@functools.cache
def _envelopes() -> msgspec.json.Decoder[Envelope]:
    """Made at the first use: whoever never reads one need not wait for it."""
    return msgspec.json.Decoder(Envelope)


@functools.cache
def _block_lists() -> msgspec.json.Decoder[tuple[Block, ...]]:
    return msgspec.json.Decoder(tuple[Block, ...])


def encode(value: object) -> bytes:
    """A value of this package as JSON on one line, unset fields left out."""
    return _encoder.encode(value)


def decode_envelope(data: bytes | str) -> Envelope | Broken:
    """An envelope out of JSON; never raises.

    An event or block of an unknown kind, or of a known kind in an unknown shape, becomes `Unknown`.
    Only what is no JSON or no envelope at all comes back as `Broken`.
    """
    try:
        return _envelopes().decode(data)
    except msgspec.ValidationError:
        return _tolerant(data)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return Broken(reason="not JSON")


def decode_frame(event: str, data: bytes | str) -> Frame | Broken:
    """One SSE event as a frame; never raises.

    Args:
        event: The SSE event name; empty or `message` for envelopes.
        data: The SSE data.
    """
    if not event or event == "message":
        return decode_envelope(data)
    control = CONTROL_FRAMES.get(event)
    if control is None:
        return Broken(reason="unknown control frame")
    try:
        return decode_answer(data, control)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return Broken(reason=f"malformed {event} frame")


def decode_answer(data: bytes | str, kind: type[_T]) -> _T:
    """An answer's body or a control frame; blocks and artifacts of an unknown kind as `Unknown`.

    Raises:
        msgspec.DecodeError: The bytes are no JSON, or nothing of that kind even so.
    """
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.ValidationError:
        return msgspec.convert(_known_value(msgspec.json.decode(data)), kind)


def decode_blocks(data: bytes) -> tuple[Block, ...]:
    """A list of blocks out of JSON, unknown ones as `Unknown`.

    Raises:
        msgspec.DecodeError: The bytes are no JSON list of objects.
    """
    try:
        return _block_lists().decode(data)
    except msgspec.ValidationError:
        raw = msgspec.json.decode(data, type=list[_Json])
        return msgspec.convert([_known_block(block) for block in raw], tuple[Block, ...])


def _tolerant(data: bytes | str) -> Envelope | Broken:
    """The second pass: replace what is not known, then convert again."""
    try:
        raw = msgspec.json.decode(data, type=_Json)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return Broken(reason="not a JSON object")
    event = raw.get("event")
    if not isinstance(event, dict):
        return Broken(reason="an envelope without an event")
    found = cast("_Json", event)
    readings = (_with_known_parts, _as_unknown)
    for reading in readings if found.get("type") in _tags(Event, "type") else readings[1:]:
        try:
            return msgspec.convert({**raw, "event": reading(found)}, Envelope)
        except (msgspec.ValidationError, RecursionError):
            continue
    return Broken(reason="not an envelope")


def _with_known_parts(event: _Json) -> _Json:
    return {key: _known_part(key, part) for key, part in event.items()}


def _as_unknown(event: _Json) -> _Json:
    return _unknown(event, "type")


def _known_value(value: Any) -> Any:
    """A view, or what else holds messages, with all that is not known replaced."""
    if isinstance(value, list):
        return [_known_value(part) for part in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    parts = cast("_Json", value).items()
    return {
        key: _known_part(key, part) if key in ("content", "artifacts") else _known_value(part)
        for key, part in parts
    }


def _known_part(key: str, part: Any) -> Any:
    if key == "content" and isinstance(part, list):
        return [_known_block(block) for block in cast("list[Any]", part)]
    if key == "artifacts" and isinstance(part, list):
        return [_known_artifact(artifact) for artifact in cast("list[Any]", part)]
    return part


def _known_block(block: Any) -> Any:
    if not isinstance(block, dict):
        return {"type": "unknown", "name": "", "raw": {"value": block}}
    found = cast("_Json", block)
    if found.get("type") in _tags(Block, "type"):
        inner = {key: _known_part(key, part) for key, part in found.items()}
        if _fits(inner, Block):
            return inner
    return _unknown(found, "type")


def _known_artifact(artifact: Any) -> Any:
    if not isinstance(artifact, dict):
        return {"kind": "unknown", "name": "", "raw": {"value": artifact}}
    found = cast("_Json", artifact)
    if found.get("kind") in _tags(Artifact, "kind") and _fits(found, Artifact):
        return found
    name = found.get("kind")
    return msgspec.to_builtins(
        UnknownArtifact(name=name if isinstance(name, str) else "", raw=found)
    )


def _fits(value: _Json, kind: Any) -> bool:
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return False
    return True


def _unknown(raw: _Json, tag: str) -> _Json:
    name = raw.get(tag)
    wrapped = Unknown(name=name if isinstance(name, str) else "", raw=raw)
    return cast("_Json", msgspec.to_builtins(wrapped))
