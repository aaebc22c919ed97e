"""From the Messages API to pieces and one result (A2.37 to A2.43). Pure: bytes in, words out."""

from collections.abc import Callable
from typing import Any, Final, cast

from towline_agent.errors import ProviderError
from towline_agent.providers.answer import AnswerWriter, Notices
from towline_agent.providers.anthropic.block_reader import BlockReader
from towline_agent.providers.anthropic.events import (
    MessageEvent,
    decode_event,
    read_again,
    read_document,
)
from towline_agent.providers.anthropic.usage import UsageCount
from towline_agent.providers.anthropic.vendor_blocks import VENDOR_MAX_CHARS, VendorLog
from towline_agent.providers.base import Piece, StepAnswer, StepFailed, StepResult
from towline_agent.providers.counts import read_count
from towline_agent.providers.errors import (
    Peer,
    body_error,
    document_error,
    incomplete_error,
    malformed_error,
    too_long_error,
    value_error,
)
from towline_agent.providers.json_value import UNREADABLE, as_object, as_objects
from towline_agent.providers.room import CLEARED
from towline_agent.providers.surrogates import mend
from towline_protocol import SseEvent, Usage

__all__ = ["MAX_CONTINUATIONS", "MessagesDecoder"]

MAX_CONTINUATIONS: Final = 8
"""How often an answer that pauses goes on (A2.39); each time the vendor has used its own tools some
ten times."""

_Json = dict[str, Any]

_DONE: Final = b"[DONE]"
_PAUSED: Final = "pause_turn"
_CALLS: Final = "tool_use"
_LENGTH: Final = frozenset({"max_tokens", "model_context_window_exceeded", "length"})
_REFUSED: Final = frozenset({"refusal", "content_filter"})
_REASON_MAX: Final = 400


