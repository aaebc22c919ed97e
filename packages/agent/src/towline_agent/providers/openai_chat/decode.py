"""From Chat Completions to pieces and one result (A2.6 to A2.25). Pure: bytes in, words out."""

import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, cast

from towline_agent.errors import ProviderError
from towline_agent.providers.answer import (
    ANSWER_MAX_CHARS,
    AnswerWriter,
    Notices,
    OpenCall,
)
from towline_agent.providers.base import Piece, StepAnswer, StepFailed, StepResult
from towline_agent.providers.errors import (
    Peer,
    body_error,
    document_error,
    incomplete_error,
    malformed_error,
    too_long_error,
    value_error,
)
from towline_agent.providers.json_value import UNREADABLE, as_object
from towline_agent.providers.openai_chat.calls import CallSlots
from towline_agent.providers.openai_chat.chunks import (
    CallPart,
    Choice,
    Chunk,
    Delta,
    chunk_reader,
    read_again,
)
from towline_agent.providers.openai_chat.flags import ChatFlags
from towline_agent.providers.openai_chat.reasoning import DetailLog, TagSplitter, detail_text
from towline_agent.providers.openai_chat.usage import read_usage
from towline_agent.providers.surrogates import mend, mend_all
from towline_protocol import Block, Opaque, SseEvent, Text, Usage

__all__ = ["DETAILS", "DIALECT", "ChatDecoder"]

DIALECT: Final = "openai_chat"
"""The dialect's name in `Opaque` blocks."""
DETAILS: Final = "reasoning_details"
"""The field whose blocks go back unchanged."""

_DONE: Final = b"[DONE]"
_MAX_NAME: Final = 1024
"""Characters up to which a name may grow by pieces; no tool's name has a tenth of them."""
_MAX_KIND: Final = 80
"""Characters of an unknown kind that are shown."""
_LENGTH: Final = frozenset({"length", "max_tokens", "model_length"})
_REFUSED: Final = frozenset({"content_filter", "refusal", "safety"})
_BROKEN: Final = frozenset({"error", "network_error", "insufficient_system_resource"})
"""Finish reasons with which a vendor says that it failed."""


