"""A call as a conversation tells of it, in words that every API takes.

A model may write anything. A server that refuses what one call once said would refuse the whole
conversation with it, for good.
"""

import json
import re
from typing import Final

import msgspec

__all__ = ["wire_arguments", "wire_name"]

_OBJECT: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ODD: Final = re.compile(r"[^A-Za-z0-9_-]")
_NAME_MAX: Final = 64
_NAMELESS: Final = "unnamed"


def wire_arguments(text: str) -> str:
    """The arguments as a JSON object that any server can parse.

    Broken ones go as one text in an object, so that the model still sees what it wrote.
    """
    if not text.strip():
        return "{}"
    try:
        _OBJECT.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return json.dumps({"broken_arguments": text})
    return text


def wire_name(name: str) -> str:
    """The name of the tool that was called.

    It is another one only where the model made up a name that no tool may have.
    """
    if len(name) <= _NAME_MAX and name.isascii() and name.isidentifier():
        return name
    return _ODD.sub("_", name)[:_NAME_MAX] or _NAMELESS
