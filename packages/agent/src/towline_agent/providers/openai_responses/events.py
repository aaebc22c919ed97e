"""The JSON of a stream of Responses as a struct.

All fields are `Any`: gateways fill them with other types than the official ones, and the decoder
looks before it takes.
"""

import json
from typing import Any, Final, cast

import msgspec

__all__ = ["Event", "decode_event", "read_again"]


class Event(msgspec.Struct, gc=False):
    """One event of a stream."""

    type: Any = None
    """What it says."""
    delta: Any = None
    """A piece of text or of arguments."""
    output_index: Any = None
    """The place of the item that it belongs to; some gateways leave it out."""
    item_id: Any = None
    """The id of that item; some gateways give another one in each event."""
    content_index: Any = None
    """The part of a message, or of reasoning in full."""
    summary_index: Any = None
    """The part of a summary of reasoning."""
    text: Any = None
    """The whole text of a part."""
    refusal: Any = None
    """The whole text of a refusal."""
    arguments: Any = None
    """The whole arguments of a call."""
    part: Any = None
    """A whole part."""
    annotation: Any = None
    """A mark on a text, such as a citation."""
    item: Any = None
    """An item of the answer."""
    response: Any = None
    """The answer."""
    error: Any = None
    """What went wrong."""


decode_event: Final = msgspec.json.Decoder(Event).decode
"""An event out of JSON, fast; what it refuses is for `read_again`."""


def read_again(data: bytes) -> Event | None:
    """An event that msgspec refuses, such as one with half a character in it (A2.24).

    `None` stands for JSON that is no object: gateways send such as a sign of life.

    Raises:
        ValueError: The bytes are no JSON.
    """
    try:
        value: Any = json.loads(data)
        if not isinstance(value, dict):
            return None
        return msgspec.convert(cast("dict[str, Any]", value), Event)
    except RecursionError as error:
        raise ValueError("too deep") from error
