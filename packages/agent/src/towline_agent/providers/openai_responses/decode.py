"""From the events of an answer to one result (A2.22 to A2.32). Pure: bytes in, words out.

An answer is a list of items. Words are told as they come; what the vendor wants back of an item
besides its words is kept in an opaque block before them, and goes back in its place (A1.8, A2.28).
"""

import json
from collections.abc import Callable
from typing import Any, Final

from towline_agent.errors import ProviderError
from towline_agent.providers.answer import AnswerWriter
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
from towline_agent.providers.json_value import UNREADABLE, as_object, as_objects, as_text
from towline_agent.providers.openai_responses.events import Event, decode_event, read_again
from towline_agent.providers.openai_responses.items import DIALECT
from towline_agent.providers.openai_responses.kept import KeptItems
from towline_agent.providers.openai_responses.search import SEARCH_CALL, found_searches
from towline_agent.providers.openai_responses.usage import read_usage
from towline_agent.providers.openai_responses.writing import ItemWriter
from towline_agent.providers.room import COMPACTION
from towline_agent.providers.surrogates import mend
from towline_protocol import Block, Opaque, SearchArtifact, SseEvent, Usage

__all__ = ["ResponsesDecoder"]

_Json = dict[str, Any]

_DONE: Final = b"[DONE]"
_MAX_STATUS: Final = 80
"""Characters of an unknown status that are shown."""
_CHARS_PER_TOKEN: Final = 4
"""The usual estimate (A3.28)."""
_TEXT_DELTA: Final = "response.output_text.delta"
_TAKES: Final[dict[str, Callable[[ItemWriter, Event], None]]] = {
    "response.refusal.delta": ItemWriter.add_refusal,
    "response.reasoning_summary_text.delta": ItemWriter.add_summary,
    "response.reasoning_summary.delta": ItemWriter.add_summary,
    "response.reasoning_text.delta": ItemWriter.add_reasoning,
    "response.reasoning.delta": ItemWriter.add_reasoning,
    "response.function_call_arguments.delta": ItemWriter.add_arguments,
    "response.function_call_arguments.done": ItemWriter.add_arguments,
    "response.output_text.done": ItemWriter.end_text,
    "response.refusal.done": ItemWriter.end_text,
    "response.reasoning_summary_text.done": ItemWriter.end_summary,
    "response.reasoning_text.done": ItemWriter.end_reasoning,
    "response.content_part.done": ItemWriter.end_part,
    "response.reasoning_part.done": ItemWriter.end_part,
    "response.reasoning_summary_part.done": ItemWriter.end_part,
    "response.output_text.annotation.added": ItemWriter.add_mark,
    "response.output_item.added": ItemWriter.begin_item,
    "response.output_item.done": ItemWriter.end_item,
}
"""Events about items, but for pieces of text. All others are signs of life (A2.30)."""
_ENDS: Final = {
    "response.completed": "completed",
    "response.done": "completed",
    "response.incomplete": "incomplete",
    "response.failed": "failed",
    "response.cancelled": "cancelled",
}
"""Events that end an answer, with the status that they mean."""
_OPEN_STATUSES: Final = frozenset({"", "in_progress", "queued"})
_LENGTH: Final = frozenset({"max_output_tokens", "max_tokens", "length"})
_REFUSED: Final = frozenset({"content_filter", "refusal", "safety"})


