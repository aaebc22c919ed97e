"""From events to the messages a provider must see, always well paired (C5.7, D6)."""

from collections.abc import Callable
from typing import Any, ClassVar, Final, cast

import msgspec

from towline_protocol.content import (
    Block,
    File,
    Image,
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
    FilesReverted,
    MessageEnded,
    PromptAdmitted,
    PromptDelivered,
    Reverted,
    StepEnded,
    StepStarted,
    ToolEnded,
    TurnStarted,
)
from towline_protocol.ids import CallId, PromptId, TurnId
from towline_protocol.messages import Message

__all__ = ["CUT_HEAD_CHARS", "INTERRUPTED", "Transcript", "cut_to_head"]

INTERRUPTED: Final = (
    "Interrupted: this call did not finish. It may or may not have had an effect; check before you "
    "repeat it."
)
"""What a model is told of a call that has no result."""

CUT_HEAD_CHARS: Final = 1_000
"""Characters that compaction leaves of a result (A4.34)."""


_TOLD: Final = 100  # paths of a revert that the model is told by name

_Kept = tuple[Private, ...]
_In = TurnId | None


class _Entry:
    """One message of the conversation, with what is needed to find it again."""

    __slots__ = ("calls", "id", "message", "opens", "results", "turn")

    def __init__(
        self, id_: str, turn: TurnId | None, message: Message, *, opens: bool = False
    ) -> None:
        self.id = id_
        self.turn = turn
        self.message = message
        self.opens = opens  # it is the prompt that the turn began with
        self.calls: tuple[ToolCall, ...] = ()
        if ToolCall in map(type, message.content):
            self.calls = tuple([block for block in message.content if type(block) is ToolCall])
        self.results: Message | None = None  # made once: the same objects are sent with every step


class _Count(msgspec.Struct, frozen=True):
    """How large the conversation was at some point."""

    tokens: int
    entries: int
    open: bool  # whether the last of these had no results yet


