"""From `generateContent` to pieces and one result (A2.44 to A2.51). Pure: bytes in, words out."""

from collections.abc import Callable
from typing import Any, Final, cast

from towline_agent.errors import ProviderError, ResponseMalformed
from towline_agent.providers.answer import AnswerWriter, Notices, OpenCall, OpenWords
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
from towline_agent.providers.gemini.chunks import (
    Candidate,
    Chunk,
    FunctionCall,
    Part,
    decode_chunk,
    raw_parts,
    read_again,
)
from towline_agent.providers.gemini.finish import BROKEN, CUT, REFUSED, read_block, read_reason
from towline_agent.providers.gemini.flags import GeminiFlags
from towline_agent.providers.gemini.partial import PartialArguments, to_json_text
from towline_agent.providers.gemini.search import read_search
from towline_agent.providers.gemini.usage import has_counts, read_usage
from towline_agent.providers.json_stream import JsonSplitter
from towline_agent.providers.json_value import UNREADABLE
from towline_agent.providers.surrogates import mend, mend_all
from towline_protocol import Opaque, ProtocolError, SearchArtifact, SseEvent

__all__ = ["DIALECT", "SIGNATURE", "GeminiDecoder"]

DIALECT: Final = "gemini"
"""The dialect's name in `Opaque` blocks."""
SIGNATURE: Final = "thoughtSignature"
"""The field of a part that proves what the model thought up to there. An `Opaque` block with this
alone belongs to the text before it (A2.46)."""

_DONE: Final = b"[DONE]"
_MAX_NOTICE: Final = 400
"""Characters of a vendor's sentence that are shown (A3.21)."""


