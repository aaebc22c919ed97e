"""What bytes are, told from the bytes alone: neither a name nor a client's word counts. Pure."""

import codecs
import re
from typing import Final

__all__ = ["BINARY", "PDF", "PICTURES", "TEXT", "Sniffer", "sniff"]

BINARY: Final = "application/octet-stream"
"""What is none of the kinds below."""
PDF: Final = "application/pdf"
"""A document that models read."""
PICTURES: Final = frozenset({"image/gif", "image/jpeg", "image/png", "image/webp"})
"""Pictures that models see, and that a browser may show without running anything."""
TEXT: Final = "text/plain"
"""Text in UTF-8, whatever language it is in: HTML, SVG and scripts are text here, never pages."""

_HEAD_BYTES: Final = 16
"""What the longest row below looks at."""
_MAGIC: Final[tuple[tuple[bytes, bytes, str], ...]] = (
    (b"\x89PNG\r\n\x1a\n", b"", "image/png"),
    (b"\xff\xd8\xff", b"", "image/jpeg"),
    (b"GIF87a", b"", "image/gif"),
    (b"GIF89a", b"", "image/gif"),
    (b"RIFF", b"WEBP", "image/webp"),
    (b"RIFF", b"WAVE", "audio/wav"),
    (b"%PDF-", b"", PDF),
    (b"OggS", b"", "audio/ogg"),
    (b"fLaC", b"", "audio/flac"),
    (b"ID3", b"", "audio/mpeg"),
    (b"PK\x03\x04", b"", "application/zip"),
)
"""What stands at the beginning, what stands at byte 8, and what that means."""

_NO_TEXT: Final = re.compile("[\x00-\x06\x0e-\x1a\x1c-\x1f\x7f]")
"""Control characters that no text holds; a bell, an escape and white space may stand in a log."""


class Sniffer:
    """Looks at bytes as they come."""

    def __init__(self) -> None:
        self._head = b""
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._is_text = True

    def feed(self, data: bytes) -> None:
        """Look at the next bytes."""
        if len(self._head) < _HEAD_BYTES:
            self._head += data[: _HEAD_BYTES - len(self._head)]
        self._read(data, final=False)

    def media_type(self) -> str:
        """What they were, all of them."""
        for start, inner, kind in _MAGIC:
            if self._head.startswith(start) and self._head[8:].startswith(inner):
                return kind
        self._read(b"", final=True)
        return TEXT if self._is_text else BINARY

    def _read(self, data: bytes, *, final: bool) -> None:
        if not self._is_text:
            return
        try:
            self._is_text = _NO_TEXT.search(self._decoder.decode(data, final)) is None
        except UnicodeDecodeError:
            self._is_text = False


def sniff(data: bytes) -> str:
    """What whole bytes are."""
    sniffer = Sniffer()
    sniffer.feed(data)
    return sniffer.media_type()
