"""Writing one message of the model into the log, piece by piece."""

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


class _Written:
    """What was told of one block."""

    __slots__ = ("at", "delta", "parts")

    def __init__(self, piece: Piece) -> None:
        self.delta = _DELTAS[type(piece)]
        self.parts: list[str] = []
        self.at = 0  # code points


class MessageWriter:
    """One try at one message: starts it with the first piece and ends it once."""

    def __init__(self, host: Host, mint: Mint) -> None:
        self._emit = host.emit
        self._mint = mint
        self._id = _NONE
        self._written: dict[int, _Written] = {}

    def piece(self, piece: Piece) -> None:
        """Tell one piece; the hot path of the loop."""
        block = piece.block
        text = piece.text
        written = self._written.get(block)
        if written is None:
            if self._id is _NONE:
                self._start()
            written = self._written[block] = _Written(piece)
        at = written.at
        written.at = at + len(text)
        written.parts.append(text)
        self._emit(written.delta(message=self._id, block=block, at=at, text=text))

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
            if isinstance(block, ToolCall):
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
        if self._id is _NONE:
            return
        blocks: list[Block] = []
        for _, written in sorted(self._written.items()):
            text = "".join(written.parts)
            if written.delta is ThinkingDelta:
                blocks.append(Thinking(text=text))
            elif written.delta is TextDelta:
                blocks.append(Text(text=text))
        if any(isinstance(block, Text) for block in blocks):
            self._finish(tuple(blocks), reason)
        else:
            self._emit(MessageDiscarded(message=self._id, reason=reason))
            self._id = _NONE

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
