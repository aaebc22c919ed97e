"""Writing down an answer while it comes: pieces out at once, whole blocks at the end.

All dialects use it. Texts may hold halves of characters (`surrogates`); none leaves here.
"""

from collections.abc import Callable
from typing import Final

from towline_agent.providers.base import ArgumentsPiece, Piece, TextPiece, ThinkingPiece
from towline_agent.providers.surrogates import REPLACEMENT, mend, split_half
from towline_protocol import Block, CallId, Text, Thinking, ToolCall

__all__ = [
    "ANSWER_MAX_BLOCKS",
    "ANSWER_MAX_CALLS",
    "ANSWER_MAX_CHARS",
    "NOTICE_MAX_CHARS",
    "STEP_MAX_NOTICES",
    "AnswerWriter",
    "Notices",
    "OpenCall",
    "OpenWords",
]

ANSWER_MAX_CHARS: Final = 262_144
"""Characters of one answer, all its text, thinking and calls together: 1 MiB of UTF-8 at most. No
model writes as much; one that does has lost its end."""
ANSWER_MAX_BLOCKS: Final = 4096
"""Blocks of one answer. Long answers with many cited passages have some hundreds."""
ANSWER_MAX_CALLS: Final = 1024
"""Calls of one answer; models ask for dozens at most."""
STEP_MAX_NOTICES: Final = 100
"""Notices of one step; nobody reads more."""
NOTICE_MAX_CHARS: Final = 200
"""Characters of a notice; a vendor's words in it may be of any length."""


class Notices:
    """What was odd about a step, each thing once: so many, and each so long, as people read."""

    def __init__(self) -> None:
        self._all: dict[str, None] = {}

    def add(self, notice: str) -> None:
        """Take in a notice; what is too long is cut, and what is too much left out."""
        if len(self._all) < STEP_MAX_NOTICES:
            long = len(notice) > NOTICE_MAX_CHARS
            self._all[f"{notice[: NOTICE_MAX_CHARS - 1]}…" if long else notice] = None

    def all(self) -> tuple[str, ...]:
        """The notices, in the order in which they came."""
        return tuple(self._all)


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


