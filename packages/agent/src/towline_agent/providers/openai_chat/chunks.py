"""The JSON of Chat Completions as typed structs: one chunk of a stream, or one whole answer.

Fields that vendors fill with other types than the official ones are `Any`; the decoder looks.
"""

import json
from typing import Any, Final, cast

import msgspec

__all__ = ["CallPart", "Choice", "Chunk", "Delta", "FunctionPart", "read_chunk"]


class FunctionPart(msgspec.Struct, gc=False):
    """A function's name and arguments, or a piece of them."""

    name: Any = None
    arguments: Any = None
    input: Any = None


class CallPart(msgspec.Struct, gc=False):
    """A tool call, or a piece of one."""

    index: int | None = None
    id: Any = None
    function: FunctionPart | None = None
    custom: FunctionPart | None = None
    extra_content: Any = None


class Delta(msgspec.Struct, gc=False):
    """A message, or a piece of one."""

    content: Any = None
    tool_calls: list[CallPart] | None = None
    reasoning_content: Any = None
    reasoning: Any = None
    reasoning_details: Any = None
    refusal: Any = None
    audio: Any = None


class Choice(msgspec.Struct, gc=False):
    """One candidate; we ask for one alone."""

    index: int | None = None
    delta: Delta | None = None
    message: Delta | None = None
    finish_reason: Any = None
    error: Any = None


class Chunk(msgspec.Struct, gc=False):
    """One chunk or one whole answer."""

    choices: list[Choice] | None = None
    usage: Any = None
    error: Any = None
    x_groq: Any = None


_decode: Final = msgspec.json.Decoder(Chunk).decode


def read_chunk(data: bytes) -> tuple[Chunk | None, bool]:
    """A chunk out of JSON, and whether its texts may hold halves of characters.

    msgspec refuses a lone surrogate; then the same bytes are read once more (A2.24). `None` stands
    for JSON that is no object: gateways send such as a sign of life.

    Raises:
        ValueError: The bytes are no JSON, or no chunk in any reading.
    """
    try:
        return _decode(data), False
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _read_again(data), True


def _read_again(data: bytes) -> Chunk | None:
    try:
        value: Any = json.loads(data)
        if not isinstance(value, dict):
            return None
        return msgspec.convert(cast("dict[str, Any]", value), Chunk, strict=False)
    except (ValueError, RecursionError) as error:  # a ValidationError is a ValueError
        raise ValueError("not a chunk") from error
