"""A program's output: bytes as they come, text with its middle cut when it is too long (R49)."""

import codecs
from collections import deque
from collections.abc import Callable
from typing import Final

__all__ = ["OUTPUT_MAX_CHARS", "STREAM_MAX_CHARS", "OutputCut"]

OUTPUT_MAX_CHARS: Final = 50_000
"""Characters kept of one program's output (A4.19): half from its head, half from its tail."""
STREAM_MAX_CHARS: Final = 200_000
"""Characters shown while it runs: who watches reads no more, and a program can write for ever."""

_MARKER_CHARS: Final = 64
"""Room for the marker in the middle."""
_STREAM_END: Final = "\n[… more output; its end is shown when the program has ended …]\n"


class OutputCut:
    """Takes output in pieces and keeps its head and its tail.

    Bytes are read as UTF-8; what is none becomes U+FFFD, and a character cut over two pieces stays
    whole.

    Args:
        on_output: Called with each piece of text as it comes, up to `stream_max` characters.
        limit: Characters that `text` has at most, the marker counted.
        stream_max: Characters after which `on_output` is told of no more.
    """

    def __init__(
        self,
        on_output: Callable[[str], None],
        *,
        limit: int = OUTPUT_MAX_CHARS,
        stream_max: int = STREAM_MAX_CHARS,
    ) -> None:
        self._on_output = on_output
        self._limit = limit
        self._stream_left = stream_max
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._head: list[str] = []
        self._head_chars = 0
        self._tail: deque[str] = deque()
        self._tail_chars = 0
        self._total = 0

    def feed(self, data: bytes, *, final: bool = False) -> None:
        """Take the next bytes; `final` ends a character that is cut off."""
        text = self._decoder.decode(data, final)
        if text:
            self._keep(text)
            self._show(text)

    @property
    def truncated(self) -> bool:
        """Whether something is left out of `text`."""
        return self._total > self._limit

    @property
    def text(self) -> str:
        """The output so far, cut in the middle when it is too long."""
        kept = "".join((*self._head, *self._tail))
        if not self.truncated:
            return kept
        keep = max(0, self._limit - _MARKER_CHARS)
        head = keep // 2
        marker = f"\n[… {self._total - keep} characters left out …]\n"
        return kept[:head] + marker + kept[len(kept) - (keep - head) :]

    def _keep(self, text: str) -> None:
        self._total += len(text)
        first = text[: self._limit - self._head_chars]
        if first:
            self._head.append(first)
            self._head_chars += len(first)
        rest = text[len(first) :]
        if rest:
            self._tail.append(rest)
            self._tail_chars += len(rest)
        while self._tail and self._tail_chars - len(self._tail[0]) >= self._limit:
            self._tail_chars -= len(self._tail.popleft())

    def _show(self, text: str) -> None:
        if self._stream_left <= 0:
            return
        piece = text[: self._stream_left]
        self._stream_left -= len(piece)
        self._on_output(piece if self._stream_left > 0 else piece + _STREAM_END)