class OpenWords:
    """A block of text or of thinking that is still being written."""

    __slots__ = ("half", "parts", "place", "redacted", "signature", "thinking")

    def __init__(self, place: int, thinking: bool) -> None:
        self.place = place
        """Its block's place in the answer."""
        self.thinking = thinking
        """Whether it is thinking."""
        self.parts: list[str] = []
        """The pieces of it."""
        self.half = ""
        """The first half of a character at the end of the last piece."""
        self.signature: list[str] = []
        """The pieces of the provider's proof that a thought is its own."""
        self.redacted = False
        """Whether the provider hides the words of a thought."""


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
        self.limit = f"{ANSWER_MAX_CHARS} characters"
        """What the answer has more of than it may, once `room` is below 0."""
        self.calls = 0
        """Calls so far."""
        self._on_piece = on_piece
        self._blocks: list[OpenWords | OpenCall | Block] = []
        self._open: OpenWords | None = None

    @property
    def streamed(self) -> bool:
        """Whether a piece was told."""
        return any(
            isinstance(block, OpenWords | OpenCall) and block.parts for block in self._blocks
        )

    def say(self, text: str) -> None:
        """Add to the text; what was thought or called before stays as it is."""
        room = self.room = self.room - len(text)
        if room < 0:
            return
        words = self._open
        if words is None or words.thinking:
            words = self.open_words(thinking=False)
            if self.room < 0:
                return
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
            words = self.open_words(thinking=True)
            if self.room < 0:
                return
        if self.mending:
            text, words.half = split_half(words.half + text)
        if text:
            words.parts.append(text)
            self._on_piece(ThinkingPiece(words.place, text))

    def open_words(self, *, thinking: bool) -> OpenWords:
        """Begin a block of text or thinking, for dialects that say where one begins."""
        self.close_words()
        words = self._open = OpenWords(len(self._blocks), thinking)
        self._take_place(words)
        return words

    def add_words(self, words: OpenWords, text: str) -> None:
        """Add to a block of text or thinking; blocks may come interleaved."""
        self.room -= len(text)
        if self.room < 0:
            return
        if self.mending:
            text, words.half = split_half(words.half + text)
        if text:
            words.parts.append(text)
            self._on_piece((ThinkingPiece if words.thinking else TextPiece)(words.place, text))

    def sign(self, words: OpenWords, signature: str) -> None:
        """Add to the proof that belongs to a thought."""
        self.room -= len(signature)
        if self.room >= 0:
            words.signature.append(signature)

    def add_block(self, block: Block, size: int) -> None:
        """Add a whole block that nothing is told of, such as a vendor's own.

        Args:
            block: The block.
            size: How many characters it counts for.
        """
        self.close_words()
        self.room -= size
        if self.room >= 0:
            self._take_place(block)

    def open_call(self) -> OpenCall:
        """Begin a call."""
        self.close_words()
        call = OpenCall(len(self._blocks))
        if self.calls >= ANSWER_MAX_CALLS:
            self._stop(f"{ANSWER_MAX_CALLS} calls")
        elif self._take_place(call):
            self.calls += 1
        return call

    def add_arguments(self, call: OpenCall, text: str) -> None:
        """Add to a call's arguments; calls may come interleaved."""
        room = self.room = self.room - len(text)
        if room < 0:
            return
        if self.mending:
            text, call.half = split_half(call.half + text)
        if text:
            call.parts.append(text)
            self._on_piece(ArgumentsPiece(call.place, text))

    def end(self) -> None:
        """Say that nothing more comes: halves that are still open are replaced."""
        self.close_words()
        for block in self._blocks:
            if isinstance(block, OpenCall) and block.half:
                block.half = ""
                self.mending = False
                self.add_arguments(block, REPLACEMENT)
            elif isinstance(block, OpenWords) and block.half:
                block.half = ""
                self.mending = False
                self.add_words(block, REPLACEMENT)

    def words(self) -> tuple[Block, ...]:
        """What was said and thought, without calls: all that a broken answer keeps."""
        return tuple(_words_block(block) for block in self._blocks if isinstance(block, OpenWords))

    def content(self, *, cut: bool) -> tuple[Block, ...]:
        """The whole answer.

        Args:
            cut: The answer hit a length limit: then a call without arguments is no call without
                parameters, and stays as broken as it came (A2.21).
        """
        empty = "" if cut else "{}"
        return tuple([_whole(block, empty) for block in self._blocks])

    def close_words(self) -> None:
        """End the open block of words: a half never waits for its other half in another block."""
        words = self._open
        self._open = None
        if words is not None and words.half:
            words.half = ""
            words.parts.append(REPLACEMENT)
            piece = ThinkingPiece if words.thinking else TextPiece
            self._on_piece(piece(words.place, REPLACEMENT))

    def _take_place(self, block: OpenWords | OpenCall | Block) -> bool:
        """Put a block behind the others; whether there was a place for it."""
        if len(self._blocks) >= ANSWER_MAX_BLOCKS:
            self._stop(f"{ANSWER_MAX_BLOCKS} blocks")
            return False
        self._blocks.append(block)
        return True

    def _stop(self, limit: str) -> None:
        """Say that the answer is too long, by another measure than its characters."""
        if self.room >= 0:
            self.limit = limit
        self.room = min(self.room, -1)


def _whole(block: OpenWords | OpenCall | Block, empty: str) -> Block:
    if isinstance(block, OpenWords):
        return _words_block(block)
    return _call_block(block, empty) if isinstance(block, OpenCall) else block


def _words_block(words: OpenWords) -> Block:
    text = "".join(words.parts)
    if not words.thinking:
        return Text(text=text)
    signature = mend("".join(words.signature)) or None
    return Thinking(text=text, signature=signature, redacted=words.redacted)


def _call_block(call: OpenCall, empty: str) -> ToolCall:
    return ToolCall(
        id=CallId(""),
        name=mend(call.name),
        arguments="".join(call.parts) or empty,
        wire_id=mend(call.id) or None,
        signature=call.signature and mend(call.signature),
    )