class MessagesDecoder:
    """Reads one answer, as a stream of events or as one document.

    `feed` or `read` tell the pieces; `finish` or `fail` then give the one result. An answer that
    `paused` goes on after `resume`, in the same blocks.

    Args:
        peer: Who answers, for the sentences of errors.
        on_piece: Told of each piece in wire order.
    """

    def __init__(self, peer: Peer, on_piece: Callable[[Piece], None]) -> None:
        self._peer = peer
        self._answer = AnswerWriter(on_piece)
        self._vendor = VendorLog()
        self._earlier = Usage()  # of the responses before a pause
        self._continuations = 0
        self._cleared = False
        self._notices = Notices()
        self._error: ProviderError | None = None
        self._begin_response()

    def _begin_response(self) -> None:
        self._count = UsageCount()
        self._blocks = BlockReader(self._answer, self._vendor, self._notices.add)
        self._id: Any = None
        self._stop = ""
        self._done = False
        self._over = False

    def feed(self, event: SseEvent) -> bool:
        """Take in one event; true when all that matters has come.

        That is so after a stop reason too, which the counts come with.
        """
        if self._over:
            return True
        stopped, room = self._stop, self._answer.room
        try:
            found = decode_event(event.data)
        except UNREADABLE:
            return self._take_odd(event)
        delta = found.delta
        if delta is not None and delta.type == "text_delta" and delta.text:
            self._blocks.add_words(found.index, delta.text, thinking=False)
        else:
            self._take(found, event)
        if self._answer.room < 0 or self._vendor.room < 0 or self._blocks.too_deep:
            self._check_size()
        if not self._stop:
            return self._over
        # a reason that words follow was no end
        return self._over or not stopped or self._answer.room == room

    def read(self, body: bytes) -> None:
        """Take in a whole document (A2.4, A2.20)."""
        self._answer.mending = True
        try:
            message = read_document(body)
        except ValueError:
            message = None
        if message is None or message.get("error") or not isinstance(message.get("content"), list):
            self._break(document_error(self._peer, body))
            return
        self._begin(message)
        self._take_room(message.get("context_management"))
        self._take_stop(message.get("stop_reason"), message.get("stop_details"))
        self._blocks.stop_all()
        self._check_size()
        self._done = self._over = True

    def finish(self) -> StepResult:
        """The result, after the last event."""
        self._blocks.stop_all()
        self._answer.end()
        usage = self._earlier + self._count.usage()
        if self._error is None and not self._complete:
            self._error = incomplete_error(self._peer)
        if self._error is not None:
            return StepFailed(
                error=self._error,
                content=self._answer.words(),
                streamed=self._answer.streamed,
                usage=usage,
            )
        if not self.paused and self._stop != _CALLS:
            self._vendor.drop_unanswered()
            if self._stop == _PAUSED:
                self._notices.add("The provider paused; its answer was taken as it stood.")
        return StepAnswer(
            content=self._answer.content(cut=self._stop.lower() in _LENGTH),
            stop_reason=self._stop_reason(),
            raw_stop_reason=mend(self._stop) or None,
            usage=usage,
            notices=self._notices.all(),
            searches=self._vendor.searches(),
            made_room=CLEARED if self._cleared else "",
        )

    def fail(self, error: ProviderError) -> StepResult:
        """The result when the connection failed: it matters only while the answer is not whole."""
        if not self._complete:
            self._break(error)
        return self.finish()

    @property
    def paused(self) -> bool:
        """Whether the vendor waits to be asked to go on (A2.39)."""
        return (
            self._stop == _PAUSED
            and self._error is None
            and not self._answer.calls  # they must be answered first
            and self._continuations < MAX_CONTINUATIONS
        )

    def resume(self) -> None:
        """Go on with the next response of the same answer."""
        self._earlier += self._count.usage()
        self._continuations += 1
        self._begin_response()

    @property
    def _complete(self) -> bool:
        """Whether the vendor said that this is the end (A3.9, R09)."""
        return self._done or bool(self._stop)

    def _take_odd(self, event: SseEvent) -> bool:
        """Data that is no plain JSON of this API: the end, a sign of life, halves of characters."""
        data = event.data
        if event.event == "error":
            self._break(body_error(self._peer, data))
        elif data.startswith(_DONE):  # of a gateway; of one that never began a message it is none
            self._done, self._over = bool(self._id) or self._blocks.begun, True
        elif data.strip():
            self._answer.mending = True
            try:
                found = read_again(data)
            except ValueError:
                self._break(malformed_error(self._peer))
                return True
            if found is not None:
                self._take(found, event)
                self._check_size()
        return self._over

    def _take(self, found: MessageEvent, event: SseEvent) -> None:
        match found.type or event.event:
            case "content_block_delta":
                if found.delta is not None:
                    self._blocks.add(found.index, found.delta, event.data)
            case "content_block_start":
                if isinstance(found.content_block, dict):
                    self._blocks.start(found.index, cast("_Json", found.content_block))
            case "content_block_stop":
                self._blocks.stop(found.index)
            case _:
                self._take_rest(found, event)

    def _take_rest(self, found: MessageEvent, event: SseEvent) -> None:
        """What is about the whole message."""
        kind = found.type or event.event
        if event.event == "error" or kind == "error":
            self._break(body_error(self._peer, event.data))
        elif found.error:
            self._break(value_error(self._peer, found.error))
        elif kind == "message_start" and isinstance(found.message, dict):
            self._begin(cast("_Json", found.message))
        elif kind == "message_delta":
            self._count.take(found.usage)
            self._take_room(found.context_management)
            if found.delta is not None:
                self._take_stop(found.delta.stop_reason, found.delta.stop_details)
        elif kind == "message_stop":
            self._done = self._over = True

    def _begin(self, message: _Json) -> None:
        """The start of a message, or a whole one.

        Some gateways say it twice. When one that lost its source begins anew, with another id, the
        two halves must not become one answer.
        """
        id_: Any = message.get("id")
        if self._id and id_ and id_ != self._id and self._blocks.begun:
            self._break(malformed_error(self._peer, "A second message began within the first."))
            return
        self._count.take(message.get("usage"))
        self._id = id_ or self._id
        content: Any = message.get("content")
        if self._blocks.begun or not isinstance(content, list):
            return
        for block in cast("list[Any]", content):
            if isinstance(block, dict):
                self._blocks.take_whole(cast("_Json", block))

    def _take_stop(self, reason: Any, details: Any) -> None:
        if isinstance(reason, str) and reason:
            self._stop = reason
        why: Any = cast("_Json", details).get("explanation") if isinstance(details, dict) else None
        if isinstance(why, str) and why:
            self._notices.add(f"The provider refused: {mend(why[:_REASON_MAX])}")

    def _take_room(self, management: Any) -> None:
        """Take in whether results of calls were left out of what the model was shown (A4.40)."""
        if management is not None:
            edits = as_objects(as_object(management).get("applied_edits"))
            self._cleared |= any(read_count(edit.get("cleared_tool_uses")) for edit in edits)

    def _check_size(self) -> None:
        """Whether the answer has become too much; one that is whole by now is not spoilt by it."""
        if self._over:
            return
        if self._answer.room < 0:
            self._break(too_long_error(self._peer, self._answer.limit))
        elif self._vendor.room < 0:
            self._break(too_long_error(self._peer, f"{VENDOR_MAX_CHARS} characters"))
        elif self._blocks.too_deep:
            self._break(malformed_error(self._peer, "A block is nested too deeply."))

    def _break(self, error: ProviderError) -> None:
        self._error = self._error or error
        self._over = True

    def _stop_reason(self) -> str:
        reason = self._stop.lower()
        if reason in _LENGTH:
            return "max_tokens"
        if reason in _REFUSED:
            return "refusal"
        return "tool_calls" if self._answer.calls else "end_turn"
