"""A text as a model sees it, over one whose line ends may be of any kind (A5.5)."""

import re
from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate
from typing import Final

import msgspec

__all__ = ["LineView", "Span", "plain_ends"]

_END: Final = re.compile(r"\r\n|\n|\r")


class Span(msgspec.Struct, frozen=True):
    """A stretch of a view's text, and what is to stand in its place."""

    start: int
    """Its first character."""
    end: int
    """The one behind its last."""
    new: str
    r"""The new words; every line end of them is a `\n`."""


def plain_ends(text: str) -> str:
    r"""A text with `\n` for every line end."""
    return text if "\r" not in text else text.replace("\r\n", "\n").replace("\r", "\n")


class LineView:
    r"""A text whose lines all end in `\n`, tied to the raw one that it stands for.

    What is not touched keeps its own line ends; new words get the one that is used round them.

    Args:
        raw: The text as it is in the file.
    """

    def __init__(self, raw: str) -> None:
        self.raw = raw
        """The text as it is in the file."""
        self.text = plain_ends(raw)
        r"""The same with `\n` for every line end."""
        self._pairs: list[int] = []
        if len(self.text) != len(raw):
            found = re.finditer("\r\n", raw)
            self._pairs = [pair.start() - before for before, pair in enumerate(found)]

    def splice(self, spans: Sequence[Span]) -> str:
        """The raw text with these put in.

        Args:
            spans: In order, none over another.
        """
        pieces: list[str] = []
        at = 0
        for span in spans:
            start, end = self._raw_place(span.start), self._raw_place(span.end)
            pieces += (self.raw[at:start], self._with_ends(span.new, start, end))
            at = end
        return "".join((*pieces, self.raw[at:]))

    def line_starts(self) -> list[int]:
        """Where each line of `text` begins; a last one without an end counts, an empty one not."""
        lines = self.text.splitlines(keepends=True) if self._is_plain() else self._lines()
        return [0, *accumulate(map(len, lines))][: len(lines)]

    def _is_plain(self) -> bool:
        """Whether Python's own line ends in it are line ends of ours: it knows seven more."""
        return not re.search("[\v\f\x1c-\x1e\x85\u2028\u2029]", self.text)

    def _lines(self) -> list[str]:
        lines = [f"{line}\n" for line in self.text.split("\n")]
        lines[-1] = lines[-1][:-1]
        return lines if lines[-1] else lines[:-1]

    def _raw_place(self, place: int) -> int:
        return place + bisect_left(self._pairs, place)

    def _with_ends(self, new: str, start: int, end: int) -> str:
        new = plain_ends(new)
        if "\n" not in new or "\r" not in self.raw:
            return new
        return new.replace("\n", self._end_near(start, end))

    def _end_near(self, start: int, end: int) -> str:
        """The line end inside a stretch of the raw text, else the one before, else one after."""
        inside = _END.search(self.raw, start, end)
        if inside is not None:
            return inside[0]
        before = max(self.raw.rfind("\n", 0, start), self.raw.rfind("\r", 0, start))
        if before >= 0:
            pair = self.raw[before - 1 : before + 1] if before else ""
            return pair if pair == "\r\n" else self.raw[before]
        after = _END.search(self.raw, end)
        return "\n" if after is None else after[0]
