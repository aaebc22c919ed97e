"""What a program writes for a terminal, as plain text that a model and a log can hold."""

import codecs
import re
from typing import Final

__all__ = ["LINE_CHARS", "TerminalText"]

LINE_CHARS: Final = 4096
"""Characters of a line that is not at its end yet and may still be rewritten; a terminal is far
narrower, and what is longer is no progress bar."""

_ESCAPE_CHARS: Final = 4096
"""Of a sequence that is not at its end yet; a longer one is none."""

_ODD: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""What plain text has none of. Most output has none either, and is not looked at twice."""
_COLUMN_ONE: Final = re.compile(r"\x1b\[[01]?G")
_ESCAPE: Final = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # colours, cursor
    r"|\x1b\][^\x07\x1b\n]*(?:\x07|\x1b\\)"  # titles, links
    r"|\x1b[PX^_][^\x1b\n]*\x1b\\"
    r"|\x1b[ -/]*[0-~]"
)
_OPEN_ESCAPE: Final = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*|\][^\x07\x1b\n]*\x1b?|[PX^_][^\x1b\n]*\x1b?|[ -/]*)\Z"
)
_NOT_SHOWN: Final = {
    number: None for number in (*range(0x20), *range(0x7F, 0xA0)) if chr(number) not in "\t\n\r\b\0"
} | {0: "\ufffd"}
"""A NUL is shown, since it stands between names; bells and the like are not."""


class TerminalText:
    """Takes bytes in pieces and gives text in whole lines.

    UTF-8 is read whatever the pieces; what is none becomes U+FFFD, as a NUL does. Colours and all
    other escape sequences are left out. A line that carriage returns or backspaces rewrite keeps
    its last state, as a terminal would show it in the end.
    """

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._escape = ""
        self._line = ""

    @property
    def line(self) -> str:
        """The last line as it stands, not at its end yet; not among what `feed` gave."""
        return self._line.removesuffix("\r")

    def feed(self, data: bytes, *, final: bool = False) -> str:
        """Take the next bytes and get the lines that are whole now; with `final` all that is left.

        A line over `LINE_CHARS` is given in pieces.
        """
        text = self._decoder.decode(data, final)
        if self._escape or _ODD.search(text):
            text = self._plain(self._escape + text, final=final)
        text = self._line + text
        end = len(text) if final else text.rfind("\n") + 1
        done, self._line = text[:end], text[end:]
        if "\r" in done or "\b" in done:
            done = "\n".join(map(_last_state, done.split("\n")))
        if "\r" in self._line or "\b" in self._line:
            more = "\r" if self._line.endswith("\r") else ""
            self._line = _last_state(self._line) + more
        if len(self._line) > LINE_CHARS:
            done += self._line.replace("\r", "\n")
            self._line = ""
        return done

    def _plain(self, text: str, *, final: bool) -> str:
        """Without escape sequences; one that the piece cuts off is kept for the next."""
        self._escape = ""
        text = text.replace("\x9b", "\x1b[")
        if not final:
            last = text.rfind("\x1b")
            before = text.rfind(
                "\x1b", 0, max(last, 0)
            )  # a title may end with an escape of its own
            for start in (before, last):
                if start >= 0 and _OPEN_ESCAPE.match(text, start):
                    if len(text) - start <= _ESCAPE_CHARS:
                        text, self._escape = text[:start], text[start:]
                    break
        text = _ESCAPE.sub("", _COLUMN_ONE.sub("\r", text))
        return text.translate(_NOT_SHOWN)


def _last_state(line: str) -> str:
    """What a terminal shows of a line in the end."""
    line = line.rstrip("\r").rpartition("\r")[2]
    if "\b" not in line:
        return line
    shown: list[str] = []
    for char in line:
        if char != "\b":
            shown.append(char)
        elif shown:
            shown.pop()
    return "".join(shown)
