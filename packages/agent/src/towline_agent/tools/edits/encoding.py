"""A file's text and its way back into bytes, nothing of it lost (A5.5)."""

import codecs
from typing import Final

import msgspec

from towline_agent.errors import ToolInputInvalid
from towline_agent.workspaces.text import decode_text

__all__ = ["SourceText", "read_source"]

_MARKS: Final = {
    "utf-16": ((codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be")),
    "utf-32": ((codecs.BOM_UTF32_LE, "utf-32-le"), (codecs.BOM_UTF32_BE, "utf-32-be")),
    "utf-8-sig": ((codecs.BOM_UTF8, "utf-8"),),
}
"""What stands in front of a text, and how the rest is written."""


class SourceText(msgspec.Struct, frozen=True):
    """A file's text and how it is written."""

    text: str
    """The text, with the line ends it has."""
    codec: str
    """How it is written."""
    mark: bytes = b""
    """What stands in front of it."""

    def encode(self, text: str, path: str) -> bytes:
        """Another text in the same way of writing.

        Args:
            text: The text.
            path: The file, for the message.

        Raises:
            ToolInputInvalid: It holds what this encoding can't.
        """
        try:
            return self.mark + text.encode(self.codec)
        except UnicodeEncodeError as error:
            char = text[error.start]
            raise ToolInputInvalid(
                f"{path!r} is written in {self.codec}, which has no {char!r}; use other signs."
            ) from error


def read_source(data: bytes, path: str) -> SourceText:
    """A file's text, if it can be changed and written back without loss.

    Raises:
        ToolInputInvalid: It is binary (A5.7), or bytes of it have no meaning.
    """
    decoded = decode_text(data)
    if decoded is None:
        raise ToolInputInvalid(f"{path!r} is a binary file; it can't be edited as text.")
    text, encoding = decoded
    mark, codec = b"", encoding
    for start, name in _MARKS.get(encoding, ()):
        if data.startswith(start):
            mark, codec = start, name
    source = SourceText(text, codec, mark)
    try:
        is_whole = source.encode(text, path) == data
    except ToolInputInvalid:
        is_whole = False
    if not is_whole:
        raise ToolInputInvalid(
            f"{path!r} holds bytes that mean nothing in {encoding}, so an edit would damage it; "
            "change it with a program."
        )
    return source