class GeminiDecoder:
    """Reads one answer: a stream of events, an array of chunks, or one document.

    `feed` or `read` tell the pieces; `finish` or `fail` then give the one result.

    Args:
        peer: Who answers, for the sentences of errors.
        flags: How this address speaks.
        on_piece: Told of each piece in wire order.
    """

    def __init__(self, peer: Peer, flags: GeminiFlags, on_piece: Callable[[Piece], None]) -> None:
        self._peer = peer
        self._flags = flags
        self._answer = AnswerWriter(on_piece)
        self._words: OpenWords | None = None
        self._call: tuple[OpenCall, PartialArguments] | None = None  # one that goes on
        self._candidate: int | None = None
        self._finish = ""
        self._message = ""
        self._blocked = ""
        self._whole = False
        self._counts: Any = None
        self._search: SearchArtifact | None = None
        self._error: ProviderError | None = None
        self._notices = Notices()
        self._chunks = 0  # of arrays

    def feed(self, event: SseEvent) -> bool:
        """Take in one event; true when all that matters has come.

        That is so after a finish reason with counts, or with a prompt that was stopped. A finish
        reason may stand in each chunk, so one that words follow was no end.
        """
        data = event.data
        if self._error is not None:
            return True
        ended, room = self._ended, self._answer.room
        if event.event == "error":
            self._break(body_error(self._peer, data))
        elif data.startswith(b"["):
            self._take_array(data)
        elif data:
            self._take_data(data)
        if self._error is not None:
            return True
        return self._ended and (not ended or self._answer.room == room)

    def read(self, body: bytes) -> None:
        """Take in a whole document, or a stream that comes as one JSON array (A2.44)."""
        if body.lstrip().startswith(b"["):
            self._take_array(body)
            return
        try:
            chunk = decode_chunk(body)
        except UNREADABLE:
            chunk = self._read_document(body)
        found = chunk and (
            chunk.candidates or chunk.prompt_feedback or chunk.usage_metadata or chunk.error
        )
        if chunk is None or not found:
            self._break(document_error(self._peer, body))
            return
        self._take(chunk, body)
        self._whole = bool(chunk.candidates)

    def finish(self) -> StepResult:
        """The result, after the last event."""
        self._end_call(whole=False)
        self._answer.end()
        if self._error is None:
            self._error = self._failure()
        if self._error is not None:
            return StepFailed(
                error=self._error,
                content=self._answer.words(),
                streamed=self._answer.streamed,
                usage=read_usage(self._counts),
            )
        return StepAnswer(
            content=self._answer.content(cut=self._finish in CUT),
            stop_reason=self._stop_reason(),
            raw_stop_reason=self._finish or self._blocked or None,
            usage=read_usage(self._counts),
            notices=self._explained(),
            searches=() if self._search is None else (self._search,),
        )

    def fail(self, error: ProviderError) -> StepResult:
        """The result when the connection failed: it matters only while the answer is not whole."""
        if not self._complete:
            self._break(error)
        return self.finish()

    @property
    def _complete(self) -> bool:
        """Whether the vendor said that this is the end (A3.9)."""
        return self._whole or bool(self._finish or self._blocked)

    @property
    def _ended(self) -> bool:
        """Whether nothing more is to be expected."""
        return self._whole or bool(self._blocked or (self._finish and self._counts))

    def _take_data(self, data: bytes) -> None:
        chunk = self._read(data)
        if chunk is not None:
            self._take(chunk, data)
        elif data.startswith(_DONE):  # of a gateway
            self._whole = True

    def _read_document(self, body: bytes) -> Chunk | None:
        self._answer.mending = True
        try:
            return read_again(body)
        except ValueError:
            return None

    def _take_array(self, body: bytes) -> None:
        """The chunks of an array; of one that is cut off, those that had come."""
        if body.startswith(_DONE):
            self._whole = True
            return
        splitter = JsonSplitter()
        try:
            for at in range(0, len(body), _SLICE):
                for value in splitter.feed(body[at : at + _SLICE]):
                    self._chunks += 1
                    if self._chunks > _MAX_CHUNKS:
                        self._break(too_long_error(self._peer, f"{_MAX_CHUNKS} chunks"))
                        return
                    self._take_data(value)
            splitter.close()
        except ProtocolError:
            if not self._complete:
                self._break(malformed_error(self._peer))

    def _read(self, data: bytes) -> Chunk | None:
        try:
            return decode_chunk(data)
        except UNREADABLE:
            self._answer.mending = True
        try:
            return read_again(data)
        except ValueError:
            if not self._complete and not data.startswith(_DONE):
                self._break(malformed_error(self._peer))
            return None

    def _take(self, chunk: Chunk, data: bytes) -> None:
        for place, candidate in enumerate(chunk.candidates or ()):
            if self._is_first(candidate):
                self._take_candidate(candidate, data, place)
        if chunk.usage_metadata and has_counts(chunk.usage_metadata):
            self._counts = chunk.usage_metadata
        if chunk.prompt_feedback:
            self._take_feedback(chunk.prompt_feedback)
        if chunk.error:
            self._break(value_error(self._peer, chunk.error))
        if self._answer.room < 0:
            self._break(too_long_error(self._peer, self._answer.limit))

    def _is_first(self, candidate: Candidate) -> bool:
        """Whether it is the candidate that came first; nobody asked for another."""
        index = candidate.index if isinstance(candidate.index, int) else 0
        if self._candidate is None:
            self._candidate = index
        if self._candidate != index:
            self._notices.add("The provider sent further candidates; the first one was taken.")
        return self._candidate == index

    def _take_candidate(self, candidate: Candidate, data: bytes, place: int) -> None:
        content = candidate.content
        if content is not None and content.parts:
            raw: list[Any] | None = None
            for number, part in enumerate(content.parts):
                text = part.text
                if part.function_call is not None:
                    self._take_call(part.function_call, part.thought_signature)
                elif type(text) is str:
                    self._take_words(part, text)
                else:
                    raw = self._raw(data, place) if raw is None else raw
                    self._keep(part, raw[number] if number < len(raw) else None)
        if candidate.finish_reason:
            vertex = self._flags.vertex
            self._finish = read_reason(candidate.finish_reason, vertex=vertex) or self._finish
        if isinstance(candidate.finish_message, str):
            self._message = mend(candidate.finish_message[:_MAX_NOTICE])
        if candidate.grounding_metadata:
            self._search = read_search(candidate.grounding_metadata, self._search)

    def _take_words(self, part: Part, text: str) -> None:
        thinking = part.thought is True
        signature = part.thought_signature
        signed = isinstance(signature, str) and bool(signature)
        if text or (signed and thinking):
            words = self._words
            if words is None or words.thinking != thinking:
                words = self._words = self._answer.open_words(thinking=thinking)
            self._answer.add_words(words, text)
            if signed and thinking:
                self._answer.sign(words, signature)
                self._words = None  # a proof covers what came before it, not what comes after
        if signed and not thinking:
            self._add({SIGNATURE: mend(signature)}, len(signature))

    def _take_call(self, part: FunctionCall, signature: Any) -> None:
        """A call, or more of one: only its first piece has a name (A2.49)."""
        name = part.name if isinstance(part.name, str) else ""
        id_ = part.id if isinstance(part.id, str) else ""
        going = self._call
        if going is not None and name and not (id_ and id_ == going[0].id):
            self._end_call(whole=True)
            going = None
        if going is None:
            if not name:
                return  # the end of a call that has ended before
            going = self._open_call(name, id_)
        call, arguments = going
        if isinstance(signature, str) and signature:
            call.signature = signature
            self._answer.room -= len(signature)
        if isinstance(part.args, str):
            self._answer.add_arguments(call, part.args)
        arguments.merge(part.args)
        arguments.add(part.partial_args)
        if part.will_continue is not True:
            self._end_call(whole=True)
        elif arguments.size > self._answer.room:
            self._break(too_long_error(self._peer, self._answer.limit))

    def _open_call(self, name: str, id_: str) -> tuple[OpenCall, PartialArguments]:
        self._words = None
        call = self._answer.open_call()
        call.name, call.id = name, id_
        self._answer.room -= len(name) + len(id_)
        self._call = (call, PartialArguments())
        return self._call

    def _end_call(self, *, whole: bool) -> None:
        if self._call is None:
            return
        call, arguments = self._call
        self._call = None
        if not call.parts:
            self._answer.add_arguments(call, arguments.text(whole=whole))

    def _raw(self, data: bytes, place: int) -> list[Any]:
        """The parts as they came, read once for a chunk of any number of them."""
        try:
            return raw_parts(data, place)
        except ValueError:
            return []

    def _keep(self, part: Part, found: Any) -> None:
        """A part of another kind: what the provider's own tools did, or a picture."""
        try:
            raw: Any = mend_all(found)
        except RecursionError:
            raw = None
        size = len(to_json_text(raw))
        if not isinstance(raw, dict) or not size:
            self._notices.add("A part of the answer that cannot be read was left out.")
            return
        raw = cast("dict[str, Any]", raw)
        if raw.keys() <= _MARKS:
            self._take_words(part, "")  # a proof without words, or nothing at all
            return
        kept = size <= self._answer.room
        inline: Any = raw.get("inlineData")
        if isinstance(inline, dict):
            kind = str(cast("dict[str, Any]", inline).get("mimeType"))[:_MAX_KIND]
            end = "." if kept else ", and too large to be kept."
            self._notices.add(
                f"The model made something of the kind {kind!r}; it is not shown{end}"
            )
        if kept or not isinstance(inline, dict):
            self._add(raw, size)

    def _add(self, raw: dict[str, Any], size: int) -> None:
        self._words = None
        self._answer.add_block(Opaque(dialect=DIALECT, raw=raw), size)

    def _take_feedback(self, feedback: Any) -> None:
        """A prompt that was not let through has no candidates."""
        if not isinstance(feedback, dict):
            return
        found = cast("dict[str, Any]", feedback)
        self._blocked = read_block(found.get("blockReason")) or self._blocked
        message = found.get("blockReasonMessage")
        if isinstance(message, str):
            self._message = mend(message[:_MAX_NOTICE])

    def _failure(self) -> ProviderError | None:
        """Why what came is no answer."""
        unknown = self._candidate is None and not self._blocked  # another dialect's, up to `[DONE]`
        if unknown or not self._complete:
            return incomplete_error(self._peer)
        if self._finish in BROKEN:
            return self._broken()
        if self._finish == "MISSING_THOUGHT_SIGNATURE":
            words = self._message or "A thought signature is missing in the request."
            return value_error(self._peer, {"code": 400, "message": words})
        empty = not self._answer.content(cut=False)
        if empty and self._finish not in _QUIET and self._stop_reason() == "end_turn":
            words = self._message or f"The model said nothing (finish reason {self._finish!r})."
            return value_error(self._peer, {"message": words})
        return None

    def _broken(self) -> ProviderError:
        """The model failed at its answer; what it wrote there may help people."""
        peer = self._peer
        said = f" It says: {peer.secrets.clean(self._message)}" if self._message else ""
        return ResponseMalformed(
            f"{peer.model!r} of {peer.provider!r} {BROKEN[self._finish]}; ask again, or take "
            f"another model.{said}",
            provider=peer.provider,
            model=peer.model,
            reason="malformed",
        )

    def _stop_reason(self) -> str:
        if self._finish in CUT:
            return "max_tokens"
        if self._finish in REFUSED or (self._blocked and not self._finish):
            return "refusal"
        return "tool_calls" if self._answer.calls else "end_turn"

    def _explained(self) -> tuple[str, ...]:
        """What was odd, and why the provider said no, for people."""
        if self._stop_reason() != "refusal":
            return self._notices.all()
        who = "the answer" if self._finish else "the prompt"
        reason = self._finish or self._blocked
        said = f": {self._message}" if self._message else "."
        self._notices.add(f"A filter of the provider stopped {who} ({reason}){said}")
        return self._notices.all()

    def _break(self, error: ProviderError) -> None:
        self._error = self._error or error


_QUIET: Final = frozenset({"", "STOP", "FINISH_REASON_UNSPECIFIED"})
"""Finish reasons with which an answer may be empty."""
_MAX_CHUNKS: Final = 65_536
"""Chunks of an answer that comes as arrays: as many as its longest answer has tokens."""
_SLICE: Final = 65_536
"""Bytes of an array that are split at once, so that an endless one is left soon."""
_MAX_KIND: Final = 80
"""Characters of a kind of media that are shown."""
_MARKS: Final = frozenset(
    {SIGNATURE, "mediaResolution", "partMetadata", "thought", "videoMetadata"}
)
"""Fields that say something of a part and are none themselves."""