class ChatDecoder:
    """Reads one answer, as a stream of events or as one document.

    `feed` or `read` tell the pieces; `finish` or `fail` then give the one result.

    Args:
        peer: Who answers, for the sentences of errors.
        flags: How this gateway speaks.
        on_piece: Told of each piece in wire order.
    """

    def __init__(self, peer: Peer, flags: ChatFlags, on_piece: Callable[[Piece], None]) -> None:
        self._peer = peer
        self._flags = flags
        self._answer = AnswerWriter(on_piece)
        self._read_chunk = chunk_reader()
        self._tags = TagSplitter() if flags.think_tags else None
        self._say = self._answer.say if self._tags is None else self._say_tagged
        self._details = DetailLog() if flags.replay == DETAILS else None
        self._slots = CallSlots()
        self._whole_calls = False  # each call stands in one part
        self._candidate: int | None = None
        self._finish = ""
        self._done = False
        self._over = False
        self._refused = False
        self._usage: Usage | None = None
        self._error: ProviderError | None = None
        self._notices = Notices()

    def feed(self, event: SseEvent) -> bool:
        """Take in one event; true when all that matters has come.

        That is so after a finish reason too, since some send no `[DONE]`; the counts that may still
        come are told all the same (A2.7).
        """
        if self._done:
            return self._take_late(event.data)
        if self._finish:
            return self._take_more(event)
        data = event.data
        if event.event == "error":
            return self._take_error(data)
        read = self._read_chunk  # a call of it as a method would be slower
        try:
            chunk = read(data)
        except UNREADABLE:
            return self._take_odd(data)
        for choice in chunk.choices or ():
            self._take_choice(choice)
        if chunk.usage or chunk.error or chunk.x_groq:
            self._take_rest(chunk)
        return self._over or self._finish != ""

    def read(self, body: bytes) -> None:
        """Take in a whole document (A2.4, A2.19, A2.20)."""
        self._answer.mending = True
        try:
            chunk = read_again(body)
        except ValueError:
            chunk = None
        if chunk is None or (chunk.choices is None and not chunk.error):
            self._break(document_error(self._peer, body))
            return
        self._whole_calls = True
        self._take(chunk)
        self._done = True

    def finish(self) -> StepResult:
        """The result, after the last event."""
        self._close()
        if self._error is not None:
            return self._failed(self._error)
        if not self._complete:
            if not self._may_end_so():
                return self._failed(incomplete_error(self._peer))
            self._notices.add(
                "The stream ended without a finish reason; its words were taken as whole."
            )
        return StepAnswer(
            content=self._content(),
            stop_reason=self._stop_reason(),
            raw_stop_reason=mend(self._finish) or None,
            usage=self._usage or Usage(),
            notices=self._notices.all(),
        )

    def fail(self, error: ProviderError) -> StepResult:
        """The result when the connection failed: it matters only while the answer is not whole."""
        if not self._complete:
            self._break(error)
        return self.finish()

    @property
    def _complete(self) -> bool:
        """Whether the vendor said that this is the end (A3.9)."""
        return self._done or bool(self._finish)

    def _take_more(self, event: SseEvent) -> bool:
        """What comes behind a finish reason; with words it shows that this was no end of them."""
        data = event.data
        if event.event == "error":
            return self._take_error(data)
        if data == _DONE:  # as `_take_odd` would find out by an exception
            self._done = self._over = True
            return True
        try:
            chunk = self._read_chunk(data)
        except UNREADABLE:
            return self._take_odd(data)
        room = self._answer.room
        self._take(chunk)
        return self._over or self._answer.room == room

    def _take_late(self, data: bytes) -> bool:
        """Data behind the end: of that only the counts matter."""
        with suppress(*UNREADABLE):
            self._take_usage(self._read_chunk(data))
        return True

    def _take_error(self, data: bytes) -> bool:
        self._break(body_error(self._peer, data))
        return True

    def _take_odd(self, data: bytes) -> bool:
        """Data that is no plain JSON: the end, a sign of life, halves of characters, or rubbish."""
        if data.startswith(_DONE):
            self._done = self._over = True
        elif data:
            chunk = self._read_again(data)
            if chunk is not None:
                self._take(chunk)
        return self._over

    def _read_again(self, data: bytes) -> Chunk | None:
        try:
            chunk = read_again(data)
        except ValueError:
            if not self._complete:  # after the end nothing can be spoilt
                self._break(malformed_error(self._peer))
            return None
        self._answer.mending = True
        return chunk

    def _take(self, chunk: Chunk) -> None:
        for choice in chunk.choices or ():
            self._take_choice(choice)
        self._take_rest(chunk)

    def _take_rest(self, chunk: Chunk) -> None:
        """What most chunks do not have."""
        if chunk.error:
            self._break(value_error(self._peer, chunk.error))
        self._take_usage(chunk)

    def _take_usage(self, chunk: Chunk) -> None:
        usage: Any = chunk.usage
        if not usage and isinstance(chunk.x_groq, dict):
            usage = cast("dict[str, Any]", chunk.x_groq).get("usage")
        self._usage = read_usage(usage) or self._usage

    def _take_choice(self, choice: Choice) -> None:
        if choice.index != self._candidate and self._is_other(choice):
            return
        delta = choice.delta or self._message(choice)
        if delta is not None:
            if delta.reasoning_content or delta.reasoning or delta.reasoning_details:
                self._take_reasoning(delta)
            content = delta.content
            if content:
                if type(content) is str:
                    self._say(content)
                else:
                    self._take_parts(content)
            if delta.tool_calls:
                for part in delta.tool_calls:
                    self._take_call(part)
            if delta.refusal or delta.audio:
                self._take_rare(delta)
        if choice.finish_reason or choice.error or self._answer.room < 0:
            self._take_finish(choice)

    def _is_other(self, choice: Choice) -> bool:
        """Whether this is another candidate than the first; nobody asked for one."""
        if self._candidate is None:
            self._candidate = choice.index
            return False
        if choice.index is None:
            return False
        self._notices.add("The provider sent further candidates; the first one was taken.")
        return True

    def _message(self, choice: Choice) -> Delta | None:
        """The whole message of a document, or of a stream that sends no deltas (A2.6)."""
        return None if self._answer.streamed else choice.message

    def _take_reasoning(self, delta: Delta) -> None:
        """The same thought may stand in several fields at once: one is taken."""
        thought = delta.reasoning_content or delta.reasoning
        if not isinstance(thought, str):
            thought = detail_text(delta.reasoning_details)
        if thought:
            self._answer.think(thought)
        if self._details is not None and delta.reasoning_details and not self._over:
            self._details.add(delta.reasoning_details)
            if self._details.size > ANSWER_MAX_CHARS:
                self._answer.room = min(self._answer.room, -1)
                self._break_off()

    def _take_parts(self, content: Any) -> None:
        """Content that is no string: a list of parts (Mistral), or a bare JSON value."""
        if not isinstance(content, list):
            self._say(_to_json(content))
            return
        for part in cast("list[Any]", content):
            if isinstance(part, str):
                self._take_part({"text": part})
            elif isinstance(part, dict):
                self._take_part(cast("dict[str, Any]", part))

    def _take_part(self, part: dict[str, Any]) -> None:
        text = part.get("text")
        if isinstance(text, str):
            if text:
                self._say(text)
            return
        thought = part.get("thinking")
        if thought is None:
            kind = part.get("type")
            kind = mend(kind[:_MAX_KIND]) if isinstance(kind, str) else "unknown"
            self._notices.add(f"A part of the kind {kind!r} was left out.")
            return
        thought = thought if isinstance(thought, str) else detail_text(thought)
        if thought:
            self._answer.think(thought)

    def _take_call(self, part: CallPart) -> None:
        if self._over:
            return
        function, newest = part.function, self._slots.newest
        if (  # what most pieces are: more arguments of the call that is being written
            newest is not None
            and function is not None
            and not (part.id or function.name or part.extra_content)
            and part.index == newest.index
            and type(function.arguments) is str
        ):
            self._answer.add_arguments(newest, function.arguments)
            return
        self._take_other_call(part)

    def _take_other_call(self, part: CallPart) -> None:
        id_, name, arguments = _named(part)
        if not (id_ or name or arguments):
            return
        call = None if self._whole_calls else self._slots.find(part.index, id_, name, arguments)
        if call is None:
            if self._flags.one_call and self._answer.calls:
                self._stop_at_call()
                return
            call = self._answer.open_call()
            self._answer.room -= len(id_)
        self._slots.keep(call, part.index, id_)
        if name:
            self._answer.room -= _add_name(call, name)
        if arguments:
            text = arguments if isinstance(arguments, str) else _to_json(arguments) or "{"
            self._answer.add_arguments(call, text)
        if part.extra_content:
            signature = _signature(part.extra_content)
            if signature:
                self._answer.room -= len(signature)
                call.signature = signature

    def _stop_at_call(self) -> None:
        """The first call is all that is wanted; what comes after it is not told."""
        self._finish = self._finish or "tool_calls"
        self._over = True
        self._say = _say_nothing
        self._notices.add(
            "Further calls of this step were left out: this model is asked for one call at a time."
        )

    def _take_rare(self, delta: Delta) -> None:
        """A refusal in words, and the words of spoken audio."""
        if isinstance(delta.refusal, str) and delta.refusal:
            self._refused = True
            self._say(delta.refusal)
        if isinstance(delta.audio, dict):
            spoken: Any = cast("dict[str, Any]", delta.audio).get("transcript")
            if isinstance(spoken, str) and spoken:
                self._say(spoken)

    def _take_finish(self, choice: Choice) -> None:
        """The first reason counts; some vendors repeat it."""
        reason = choice.finish_reason
        if self._answer.room < 0:
            self._break_off()
        if choice.error:
            self._break(value_error(self._peer, choice.error))
        elif isinstance(reason, str) and not self._finish:
            self._finish = reason
            if reason.lower() in _BROKEN:
                self._break(value_error(self._peer, {"message": f"finish reason {reason!r}"}))

    def _say_tagged(self, text: str) -> None:
        assert self._tags is not None
        for thinking, piece in self._tags.feed(text):
            (self._answer.think if thinking else self._answer.say)(piece)

    def _close(self) -> None:
        if self._tags is not None:
            for thinking, piece in self._tags.end():
                (self._answer.think if thinking else self._answer.say)(piece)
        self._answer.end()

    def _break(self, error: ProviderError) -> None:
        self._error = self._error or error
        self._over = True

    def _break_off(self) -> None:
        """The answer has become too long; one that is whole by now is not spoilt by it."""
        if not self._over:
            self._break(too_long_error(self._peer, self._answer.limit))

    def _may_end_so(self) -> bool:
        """Words with a usage count, from a vendor that is known for it; never a call (R07)."""
        if not self._flags.ends_without_finish or self._usage is None or self._answer.calls:
            return False
        return any(isinstance(block, Text) for block in self._answer.words())

    def _stop_reason(self) -> str:
        reason = self._finish.lower()
        if reason in _LENGTH:
            return "max_tokens"
        if self._refused or reason in _REFUSED:
            return "refusal"
        return "tool_calls" if self._answer.calls else "end_turn"

    def _content(self) -> tuple[Block, ...]:
        content = self._answer.content(cut=self._finish.lower() in _LENGTH)
        details = self._details.whole() if self._details is not None else []
        if not details:
            return content
        return (*content, Opaque(dialect=DIALECT, raw={DETAILS: mend_all(details)}))

    def _failed(self, error: ProviderError) -> StepFailed:
        return StepFailed(
            error=error,
            content=self._answer.words(),
            streamed=self._answer.streamed,
            usage=self._usage or Usage(),
        )


