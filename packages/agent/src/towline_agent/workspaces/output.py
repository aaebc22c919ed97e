"""A program's output: its head and its tail (R49), and what is shown of it while it runs."""

from collections import deque
from collections.abc import Callable
from typing import Final

from towline_agent.workspaces.terminal import TerminalText

__all__ = ["OUTPUT_MAX_CHARS", "STREAM_MAX_CHARS", "OutputCut", "StreamCut", "TextCut"]

OUTPUT_MAX_CHARS: Final = 50_000
"""Characters kept of one program's output (A4.19): half from its head, half from its tail."""
STREAM_MAX_CHARS: Final = 200_000
"""Characters shown while it runs: who watches reads no more, and a program can write for ever."""

_MARKER_CHARS: Final = 64
"""Room for the marker in the middle."""
_STREAM_END: Final = "\n[… more output; its end is shown when the program has ended …]\n"
_REWRITE_S: Final = 1.0
"""How often a line that is rewritten, such as a progress bar, is shown anew."""


class TextCut:
    """Keeps the head and the tail of a text that comes in pieces.

    Args:
        limit: Characters that are kept at most, the marker counted.
    """

    def __init__(self, limit: int = OUTPUT_MAX_CHARS) -> None:
        self._limit = limit
        self._head: list[str] = []
        self._head_chars = 0
        self._tail: deque[str] = deque()
        self._tail_chars = 0
        self.total = 0
        """Characters that came."""

    def add(self, text: str) -> None:
        """Take the next piece."""
        self.total += len(text)
        first = text[: self._limit - self._head_chars]
        if first:
            self._head.append(first)
            self._head_chars += len(first)
        rest = text[len(first) :]
        if rest:
            self._tail.append(rest[-self._limit :])
            self._tail_chars += len(self._tail[-1])
        while self._tail and self._tail_chars - len(self._tail[0]) >= self._limit:
            self._tail_chars -= len(self._tail.popleft())

    def cut(self, end: str = "") -> str:
        """All of it, with `end` behind it, cut in the middle when it is too long."""
        kept = "".join((*self._head, *self._tail, end))
        total = self.total + len(end)
        if total <= self._limit:
            return kept
        keep = max(0, self._limit - _MARKER_CHARS)
        head = keep // 2
        marker = f"\n[… {total - keep} characters left out …]\n"
        return kept[:head] + marker + kept[len(kept) - (keep - head) :]

    def is_cut(self, end: str = "") -> bool:
        """Whether something is left out of `cut(end)`."""
        return self.total + len(end) > self._limit


class OutputCut:
    """Takes output in pieces, makes it plain, and keeps its head and its tail.

    Args:
        on_output: Called with each piece of text to show. It only ever adds: of a line that is
            rewritten a newer state comes on a line of its own, once a second at most.
        limit: Characters that `text` has at most, the marker counted.
    """

    def __init__(self, on_output: Callable[[str], None], *, limit: int = OUTPUT_MAX_CHARS) -> None:
        self._on_output = on_output
        self._terminal = TerminalText()
        self._cut = TextCut(limit)
        self._waiting: list[str] = []
        self._shown = ""
        self._shown_s = 0.0

    def feed(self, data: bytes, *, final: bool = False) -> None:
        """Take the next bytes; `final` ends what is cut off."""
        done = self._terminal.feed(data, final=final)
        if done:
            self._cut.add(done)
            self._waiting.append(done)

    def show(self, now_s: float) -> None:
        """Show what has come since the last time.

        Args:
            now_s: Seconds on any clock that never goes back.
        """
        line = self._terminal.line
        text = "".join((*self._waiting, line))
        grows = text.startswith(self._shown)
        if not self._waiting and not grows and now_s - self._shown_s < _REWRITE_S:
            return  # a bar that moves: its next state will do
        self._waiting.clear()
        fresh = text[len(self._shown) :] if grows else f"\n{text}"
        self._shown = line
        if fresh:
            self._shown_s = now_s
            self._on_output(fresh)

    @property
    def truncated(self) -> bool:
        """Whether something is left out of `text`."""
        return self._cut.is_cut(self._terminal.line)

    @property
    def text(self) -> str:
        """The output so far, cut in the middle when it is too long."""
        return self._cut.cut(self._terminal.line)


class StreamCut:
    """Passes the beginning of a stream on, and says once where it stops.

    Args:
        on_output: Called with each piece of text.
        limit: Characters after which it is told of no more.
    """

    def __init__(self, on_output: Callable[[str], None], limit: int = STREAM_MAX_CHARS) -> None:
        self._on_output = on_output
        self._left = limit

    def add(self, text: str) -> None:
        """Take the next piece."""
        if self._left <= 0:
            return
        piece = text[: self._left]
        self._left -= len(piece)
        self._on_output(piece if self._left > 0 else piece + _STREAM_END)
