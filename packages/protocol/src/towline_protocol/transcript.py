"""From events to the messages a provider must see, always well paired (C5.7, D6)."""

from typing import Final

from towline_protocol.content import (
    Block,
    Private,
    ResultBlock,
    Text,
    ToolCall,
    ToolResult,
    block_text,
    restore_private,
)
from towline_protocol.events import (
    Compacted,
    Event,
    MessageEnded,
    PromptAdmitted,
    PromptDelivered,
    Reverted,
    ToolEnded,
    TurnStarted,
)
from towline_protocol.ids import CallId, PromptId, TurnId
from towline_protocol.messages import Message

__all__ = ["CUT_RESULT", "INTERRUPTED", "Transcript"]

INTERRUPTED: Final = (
    "Interrupted: this call did not finish. It may or may not have had an effect; check before you "
    "repeat it."
)
"""What a model is told of a call that has no result."""

CUT_RESULT: Final = "[result cut to make room; call the tool again if it is needed]"
"""What stands for a result that compaction cut."""


class _Entry:
    """One message of the conversation, with what is needed to find it again."""

    __slots__ = ("id", "message", "turn")

    def __init__(self, id_: str, turn: TurnId | None, message: Message) -> None:
        self.id = id_
        self.turn = turn
        self.message = message


class Transcript:
    """Folds a session's events, in order, into a provider's messages.

    The loop and recovery use the same fold, so what is sent after a restart is what would have been
    sent without it (D6).
    """

    def __init__(self, earlier: tuple[Message, ...] = ()) -> None:
        self._entries: list[_Entry] = []
        self._prompts: dict[PromptId, tuple[Block, ...]] = {}
        self._results: dict[CallId, ToolResult] = {}
        self._turn: TurnId | None = None
        for message in earlier:
            self._take_earlier(message)

    def add(
        self,
        event: Event,
        private: tuple[Private, ...] = (),
        turn: TurnId | None = None,
    ) -> None:
        """Take in one stored event.

        Args:
            event: The event; kinds that no provider sees are passed over.
            private: What is kept beside it for the provider.
            turn: The turn it happened in.
        """
        match event:
            case PromptAdmitted():
                self._prompts[event.prompt] = event.content
            case PromptDelivered():
                self._deliver(event)
            case TurnStarted():
                self._turn = turn
            case MessageEnded():
                self._end_message(event, private)
            case ToolEnded():
                self._end_call(event)
            case Compacted():
                self._compact(event)
            case Reverted():
                self._revert(event)
            case _:
                pass

    def messages(self) -> tuple[Message, ...]:
        """The messages as a provider must see them: each call has exactly one result."""
        paired: list[Message] = []
        for entry in self._entries:
            paired.append(entry.message)
            calls = [block for block in entry.message.content if isinstance(block, ToolCall)]
            if calls:
                results = tuple(self._result(call.id) for call in calls)
                paired.append(Message("tool", results))
        return tuple(paired)

    def open_calls(self) -> tuple[ToolCall, ...]:
        """The calls of the last message that have no result yet, in the model's order."""
        if not self._entries:
            return ()
        return tuple(
            block
            for block in self._entries[-1].message.content
            if isinstance(block, ToolCall) and block.id not in self._results
        )

    def answered(self) -> bool:
        """Whether it ends with words of the model and no calls."""
        if not self._entries:
            return False
        last = self._entries[-1].message
        if last.role != "assistant" or any(isinstance(b, ToolCall) for b in last.content):
            return False
        return bool(block_text(last.content).strip())

    def _take_earlier(self, message: Message) -> None:
        """Take results apart from their messages, so that pairing is made anew (R25)."""
        results = [block for block in message.content if isinstance(block, ToolResult)]
        for result in results:
            self._results.setdefault(result.call, result)
        rest = tuple(block for block in message.content if not isinstance(block, ToolResult))
        if rest:
            role = "user" if message.role == "tool" else message.role
            self._entries.append(_Entry("", None, Message(role, rest)))

    def _deliver(self, event: PromptDelivered) -> None:
        content = self._prompts.pop(event.prompt, None)
        if content is not None:
            self._entries.append(_Entry(event.prompt, event.turn, Message("user", content)))

    def _end_message(self, event: MessageEnded, private: tuple[Private, ...]) -> None:
        content = restore_private(event.content, private)
        if event.cut is not None:
            content = (*content, Text(text=f"\n[cut off: {event.cut}]"))
        if content:
            message = Message("assistant", content)
            self._entries.append(_Entry(event.message, self._turn, message))

    def _end_call(self, event: ToolEnded) -> None:
        result = ToolResult(call=event.call, content=event.content, is_error=event.is_error)
        self._results.setdefault(event.call, result)  # the first one wins (C5.7)

    def _result(self, call: CallId) -> ToolResult:
        found = self._results.get(call)
        if found is not None:
            return found
        content: tuple[ResultBlock, ...] = (Text(text=INTERRUPTED),)
        return ToolResult(call=call, content=content, is_error=True)

    def _compact(self, event: Compacted) -> None:
        for call in event.cut:
            if call in self._results:
                content: tuple[ResultBlock, ...] = (Text(text=CUT_RESULT),)
                failed = self._results[call].is_error
                self._results[call] = ToolResult(call=call, content=content, is_error=failed)
        if event.summary is None:
            return
        places = [place for place, entry in enumerate(self._entries) if entry.id == event.upto]
        if places:
            summary = Message("user", (Text(text=event.summary),))
            self._entries[: places[0] + 1] = [_Entry("", None, summary)]

    def _revert(self, event: Reverted) -> None:
        for place, entry in enumerate(self._entries):
            if entry.turn == event.to_turn:
                del self._entries[place:]
                return