def _say_nothing(text: str) -> None:
    """Takes the words after the end."""


def _named(part: CallPart) -> tuple[str, str, Any]:
    """The id, the name and the arguments of a piece of a call, whatever kind of call it is."""
    function, id_ = part.function, part.id
    name: Any = None
    arguments: Any = None
    if function is not None:
        name, arguments = function.name, function.arguments
    if part.custom is not None and not name:
        name, arguments = part.custom.name, arguments or part.custom.input
    id_ = id_ if isinstance(id_, str) else "" if id_ is None else _to_json(id_)
    return id_, name if isinstance(name, str) else "", arguments


def _add_name(call: OpenCall, name: str) -> int:
    """Add to a name and say how much it grew.

    It may come in pieces before the arguments, or whole in every piece (A2.11).
    """
    if not call.name:
        call.name = name
    elif call.parts or name == call.name:
        return 0
    elif len(call.name) < _MAX_NAME:
        call.name += name
    return len(name)


def _signature(extra: Any) -> str | None:
    """Google's proof that belongs to a call."""
    google: Any = cast("dict[str, Any]", extra).get("google") if isinstance(extra, dict) else None
    found: Any = as_object(google)
    signature = found.get("thought_signature")
    return signature if isinstance(signature, str) else None


def _to_json(value: Any) -> str:
    """A value as JSON; nothing where it cannot be written down again (A1.24)."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    except (RecursionError, ValueError):
        return ""
