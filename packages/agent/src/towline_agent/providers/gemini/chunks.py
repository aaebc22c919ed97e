"""The JSON of an answer as typed structs: one chunk of a stream, or a whole answer.

Fields whose type a peer may get wrong are `Any`; the decoder looks.
"""

import json
from typing import Any, Final, cast

import msgspec

from towline_agent.providers.surrogates import mend

__all__ = [
    "Candidate",
    "Chunk",
    "Content",
    "FunctionCall",
    "Part",
    "decode_chunk",
    "raw_parts",
    "read_again",
]


class FunctionCall(msgspec.Struct, gc=False, rename="camel"):
    """A function call, or a piece of one."""

    name: Any = None
    """The function."""
    args: Any = None
    """The arguments as an object."""
    id: Any = None
    """The provider's id of the call; generation 2 has none."""
    partial_args: Any = None
    """Pieces of arguments, each with the path where it belongs (A2.49)."""
    will_continue: Any = None
    """Whether more of this call comes."""


class Part(msgspec.Struct, gc=False, rename="camel"):
    """A part of the answer. What has neither text nor a call is kept as it came."""

    text: Any = None
    """Words, whole or a piece."""
    thought: Any = None
    """Whether they were thought, not said."""
    thought_signature: Any = None
    """The provider's proof of what it thought up to here (A2.46)."""
    function_call: FunctionCall | None = None
    """A call."""


class Content(msgspec.Struct, gc=False):
    """The parts of a message."""

    parts: list[Part] | None = None
    """The parts, in order."""


class Candidate(msgspec.Struct, gc=False, rename="camel"):
    """One candidate; we ask for one alone."""

    index: Any = None
    """Which candidate; often left out."""
    content: Content | None = None
    """What is new."""
    finish_reason: Any = None
    """Why the model stopped: a word or a number."""
    finish_message: Any = None
    """The same as a sentence."""
    grounding_metadata: Any = None
    """What the provider's own search found."""


class Chunk(msgspec.Struct, gc=False, rename="camel"):
    """One chunk or one whole answer."""

    candidates: list[Candidate] | None = None
    """The candidates."""
    usage_metadata: Any = None
    """Token counts so far."""
    prompt_feedback: Any = None
    """Whether the prompt was let through."""
    error: Any = None
    """What went wrong."""


decode_chunk: Final = msgspec.json.Decoder(Chunk).decode
"""A chunk out of JSON, fast; what it refuses is for `read_again`."""


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
        return msgspec.convert(_plain_names(value), Chunk, strict=False)
    except (ValueError, RecursionError) as error:  # a ValidationError is a ValueError
        raise ValueError("not a chunk") from error


def _plain_names(value: Any) -> Any:
    """A value whose field names hold no halves of characters; its texts are mended later."""
    match value:
        case list():
            return [_plain_names(item) for item in cast("list[Any]", value)]
        case dict():
            found = cast("dict[str, Any]", value)
            return {mend(key): _plain_names(item) for key, item in found.items()}
        case _:
            return value


def raw_parts(data: bytes, candidate: int) -> list[Any]:
    """The parts of a chunk with all their fields, known or not.

    Args:
        data: The chunk, which has been read before.
        candidate: Which candidate.

    Raises:
        ValueError: It cannot be read so.
    """
    try:
        return cast("list[Any]", json.loads(data)["candidates"][candidate]["content"]["parts"])
    except (LookupError, TypeError, RecursionError) as error:
        raise ValueError("not a chunk") from error
