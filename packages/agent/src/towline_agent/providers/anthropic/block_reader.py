"""Putting the blocks of a response together while they come, whatever order they come in."""

from collections.abc import Callable
from typing import Any, Final, cast

from towline_agent.providers.answer import AnswerWriter, OpenCall, OpenWords
from towline_agent.providers.anthropic.blocks import DIALECT
from towline_agent.providers.anthropic.events import Delta, read_delta
from towline_agent.providers.anthropic.vendor_blocks import VendorBlock, VendorLog
from towline_agent.providers.json_value import to_text
from towline_protocol import Opaque

__all__ = ["BlockReader"]

_Json = dict[str, Any]

_NO_INDEX: Final = -1


class _OpenBlock:
    """A block that is still coming. One of words takes its place with the first of them."""

    __slots__ = ("call", "citations", "input", "key", "kind", "vendor", "words")

    def __init__(self, key: int, kind: str) -> None:
        self.key = key
        self.kind = kind
        self.words: OpenWords | None = None
        self.call: OpenCall | None = None
        self.vendor: VendorBlock | None = None
        self.input: Any = None  # a call's input that came with its beginning
        self.citations: list[Any] = []


class BlockReader:
    """The blocks of one response, by the numbers that the API gives them.

    Args:
        answer: Where words and calls are written down.
        vendor: Where the vendor's own blocks are kept.
        note: Told of what was odd.
    """

    def __init__(
        self, answer: AnswerWriter, vendor: VendorLog, note: Callable[[str], None]
    ) -> None:
        self.begun = False
        """Whether a block has come."""
        self.too_deep = False
        """Whether a block came that nobody could keep."""
        self._answer = answer
        self._vendor = vendor
        self._note = note
        self._blocks: dict[int, _OpenBlock] = {}
        self._newest: _OpenBlock | None = None

    def take_whole(self, raw: _Json) -> None:
        """Take in a block that has all that belongs to it."""
        self.start(None, raw)
        self.stop(None)

    def start(self, index: int | None, raw: _Json) -> None:
        """Begin a block."""
        kind: Any = raw.get("type")
        block = self._open(index, kind if isinstance(kind, str) else "")
        self._answer.room -= 1  # blocks without words are bounded too
        match kind:
            case "text":
                self._add_some(index, raw.get("text"), thinking=False)
                citations: Any = raw.get("citations")
                if isinstance(citations, list):
                    block.citations.extend(cast("list[Any]", citations))
            case "thinking":
                self._add_some(index, raw.get("thinking"), thinking=True)
                self._sign(index, raw.get("signature"))
            case "redacted_thinking":
                self._redact(block, raw.get("data"))
            case "tool_use":
                self._start_call(block, raw)
            case str():
                self._start_vendor(block, raw)
            case _:
                pass

    def add(self, index: int | None, delta: Delta, data: bytes) -> None:
        """Take in a piece of a block.

        Args:
            index: The block's number; `None` for the newest.
            delta: The piece.
            data: The event that it came in.
        """
        match delta.type:
            case "text_delta":
                self._add_some(index, delta.text, thinking=False)
            case "thinking_delta":
                self._add_some(index, delta.thinking, thinking=True)
            case "signature_delta":
                self._sign(index, delta.signature)
            case "input_json_delta":
                self._add_input(index, delta.partial_json or "")
            case "citations_delta":
                block = self._find(index)
                if block is not None and delta.citation:
                    self._vendor.room -= len(data)
                    block.citations.append(delta.citation)
            case _:
                block = self._find(index)
                if block is not None and block.vendor is not None:
                    self._vendor.merge(block.vendor, read_delta(data))

    def add_words(self, index: int | None, text: str, *, thinking: bool) -> None:
        """Add to a block of words."""
        block = self._blocks.get(index) if index is not None else self._newest
        words = block.words if block is not None else None
        if words is None or words.thinking is not thinking:
            words = self._open_words(index, thinking=thinking)
        self._answer.add_words(words, text)

    def stop(self, index: int | None) -> None:
        """End a block."""
        self._close(self._find(index))

    def stop_all(self) -> None:
        """End all blocks; some gateways do not say where one ends."""
        for block in list(self._blocks.values()):
            self._close(block)

    def _find(self, index: int | None) -> _OpenBlock | None:
        return self._newest if index is None else self._blocks.get(index)

    def _open(self, index: int | None, kind: str) -> _OpenBlock:
        key = _NO_INDEX if index is None else index
        self._close(self._blocks.get(key))
        block = self._blocks[key] = self._newest = _OpenBlock(key, kind)
        self.begun = True
        return block

    def _open_words(self, index: int | None, *, thinking: bool) -> OpenWords:
        """Take a place for words; a piece of another kind than its block begins a block."""
        kind = "thinking" if thinking else "text"
        block = self._find(index)
        if block is None or block.kind != kind:
            block = self._open(index, kind)
        words = block.words = self._answer.open_words(thinking=thinking)
        return words

    def _add_some(self, index: int | None, text: Any, *, thinking: bool) -> None:
        if isinstance(text, str) and text:
            self.add_words(index, text, thinking=thinking)

    def _start_call(self, block: _OpenBlock, raw: _Json) -> None:
        call = block.call = self._answer.open_call()
        id_, name, caller = raw.get("id"), raw.get("name"), raw.get("caller")
        call.id = id_ if isinstance(id_, str) else "" if id_ is None else to_text(id_)
        call.name = name if isinstance(name, str) else ""
        if isinstance(caller, dict) and cast("_Json", caller).get("type") != "direct":
            call.signature = to_text(caller)  # which program called; it goes back with the call
        self._answer.room -= len(call.id) + len(call.name) + len(call.signature or "")
        block.input = raw.get("input")

    def _start_vendor(self, block: _OpenBlock, raw: _Json) -> None:
        block.vendor = self._vendor.open(raw)
        if block.vendor is not None:
            self._answer.add_block(Opaque(dialect=DIALECT, raw=block.vendor.raw), 0)
        elif self._vendor.room >= 0:
            self.too_deep = True

    def _redact(self, block: _OpenBlock, data: Any) -> None:
        if isinstance(data, str) and data:
            words = block.words = self._answer.open_words(thinking=True)
            words.redacted = True
            self._answer.sign(words, data)

    def _sign(self, index: int | None, signature: Any) -> None:
        block = self._find(index)
        if block is None or block.kind != "thinking" or not isinstance(signature, str):
            return
        if signature:
            words = block.words or self._open_words(index, thinking=True)
            self._answer.sign(words, signature)

    def _add_input(self, index: int | None, piece: str) -> None:
        block = self._find(index)
        if block is not None and block.call is not None:
            if piece:
                self._answer.add_arguments(block.call, piece)
        elif block is not None and block.vendor is not None:
            self._vendor.add_input(block.vendor, piece)
        elif piece:
            self._note("A piece of a call that never began was left out.")

    def _close(self, block: _OpenBlock | None) -> None:
        """End a block; what came with its beginning stands in for pieces that never came."""
        if block is None:
            return
        if self._blocks.get(block.key) is block:
            del self._blocks[block.key]
        if block.call is not None and not block.call.parts and block.input not in (None, {}, ""):
            text = block.input if isinstance(block.input, str) else to_text(block.input) or "{"
            self._answer.add_arguments(block.call, text)
        if block.vendor is not None:
            self._vendor.close(block.vendor)
        if block.citations and block.words is not None and block is self._newest:
            cited = self._vendor.cite(block.citations)
            if cited is not None:
                self._answer.add_block(cited, 0)
        block.input, block.vendor, block.citations = None, None, []
