"""What is open right now: messages being written and the output of running calls (C1.6)."""

from typing import Final

from towline_protocol import (
    Block,
    CallId,
    Envelope,
    Event,
    MessageDiscarded,
    MessageEnded,
    MessageId,
    MessageStarted,
    Partial,
    Text,
    TextDelta,
    Thinking,
    ThinkingDelta,
    ToolCall,
    ToolCallDelta,
    ToolEnded,
    ToolOutputDelta,
    ToolProgress,
    TurnCancelled,
    TurnCompleted,
    TurnFailed,
)

__all__ = ["MAX_TAIL", "Partials"]

MAX_TAIL: Final = 8192
"""Code points of a call's output that a late reader is given: as much as a view holds."""


class _OpenBlock:
    """One block under way, in the pieces it came in, so that a piece costs one append."""

    __slots__ = ("kind", "pieces")

    def __init__(self, kind: type) -> None:
        self.kind = kind
        self.pieces: list[str] = []

    def block(self) -> Block:
        text = "".join(self.pieces)
        self.pieces = [text]
        if self.kind is TextDelta:
            return Text(text=text)
        if self.kind is ThinkingDelta:
            return Thinking(text=text)
        return ToolCall(id=CallId(""), name="", arguments=text)


class Partials:
    """Grows with each published event; gives the frames that a late reader needs."""

    def __init__(self) -> None:
        self._messages: dict[MessageId, dict[int, _OpenBlock]] = {}
        self._outputs: dict[CallId, tuple[int, str]] = {}
        self._progress: dict[CallId, ToolProgress] = {}

    def grow(self, event: Event) -> None:
        """Take in a delta."""
        if isinstance(event, TextDelta | ThinkingDelta | ToolCallDelta):
            blocks = self._messages.get(event.message)
            if blocks is None:
                return
            block = blocks.get(event.block)
            if block is None:
                block = blocks[event.block] = _OpenBlock(type(event))
            block.pieces.append(event.text)
        elif isinstance(event, ToolOutputDelta):
            at, tail = self._outputs.get(event.call, (0, ""))
            tail += event.text
            over = max(0, len(tail) - MAX_TAIL)
            self._outputs[event.call] = (at + over, tail[over:])
        elif isinstance(event, ToolProgress):
            self._progress[event.call] = event

    def take(self, envelope: Envelope) -> None:
        """Take in a stored event: what ends closes its partial."""
        match envelope.event:
            case MessageStarted(message=message):
                self._messages[message] = {}
            case MessageEnded(message=message) | MessageDiscarded(message=message):
                self._messages.pop(message, None)
            case ToolEnded(call=call):
                self._outputs.pop(call, None)
                self._progress.pop(call, None)
            case TurnCompleted() | TurnFailed() | TurnCancelled():
                self._messages.clear()
                self._outputs.clear()
                self._progress.clear()
            case _:
                pass

    def frames(self) -> tuple[Partial, ...]:
        """One frame for each open message and each running call that has shown anything."""
        frames: list[Partial] = []
        for message, blocks in self._messages.items():
            if blocks:
                last = max(blocks)
                content = tuple(
                    blocks[place].block() if place in blocks else Text(text="")
                    for place in range(last + 1)
                )
                frames.append(Partial(message=message, content=content))
        for call in self._outputs | self._progress:
            at, tail = self._outputs.get(call, (0, ""))
            told = self._progress.get(call)
            frames.append(
                Partial(
                    call=call,
                    at=at,
                    output=tail,
                    progress=None if told is None else told.text,
                    fraction=None if told is None else told.fraction,
                )
            )
        return tuple(frames)