class Transcript:
    """Folds a session's events, in order, into a provider's messages.

    The loop and recovery use the same fold, so what is sent after a restart is what would have been
    sent without it (D6).
    """

    def __init__(self, earlier: tuple[Message, ...] = ()) -> None:
        self._entries: list[_Entry] = []
        self._prompts: dict[PromptId, tuple[Block, ...]] = {}
        self._results: dict[CallId, ToolResult] = {}
        self._ids: dict[CallId, list[CallId]] = {}
        self._turn: TurnId | None = None
        self._model: str | None = None
        self._reverts = 0
        self._counted: _Count | None = None
        self._paired: list[Message] = []  # the messages of so many entries, which stay as they are
        self._settled = 0
        self._told: tuple[Message, ...] = ()  # all of these, as they were given out
        self._takes = self._TAKES  # Python is slow to find at each event what stands in a class
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
        take = self._takes.get(type(event))
        if take is not None:  # most are passed over at once
            take(self, event, private, turn)

    def messages(self) -> tuple[Message, ...]:
        """The messages as a provider must see them: each call has exactly one result."""
        if self._settled == len(self._entries) and len(self._told) == len(self._paired):
            return self._told
        paired = self._paired
        while self._settled < len(self._entries):
            entry = self._entries[self._settled]
            results = self._results_of(entry)
            if entry.calls and entry.results is None:  # some may still come: nothing to keep
                return (*paired, *self._unsettled())
            paired.append(entry.message)
            paired += results
            self._settled += 1
        self._told = tuple(paired)
        return self._told

    def entries(self) -> tuple[tuple[str, tuple[Message, ...]], ...]:
        """The conversation in parts that belong together, oldest first (R27).

        Each has the id of its prompt or message, `earlier_` and a number for one that came before
        the events, empty for a summary; and its messages: one of a person, or one of the model with
        all results of its calls. `Compacted.upto` names such an id.
        """
        return tuple(
            (entry.id, (entry.message, *self._results_of(entry))) for entry in self._entries
        )

    def counted(self) -> tuple[int, tuple[Message, ...]] | None:
        """The tokens that were last counted, and the messages that came after that (A4.32).

        The count is the provider's, of its last request and answer without what it only thought,
        which is not sent again; after a compaction it is the estimate of that. `None` when there is
        none yet.
        """
        counted = self._counted
        if counted is None:
            return None
        place = counted.entries
        since = list(self._results_of(self._entries[place - 1])) if counted.open else []
        for entry in self._entries[place:]:
            since += (entry.message, *self._results_of(entry))
        return counted.tokens, tuple(since)

    def open_calls(self) -> tuple[ToolCall, ...]:
        """The calls of the last message that have no result yet, in the model's order."""
        calls = self._entries[-1].calls if self._entries else ()
        if not calls:
            return ()
        return tuple([call for call in calls if call.id not in self._results])

    def opening(self, turn: TurnId) -> tuple[Block, ...] | None:
        """What the prompt said that a turn began with; `None` when that stands here no more.

        It is gone once it was summed up, or the conversation went back to before it.
        """
        for entry in self._entries:
            if entry.opens and entry.turn == turn:
                return entry.message.content
        return None

    def answered(self) -> bool:
        """Whether it ends with words of the model and no calls."""
        if not self._entries:
            return False
        last = self._entries[-1]
        if last.message.role != "assistant" or last.calls:
            return False
        return bool(block_text(last.message.content).strip())

    def _take_earlier(self, message: Message) -> None:
        """Take results apart from their messages, so that pairing is made anew (R25).

        A call that somebody else than the model wrote is none: no API takes it. It goes, and its
        result with it.
        """
        rest: list[Block] = []
        for block in message.content:
            if type(block) is ToolResult:
                self._take_result(block)
            elif type(block) is ToolCall:
                call = self._with_own_id(block)
                if message.role == "assistant":
                    rest.append(call)
            else:
                rest.append(block)
        content = tuple(rest)
        if content:
            if content != message.content or message.role == "tool":
                role = "user" if message.role == "tool" else message.role
                message = Message(role, content, message.model)
            self._entries.append(_Entry(f"earlier_{len(self._entries)}", None, message))
        elif self._entries and message == self._pair(self._entries[-1]):
            self._entries[-1].results = message  # the very object that was sent before

    def _with_own_id(self, call: ToolCall) -> ToolCall:
        """The call under an id that no earlier one has: some vendors count anew in each answer."""
        ids = self._ids.setdefault(call.id, [])
        ids.append(CallId(f"{call.id}~{len(ids) + 1}") if ids else call.id)
        if len(ids) == 1:
            return call
        return ToolCall(
            id=ids[-1],
            name=call.name,
            arguments=call.arguments,
            wire_id=call.wire_id or call.id,
            signature=call.signature,
        )

    def _take_result(self, result: ToolResult) -> None:
        """Give a result to the first call of its id that has none yet."""
        for id_ in self._ids.get(result.call, (result.call,)):
            if id_ not in self._results:
                if id_ != result.call:
                    content, is_error = result.content, result.is_error
                    result = ToolResult(call=id_, content=content, is_error=is_error)
                self._results[id_] = result
                return

    # What is done with each kind of event, see `_TAKES`.

    def _admit(self, event: PromptAdmitted, _private: _Kept, _turn: _In) -> None:
        self._prompts[event.prompt] = event.content

    def _begin(self, _event: TurnStarted, _private: _Kept, turn: _In) -> None:
        self._turn = turn

    def _begin_step(self, event: StepStarted, _private: _Kept, _turn: _In) -> None:
        self._model = event.model

    def _deliver(self, event: PromptDelivered, _private: _Kept, _turn: _In) -> None:
        content = self._prompts.pop(event.prompt, None)
        if content is not None:
            message = Message("user", content)
            opens = event.how == "started"
            self._entries.append(_Entry(event.prompt, event.turn, message, opens=opens))

    def _end_message(self, event: MessageEnded, private: _Kept, _turn: _In) -> None:
        content = restore_private(event.content, private)
        if event.cut is not None:
            content = (*content, Text(text=f"\n[cut off: {event.cut}]"))
        if content:
            message = Message("assistant", content, self._model)
            self._entries.append(_Entry(event.message, self._turn, message))

    def _end_call(self, event: ToolEnded, private: _Kept, _turn: _In) -> None:
        content = event.content
        if private:
            content = cast("tuple[ResultBlock, ...]", restore_private(content, private))
        result = ToolResult(call=event.call, content=content, is_error=event.is_error)
        self._results.setdefault(event.call, result)  # the first one wins (C5.7)

    def _unsettled(self) -> list[Message]:
        """The messages from the first entry on whose calls have not all ended."""
        found: list[Message] = []
        for entry in self._entries[self._settled :]:
            found += (entry.message, *self._results_of(entry))
        return found

    def _begin_anew(self) -> None:
        """Forget how messages were paired: some of them have changed or are gone."""
        self._paired.clear()
        self._settled = 0
        self._told = ()

    def _results_of(self, entry: _Entry) -> tuple[Message, ...]:
        return (entry.results or self._pair(entry),) if entry.calls else ()

    def _pair(self, entry: _Entry) -> Message:
        """The message of all results of an entry's calls; kept once each call has its own."""
        results: list[ToolResult] = []
        whole = True
        for call in entry.calls:
            result = self._results.get(call.id)
            if result is None:
                whole = False
                content: tuple[ResultBlock, ...] = (Text(text=INTERRUPTED),)
                result = ToolResult(call=call.id, content=content, is_error=True)
            results.append(result)
        message = Message("tool", tuple(results))
        if whole:
            entry.results = message
        return message

    def _compact(self, event: Compacted, _private: _Kept, _turn: _In) -> None:
        self._begin_anew()
        cut = set(event.cut)
        for call in cut & self._results.keys():
            self._results[call] = cut_to_head(self._results[call])
        for entry in self._entries:
            if any(call.id in cut for call in entry.calls):
                entry.results = None
        if event.summary is not None:
            self._sum_up(event)
        self._counted = self._count_now(event.after_tokens)

    def _sum_up(self, event: Compacted) -> None:
        places = [place for place, entry in enumerate(self._entries) if entry.id == event.upto]
        if places and event.summary is not None:
            summary = Message("user", (Text(text=event.summary),))
            self._entries[: places[0] + 1] = [_Entry("", None, summary)]

    def _count(self, event: StepEnded, _private: _Kept, _turn: _In) -> None:
        used = 0 if event.context is None else event.context.used - event.usage.reasoning
        if used > 0:
            self._counted = self._count_now(used)
        else:  # a provider that does not count
            self._counted = None

    def _count_now(self, tokens: int) -> _Count:
        return _Count(tokens, len(self._entries), bool(self.open_calls()))

    def _revert(self, event: Reverted, _private: _Kept, _turn: _In) -> None:
        for place, entry in enumerate(self._entries):
            if entry.turn == event.to_turn:
                del self._entries[place:]
                self._begin_anew()
                self._counted = None
                return

    def _tell_files(self, event: FilesReverted, _private: _Kept, _turn: _In) -> None:
        """Tell the model what stands otherwise than it remembers (A5.76)."""
        self._reverts += 1
        message = Message("user", (Text(text=_describe_revert(event)),))
        self._entries.append(_Entry(f"files_reverted_{self._reverts}", None, message))

    _TAKES: ClassVar[dict[type, Callable[[Any, Any, _Kept, _In], None]]] = {
        Compacted: _compact,
        FilesReverted: _tell_files,
        MessageEnded: _end_message,
        PromptAdmitted: _admit,
        PromptDelivered: _deliver,
        Reverted: _revert,
        StepEnded: _count,
        StepStarted: _begin_step,
        ToolEnded: _end_call,
        TurnStarted: _begin,
    }


