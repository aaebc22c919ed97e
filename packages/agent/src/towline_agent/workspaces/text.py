"""A file's text, and the way back: its encoding, byte order mark and line ends are kept (A5.5)."""

import codecs
import re
from typing import Any, Final

import msgspec

from towline_agent.errors import ToolError
from towline_agent.workspaces.lines import compare_lines

__all__ = ["TextFile", "decode", "decode_text"]

_PROBE_BYTES: Final = 8192
"""Looked at for what no text holds."""
_SCAN_SIZE: Final = 65_536
"""Bytes looked at in one go: a call into C keeps all other threads waiting."""
_CP1252: Final = "".join(
    bytes([byte]).decode("cp1252", "ignore") or chr(byte) for byte in range(256)
)
"""What each byte means. The five that mean nothing stand for the control character of the same
number, as browsers have it, so that every file can be written back."""
_CP1252_BACK: Final = codecs.charmap_build(_CP1252)
_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8", "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32-le", "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32-be", "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16-le", "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16-be", "utf-16"),
)
"""What a file may begin with, the longer marks before those they begin with; how the rest of it is
read, and how that is called."""
_ENDS: Final = re.compile(r"\r\n|\n|\r")


class TextFile(msgspec.Struct, frozen=True, kw_only=True):
    """A text as a model reads and edits it, with what its file looks like.

    ```python
    file = decode(data)
    assert file is not None and file.encode() == data
    changed = file.encode(file.text.replace("old", "new"))
    ```
    """

    text: str
    """Its lines, each ended by `\\n` whatever ends them in the file."""
    encoding: str
    """`utf-8`, `utf-16-le`, `utf-16-be`, `utf-32-le`, `utf-32-be` or `cp1252`."""
    newline: str = "\n"
    """What ends most of its lines, so new ones too: `\\n`, `\\r\\n` or `\\r`."""
    bom: bytes = b""
    """The mark it begins with, if any."""
    ends: tuple[str, ...] = ()
    """What ends each line, if that is not the same for all."""
    exact: bool = True
    """Whether `text` tells every byte; what holds bytes that its encoding does not know can be
    shown but not written back."""

    def encode(self, text: str | None = None) -> bytes:
        """The file's bytes with this text in it.

        Lines that stay keep their ends; new ones get `newline`. Any line end in the text will do.

        Args:
            text: The new text; `None` for the one it has, which gives the same bytes again.

        Raises:
            ToolError: The encoding has no sign for a character of it, or the file can't be written
                back.
        """
        if not self.exact:
            raise ToolError(
                f"The file holds bytes that are no {self.encoding}, so it can't be written back "
                "without losing them; change it with a program."
            )
        text = self.text if text is None else _ENDS.sub("\n", text)
        if self.ends:
            text = self._with_own_ends(text)
        elif self.newline != "\n":
            text = text.replace("\n", self.newline)
        try:
            return self.bom + _encode(text, self.encoding)
        except UnicodeEncodeError as error:
            sign = error.object[error.start]
            raise ToolError(
                f"The file's encoding {self.encoding} has no sign for {sign!r} "
                f"(U+{ord(sign):04X}); leave it out, or have a program convert the file to UTF-8 "
                "first."
            ) from error

    def _with_own_ends(self, text: str) -> str:
        old = self.text.split("\n")
        new = text.split("\n")
        ends = [self.newline] * (len(new) - 1)
        for tag, i, j, k, m in compare_lines(old, new):
            if tag in ("equal", "replace"):
                count = min(j - i, m - k, len(self.ends) - i, len(ends) - k)
                ends[k : k + count] = self.ends[i : i + count]
        for place in range(len(ends) - 1):
            if ends[place] == "\r" and not new[place + 1] and ends[place + 1] == "\n":
                ends[place] = "\r\n"  # or both together would be one end
        pieces = [line + end for line, end in zip(new, (*ends, ""), strict=True)]
        return "".join(pieces)


def decode(raw: bytes) -> TextFile | None:
    """A file's text, and how to write it back; `None` for a file that is no text (A5.7).

    A file without a mark is UTF-8 if it can be, else `cp1252`, in which every byte means something.
    """
    found = _decode(raw)
    if found is None:
        return None
    text, encoding, bom, exact = found
    ends = _ENDS.findall(text) if "\r" in text else ()
    kinds = set(ends)
    newline = max(("\n", "\r\n", "\r"), key=ends.count) if kinds else "\n"
    return TextFile(
        text=_ENDS.sub("\n", text) if kinds else text,
        encoding=encoding,
        newline=newline,
        bom=bom,
        ends=tuple(ends) if len(kinds) > 1 else (),
        exact=exact,
    )


def decode_text(raw: bytes) -> tuple[str, str] | None:
    """A file's text with its own line ends, and how its encoding is called; `None` for no text."""
    found = _decode(raw)
    if found is None:
        return None
    text, encoding, bom, _ = found
    names = {mark: name for mark, _, name in _MARKS}
    return text, names[bom] if bom else encoding


def _decode(raw: bytes) -> tuple[str, str, bytes, bool] | None:
    for mark, encoding, _ in _MARKS:
        if raw.startswith(mark):
            rest = raw[len(mark) :]
            try:
                return rest.decode(encoding), encoding, mark, True
            except UnicodeDecodeError:
                return _decode_leniently(rest, encoding), encoding, mark, False
    if b"\0" in raw[:_PROBE_BYTES]:
        return None
    try:
        return raw.decode("utf-8"), "utf-8", b"", True
    except UnicodeDecodeError:
        table: Any = _CP1252  # a text is a table too, and the fastest one
        return codecs.charmap_decode(raw, "strict", table)[0], "cp1252", b"", True


def _decode_leniently(raw: bytes, encoding: str) -> str:
    """In pieces: each byte that has no meaning costs a call, and there may be millions of them."""
    pieces = (raw[at : at + _SCAN_SIZE] for at in range(0, len(raw), _SCAN_SIZE))
    return "".join(codecs.iterdecode(pieces, encoding, "replace"))


def _encode(text: str, encoding: str) -> bytes:
    if encoding == "cp1252":
        return codecs.charmap_encode(text, "strict", _CP1252_BACK)[0]
    return text.encode(encoding)
