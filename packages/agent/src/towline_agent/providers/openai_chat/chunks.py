"""The JSON of Chat Completions as typed structs: one chunk of a stream, or one whole answer.

Fields that vendors fill with other types than the official ones are `Any`; the decoder looks.
"""

import functools
import json
from collections.abc import Callable
from typing import Any, cast

import msgspec

__all__ = [
    "CallPart",
    "Choice",
    "Chunk",
    "Delta",
    "FunctionPart",
    "chunk_reader",
    "read_again",
]


class FunctionPart(msgspec.Struct, gc=False):
    """A function's name and arguments, or a piece of them."""

    name: Any = None
    """The function, whole or a piece."""
    arguments: Any = None
    """JSON text, whole or a piece; some vendors send an object."""
    input: Any = None
    """The free text of a custom tool."""


class CallPart(msgspec.Struct, gc=False):
    """A tool call, or a piece of one."""

    index: int | None = None
    """The vendor's number of the call."""
    id: Any = None
    """The vendor's id of the call."""
    function: FunctionPart | None = None
    """What is called."""
    custom: FunctionPart | None = None
    """What is called, when it is a custom tool."""
    extra_content: Any = None
    """Google's proofs."""


class Delta(msgspec.Struct, gc=False):
    """A message, or a piece of one."""

    content: Any = None
    """Text; or a list of parts, or any JSON."""
    tool_calls: list[CallPart] | None = None
    """Calls, or pieces of them."""
    reasoning_content: Any = None
    """Thinking."""
    reasoning: Any = None
    """Thinking, under another name."""
    reasoning_details: Any = None
    """Thinking, as a list of typed parts."""
    refusal: Any = None
    """Words with which the model refuses."""
    audio: Any = None
    """Speech; its words stand in `transcript`."""


class Choice(msgspec.Struct, gc=False):
    """One candidate; we ask for one alone."""

    index: int | None = None
    """Which candidate."""
    delta: Delta | None = None
    """What is new."""
    message: Delta | None = None
    """The whole message."""
    finish_reason: Any = None
    """Why the model stopped."""
    error: Any = None
    """What went wrong upstream."""


class Chunk(msgspec.Struct, gc=False):
    """One chunk or one whole answer."""

    choices: list[Choice] | None = None
    """The candidates."""
    usage: Any = None
    """Token counts."""
    error: Any = None
    """What went wrong."""
    x_groq: Any = None
    """Where Groq keeps its token counts."""


@functools.cache
def chunk_reader() -> Callable[[bytes], Chunk]:
    """Makes a chunk out of JSON, fast; what it refuses is for `read_again`.

    Made at the first use: whoever never reads one need not wait for it.
    """
    return msgspec.json.Decoder(Chunk).decode


def read_again(data: bytes) -> Chunk | None:
    """A chunk that msgspec refuses: lone surrogates, numbers as texts (A2.24).

    `None` stands for JSON that is no object: gateways send such as a sign of life.

    Raises:
        ValueError: The bytes are no JSON, or no chunk in any reading.
    """
    try:
        value: Any = json.loads(data)
        if not isinstance(value, dict):
            return None
        return msgspec.convert(cast("dict[str, Any]", value), Chunk, strict=False)
    except (ValueError, RecursionError) as error:  # a ValidationError is a ValueError
        raise ValueError("not a chunk") from error