def _describe_revert(event: FilesReverted) -> str:
    lines = ["[Not said by the person: they have undone what turns before this did to files.]"]
    parts = (
        ("Put back to what they were, or gone; read them before you edit them", event.files),
        (
            "Left as they are, for somebody else has changed them since",
            [f"{conflict.path} ({conflict.what})" for conflict in event.conflicts],
        ),
        ("Not undone", event.unkept),
    )
    for head, items in parts:
        if items:
            more = [f"and {len(items) - _TOLD} more"] if len(items) > _TOLD else []
            lines += [f"{head}:", *(f"- {item}" for item in (*items[:_TOLD], *more))]
    return "\n".join(lines)


def cut_to_head(result: ToolResult) -> ToolResult:
    """A result cut down for good: its head, and a marker of what is gone and how to get it again.

    Pictures and documents go whole (A4.33, A4.34).
    """
    text = block_text(result.content)
    others = sum(isinstance(block, Image | File) for block in result.content)
    long = len(text) > 2 * CUT_HEAD_CHARS  # one that was cut already stays as it is
    gone = [f"{len(text) - CUT_HEAD_CHARS} characters"] if long else []
    if others:
        gone.append(f"{others} pictures or documents")
    if not gone:
        return result
    marker = f"[{' and '.join(gone)} of this result were cut to make room; call it again to see it]"
    head = text[:CUT_HEAD_CHARS] if long else text
    content = (Text(text=f"{head}\n{marker}" if head else marker),)
    return ToolResult(call=result.call, content=content, is_error=result.is_error)
