"""Writing down an answer while it comes: pieces out at once, whole blocks at the end.

All dialects use it. Texts may hold halves of characters (`surrogates`); none leaves here.
"""

from collections.abc import Callable
from typing import Final

from towline_agent.providers.base import ArgumentsPiece, Piece, TextPiece, ThinkingPiece
from towline_agent.providers.surrogates import REPLACEMENT, mend, split_half
from towline_protocol import Block, CallId, Text, Thinking, ToolCall

__all__ = ["ANSWER_MAX_CHARS", "AnswerWriter", "OpenCall"]

ANSWER_MAX_CHARS: Final = 262_144
"""Characters of one answer, all its text, thinking and calls together: 1 MiB of UTF-8 at most. No
model writes as much; one that does has lost its end."""


class OpenCall:
    """A call that is still being written."""

    __slots__ = ("half", "id", "index", "name", "parts", "place", "signature")

    def __init__(self, place: int) -> None:
        self.place = place
        """Its block's place in the answer."""
        self.index: int | None = None
        """The provider's number of it."""
        self.id = ""
        """The provider's id of it."""
        self.name = ""
        """The tool's name as far as it came."""
        self.parts: list[str] = []
        """The pieces of its arguments."""
        self.half = ""
        """The first half of a character at the end of the last piece."""
        self.signature: str | None = None
        """The provider's proof that belongs to it."""


class _Words:
    """A block of text or of thinking."""

    __slots__ = ("half", "parts", "place", "thinking")

    def __init__(self, place: int, thinking: bool) -> None:
        self.place = place
        self.thinking = thinking
        self.parts: list[str] = []
        self.half = ""


class AnswerWriter:
    """The blocks of one answer, in the order in which they begin.

    Args:
        on_piece: Told of each piece, never empty, in order.
    """

    def __init__(self, on_piece: Callable[[Piece], None]) -> None:
        self.mending = False
        """Set once a text may hold half a character; until then nothing looks for one."""
        self.room = ANSWER_MAX_CHARS
        """Characters that may still come. Once below 0 the answer is too long: the piece that led
        there, and all that come after it, are neither told nor kept."""
        self._on_piece = on_piece
        self._blocks: list[_Words | OpenCall] = []
        self._open: _Words | None = None

    def say(self, text: str) -> None:
        """Add to the text; what was thought or called before stays as it is."""
        self.room -= len(text)
        if self.room < 0:
            return
        words = self._open
        if words is None or words.thinking:
            words = self._begin(thinking=False)
        if self.mending:
            text, words.half = split_half(words.half + text)
        if text:
            words.parts.append(text)
            self._on_piece(TextPiece(words.place, text))

    def think(self, text: str) -> None:
        """Add to the thinking."""
        self.room -= len(text)
        if self.room < 0:
            return
        words = self._open
        if words is None or not words.thinking:
            words = self._begin(thinking=True)
        if self.mending:
            text, words.half = split_half(words.half + text)
        if text:
            words.parts.append(text)
            self._on_piece(ThinkingPiece(words.place, text))

    def open_call(self) -> OpenCall:
        """Begin a call."""
        self._close_words()
        call = OpenCall(len(self._blocks))
        self._blocks.append(call)
        return call

    def add_arguments(self, call: OpenCall, text: str) -> None:
        """Add to a call's arguments; calls may come interleaved."""
        self.room -= len(text)
        if self.room < 0:
            return
        if self.mending:
            text, call.half = split_half(call.half + text)
        if text:
            call.parts.append(text)
            self._on_piece(ArgumentsPiece(call.place, text))

    def end(self) -> None:
        """Say that nothing more comes: halves that are still open are replaced."""
        self._close_words()
        for block in self._blocks:
            if isinstance(block, OpenCall) and block.half:
                block.half = ""
                self.mending = False
                self.add_arguments(block, REPLACEMENT)

    @property
    def streamed(self) -> bool:
        """Whether a piece was told."""
        return any(block.parts for block in self._blocks)

    @property
    def calls(self) -> bool:
        """Whether there is a call."""
        return any(isinstance(block, OpenCall) for block in self._blocks)

    def words(self) -> tuple[Block, ...]:
        """What was said and thought, without calls: all that a broken answer keeps."""
        return tuple(_words_block(block) for block in self._blocks if isinstance(block, _Words))

    def content(self, *, cut: bool) -> tuple[Block, ...]:
        """The whole answer.

        Args:
            cut: The answer hit a length limit: then a call without arguments is no call without
                parameters, and stays as broken as it came (A2.21).
        """
        empty = "" if cut else "{}"
        return tuple(
            _words_block(block) if isinstance(block, _Words) else _call_block(block, empty)
            for block in self._blocks
        )

    def _begin(self, *, thinking: bool) -> _Words:
        self._close_words()
        words = self._open = _Words(len(self._blocks), thinking)
        self._blocks.append(words)
        return words

    def _close_words(self) -> None:
        """A half never waits for its other half in another block."""
        words = self._open
        self._open = None
        if words is not None and words.half:
            words.half = ""
            words.parts.append(REPLACEMENT)
            piece = ThinkingPiece if words.thinking else TextPiece
            self._on_piece(piece(words.place, REPLACEMENT))


def _words_block(words: _Words) -> Block:
    text = "".join(words.parts)
    return Thinking(text=text) if words.thinking else Text(text=text)


def _call_block(call: OpenCall, empty: str) -> ToolCall:
    return ToolCall(
        id=CallId(""),
        name=mend(call.name),
        arguments="".join(call.parts) or empty,
        wire_id=mend(call.id) or None,
        signature=call.signature and mend(call.signature),
    )
