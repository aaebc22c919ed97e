"""Writing one message of the model into the log, piece by piece."""

from collections.abc import Callable
from typing import Final

from towline_agent.host import Host, Mint
from towline_agent.providers.base import (
    ArgumentsPiece,
    Piece,
    StepAnswer,
    TextPiece,
    ThinkingPiece,
)
from towline_protocol import (
    Block,
    CallId,
    MessageDiscarded,
    MessageEnded,
    MessageId,
    MessageStarted,
    Text,
    TextDelta,
    Thinking,
    ThinkingDelta,
    ToolCall,
    ToolCallDelta,
    strip_private,
)

__all__ = ["MessageWriter"]

_NONE: Final = MessageId("")

_DELTAS: Final = {
    TextPiece: TextDelta,
    ThinkingPiece: ThinkingDelta,
    ArgumentsPiece: ToolCallDelta,
}
"""What is emitted for each kind of piece."""


class MessageWriter:
    """One try at one message: starts it with the first piece and ends it once.

    Args:
        host: Takes the events.
        mint: Makes ids.
        live: Whether each piece is told as it comes.
    """

    def __init__(self, host: Host, mint: Mint, *, live: bool = True) -> None:
        self._emit = host.emit
        self._mint = mint
        self._id = _NONE
        self._pieces: list[Piece] = []
        self._written: dict[int, int] = {}  # code points that were told of each block
        self.piece: Callable[[Piece], None] = self._tell if live else self._pieces.append
        """Takes one piece; the hot path of the loop."""

    def end(self, answer: StepAnswer, *, calls: int | None) -> int:
        """End the message with the whole answer.

        Args:
            answer: The provider's answer; its calls get our ids here.
            calls: The most calls to keep; `None` keeps all.

        Returns:
            How many calls were cut.
        """
        kept: list[Block] = []
        found = 0
        for block in answer.content:
            if type(block) is ToolCall:
                found += 1
                if calls is not None and found > calls:
                    continue
                kept.append(self._named(block))
            else:
                kept.append(block)
        if kept or self._id is not _NONE:
            self._finish(tuple(kept), None)
        return 0 if calls is None else max(0, found - calls)

    def cut(self, reason: str) -> None:
        """End a message that will not be finished: its words stay, marked as cut (A4.24)."""
        blocks = _join(self._pieces)
        self._pieces.clear()
        if any(isinstance(block, Text) for block in blocks):
            self._finish(blocks, reason)
        elif self._id is not _NONE:
            self._emit(MessageDiscarded(message=self._id, reason=reason))
            self._id = _NONE

    def _tell(self, piece: Piece) -> None:
        if self._id is _NONE:
            self._start()
        self._pieces.append(piece)
        block, text = piece.block, piece.text
        at = self._written.get(block, 0)
        self._written[block] = at + len(text)
        self._emit(_DELTAS[type(piece)](message=self._id, block=block, at=at, text=text))

    def _start(self) -> None:
        self._id = MessageId(self._mint("msg"))
        self._emit(MessageStarted(message=self._id, role="assistant"))

    def _named(self, call: ToolCall) -> ToolCall:
        """The call under an id of ours: a provider's may be empty, repeated or reused (C1.1)."""
        return ToolCall(
            id=CallId(self._mint("call")),
            name=call.name,
            arguments=call.arguments,
            wire_id=call.wire_id,
            signature=call.signature,
        )

    def _finish(self, blocks: tuple[Block, ...], cut: str | None) -> None:
        if self._id is _NONE:
            self._start()
        public, private = strip_private(blocks)
        self._emit(MessageEnded(message=self._id, content=public, cut=cut), private)
        self._id = _NONE


def _join(pieces: list[Piece]) -> tuple[Block, ...]:
    """The words and thoughts that pieces add up to; a call that was begun is none."""
    texts: dict[int, list[str]] = {}
    kinds: dict[int, type[Text | Thinking]] = {}
    for piece in pieces:
        if not isinstance(piece, ArgumentsPiece):
            texts.setdefault(piece.block, []).append(piece.text)
            kinds[piece.block] = Text if isinstance(piece, TextPiece) else Thinking
    return tuple(kinds[block](text="".join(texts[block])) for block in sorted(texts))
