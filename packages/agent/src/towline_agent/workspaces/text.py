"""A file's text: its encoding found out."""

import codecs
from typing import Any, Final

__all__ = ["decode_text"]

_PROBE_BYTES: Final = 8192
"""Looked at for what no text holds."""
_SCAN_SIZE: Final = 65_536
"""Bytes looked at in one go: a call into C keeps all other threads waiting."""
_CP1252: Final = bytes(range(256)).decode("cp1252", "replace")
"""What each byte means; those that mean nothing have their sign already, so none costs a call."""
_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
"""What a file may begin with, the longer marks before those they begin with."""


def decode_text(raw: bytes) -> tuple[str, str] | None:
    """A file's text and its encoding; `None` for a file that is no text (A5.7)."""
    for mark, encoding in _MARKS:
        if raw.startswith(mark):
            return _decode_leniently(raw, encoding), encoding
    if b"\0" in raw[:_PROBE_BYTES]:
        return None
    try:
        return raw.decode("utf-8"), "utf-8"
    except UnicodeDecodeError:
        table: Any = _CP1252  # a text is a table too, and the fastest one
        return codecs.charmap_decode(raw, "strict", table)[0], "cp1252"


def _decode_leniently(raw: bytes, encoding: str) -> str:
    """In pieces: each byte that has no meaning costs a call, and there may be millions of them."""
    pieces = (raw[at : at + _SCAN_SIZE] for at in range(0, len(raw), _SCAN_SIZE))
    return "".join(codecs.iterdecode(pieces, encoding, "replace"))