class ResponsesDecoder:
    """Reads one answer, as a stream of events or as one document.

    `feed` or `read` tell the pieces; `finish` or `fail` then give the one result.

    Args:
        peer: Who answers, for the sentences of errors.
        on_piece: Told of each piece in wire order.
    """

    def __init__(self, peer: Peer, on_piece: Callable[[Piece], None]) -> None:
        self.hides_reasoning = False
        """Whether the model reasoned and the gateway gave nothing of it that could go back: it
        must be asked for the encrypted form."""
        self._peer = peer
        self._answer = AnswerWriter(on_piece)
        self._writer = ItemWriter(self._answer)
        self._status = ""  # set once the answer has come to its end
        self._reason = ""
        self._done = False
        self._over = False
        self._usage: Usage | None = None
        self._error: ProviderError | None = None
        self._notices: list[str] = []

    def feed(self, event: SseEvent) -> bool:
        """Take in one event; true when all that matters has come."""
        if self._over:
            return True
        if event.event == "error":
            self._break(body_error(self._peer, event.data))
            return True
        try:
            found = decode_event(event.data)
        except UNREADABLE:
            again = self._read_again(event.data)
            if again is None:
                return self._over
            found = again
        if found.type == _TEXT_DELTA:
            self._writer.add_text(found)
        else:
            self._take(found, event)
        if self._answer.room < 0 and not self._over:
            self._break(too_long_error(self._peer, self._answer.limit))
        return self._over

    def read(self, body: bytes) -> None:
        """Take in a whole document (A2.4, A2.19, A2.20)."""
        self._answer.mending = True
        try:
            found = as_object(json.loads(body))
        except (ValueError, RecursionError):
            found = {}
        found = as_object(found.get("response")) or found
        if isinstance(found.get("output"), list) or found.get("status") == "failed":
            self._end(found, "")
        else:
            self._break(document_error(self._peer, body))

    def finish(self) -> StepResult:
        """The result, after the last event."""
        self._answer.end()
        if self._error is None and self._answer.room < 0:
            self._break(too_long_error(self._peer, self._answer.limit))
        if self._error is None and not self._complete:
            self._break(incomplete_error(self._peer))
        usage = self._usage or Usage()
        if self._error is not None:
            return StepFailed(
                error=self._error,
                content=self._answer.words(),
                streamed=self._answer.streamed,
                usage=usage,
            )
        content = self._content()
        made_room, used = self._room_made(usage)
        return StepAnswer(
            content=content,
            stop_reason=self._stop_reason(),
            raw_stop_reason=mend(self._reason or self._status) or None,
            usage=usage,
            notices=tuple(self._notices),
            searches=self._searches(),
            made_room=made_room,
            used=used,
        )

    def fail(self, error: ProviderError) -> StepResult:
        """The result when the connection failed: it matters only while the answer is not whole."""
        if not self._complete:
            self._break(error)
        return self.finish()

    @property
    def _complete(self) -> bool:
        """Whether the vendor said that this is the end (A3.9).

        `[DONE]` alone is one where all items came whole.
        """
        items = self._writer.items.all
        closed = self._done and bool(items) and all(item.done for item in items)
        return bool(self._status) or closed

    def _read_again(self, data: bytes) -> Event | None:
        """Data that is no plain JSON: the end, a sign of life, halves of characters, or rubbish."""
        if data.startswith(_DONE):
            self._done = self._over = True
            return None
        if not data.strip():
            return None
        try:
            found = read_again(data)
        except ValueError:
            self._break(malformed_error(self._peer))
            return None
        self._answer.mending = True
        return found

    def _take(self, found: Event, event: SseEvent) -> None:
        """All events but pieces of text."""
        kind = as_text(found.type) or event.event
        take = _TAKES.get(kind)
        if take is not None:
            take(self._writer, found)
        elif kind in _ENDS:
            self._end(as_object(found.response), _ENDS[kind])
        elif kind == _TEXT_DELTA:  # named by the line of the event alone
            self._writer.add_text(found)
        elif kind.endswith("error") or (found.error and not kind.startswith("response.")):
            self._break(body_error(self._peer, event.data))

    def _end(self, response: _Json, status: str) -> None:
        """Take in the answer as a whole, at its end."""
        stated = as_text(response.get("status"))
        status = status if stated in _OPEN_STATUSES else stated
        self._usage = read_usage(response.get("usage")) or self._usage
        error: Any = response.get("error")
        filled = any(as_object(error).values()) or as_text(error)
        if status in ("failed", "cancelled") or filled:
            said = {"message": f"The answer was ended with the status {status[:_MAX_STATUS]!r}."}
            self._break(value_error(self._peer, error if filled else said))
            return
        self._writer.end_all(as_objects(response.get("output")))
        if not status and stated:
            return  # queued, or still being written: no answer yet
        self._status = status or "completed"
        self._reason = as_text(as_object(response.get("incomplete_details")).get("reason"))
        self._over = True

    def _break(self, error: ProviderError) -> None:
        self._error = self._error or error
        self._over = True

    def _stop_reason(self) -> str:
        if self._reason in _LENGTH:
            return "max_tokens"
        if self._writer.refused or self._reason in _REFUSED:
            return "refusal"
        return "tool_calls" if self._answer.calls else "end_turn"

    def _content(self) -> tuple[Block, ...]:
        """The blocks, with what goes back of each item in its opaque block."""
        kept = KeptItems(self._writer.items.all)
        self.hides_reasoning = kept.hides_reasoning
        if kept.left_out:
            self._notices.append("Parts of the answer that only the vendor reads were not kept.")
        content = self._answer.content(cut=self._status == "incomplete")
        return tuple(
            Opaque(dialect=DIALECT) if isinstance(block, Opaque) and not block.raw else block
            for block in content
        )

    def _room_made(self, usage: Usage) -> tuple[str, int | None]:
        """What to tell of a conversation that the vendor summed up, and how large it is by now.

        The counts are of what was read before: the next request says how large it has become.
        """
        kept = [item.latest for item in self._writer.items.all if item.kind == COMPACTION]
        sizes = [len(as_text(item.get("encrypted_content"))) for item in kept]
        if not any(sizes):
            return "", None
        told = (
            f"The provider summed up the conversation so far, {usage.input + usage.cache_read:,} "
            "tokens, to make room; what is kept here is whole."
        )
        return told, usage.output + sizes[-1] // _CHARS_PER_TOKEN

    def _searches(self) -> tuple[SearchArtifact, ...]:
        items = self._writer.items.all
        calls = [item.latest for item in items if item.kind == SEARCH_CALL]
        return found_searches(calls, self._writer.cited)
