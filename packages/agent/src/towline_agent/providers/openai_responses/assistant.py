"""From a message of the model back to the items that it was. Pure."""

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

from towline_agent.providers.json_value import as_object, as_objects, as_text
from towline_agent.providers.openai_responses.flags import ResponsesFlags
from towline_agent.providers.openai_responses.items import CALL, DIALECT, MESSAGE, REASONING
from towline_agent.providers.openai_responses.kept import is_replayable
from towline_agent.providers.openai_responses.wire import Wire
from towline_agent.providers.wire_call import wire_arguments, wire_name
from towline_protocol import Block, Opaque, Text, ToolCall, ToolResult

__all__ = ["assistant_items"]

_Json = dict[str, Any]

_ID_MAX: Final = 64
"""Characters of an item's id that the API takes; some gateways make longer ones."""


def assistant_items(
    content: Sequence[Block], wire: Wire, flags: ResponsesFlags, *, replay: bool
) -> list[_Json]:
    """The items of one message.

    Args:
        content: Its blocks.
        wire: Its ids.
        flags: How the gateway speaks.
        replay: Whether encrypted reasoning goes back.
    """
    return _Items(content, wire, flags, replay).build()


class _Items:
    """The items of one message, as they are put together."""

    def __init__(
        self, content: Sequence[Block], wire: Wire, flags: ResponsesFlags, replay: bool
    ) -> None:
        self._content = content
        self._wire = wire
        self._replay = replay
        self._names = iter(wire.names)
        self._out: list[_Json] = []
        self._said: list[_Json] | None = None  # the content of the message that is open
        self._head: _Json = {}
        self._parts: Iterator[_Json] = iter(())
        raws = [raw for raw in map(self._raw, content) if raw]
        self._answered = {
            as_text(raw.get("call_id")) for raw in raws if _kind(raw).endswith("_output")
        }
        # A vendor that knows an item wants the reasoning before it too.
        self._ids = flags.item_ids and all(
            self._is_usable(raw) for raw in raws if raw.get("type") == REASONING
        )

    def build(self) -> list[_Json]:
        for place, block in enumerate(self._content):
            match block:
                case Text() if block.text:
                    self._add_text(block.text)
                case ToolCall():
                    self._close()
                    self._out.append(self._call(block, place))
                case ToolResult():
                    next(self._names, None)
                case Opaque():
                    self._add_opaque(self._raw(block), place)
                case _:
                    pass
        while self._out and self._out[-1]["type"] == REASONING:
            self._out.pop()  # reasoning alone is refused (R33)
        return self._out

    def _raw(self, block: Block) -> _Json:
        """A vendor's item, if it is one that this gateway gave."""
        if not isinstance(block, Opaque) or block.dialect != DIALECT or self._wire.foreign:
            return {}
        return as_object(block.raw)

    def _is_usable(self, raw: _Json) -> bool:
        return is_replayable(raw) and (self._replay or not raw.get("encrypted_content"))

    def _add_text(self, text: str) -> None:
        part = next(self._parts, None)
        if part is None and self._head:
            self._close()
        if self._said is None:
            self._said = []
            head = self._head or {"type": MESSAGE, "role": "assistant"}
            self._out.append({**head, "content": self._said})
        self._said.append(_said(part or {}, text))

    def _close(self) -> None:
        """End the message that is open: what is said next is another one."""
        self._said, self._head, self._parts = None, {}, iter(())

    def _add_opaque(self, raw: _Json, place: int) -> None:
        kind = _kind(raw)
        if not kind or self._is_unanswered(raw):
            return
        if kind == REASONING:
            if self._is_usable(raw):
                self._close()
                self._out.append({"summary": [], **self._named(raw, place)})
        elif kind == MESSAGE and not _has_words(raw):
            self._close()
            self._head = {**self._named(raw, place), "role": "assistant"}
            self._parts = iter(as_objects(raw.get("content")))
        elif self._replay if raw.get("encrypted_content") else self._is_known(place):
            self._close()
            self._out.append(self._named(raw, place))

    def _is_known(self, place: int) -> bool:
        """Whether the vendor finds an item by its id, which is all there is of it."""
        return self._ids and place not in self._wire.repeated

    def _is_unanswered(self, raw: _Json) -> bool:
        """Whether it is a vendor's call that waits for a client's answer: nobody gave one."""
        call: Any = raw.get("call_id")
        asks = isinstance(call, str) and _kind(raw).endswith("_call")
        return asks and call not in self._answered

    def _call(self, call: ToolCall, place: int) -> _Json:
        extra = {} if self._wire.foreign else self._named(_signed(call.signature), place)
        return {
            **extra,
            "type": CALL,
            "call_id": next(self._names),
            "name": wire_name(call.name),
            "arguments": wire_arguments(call.arguments),
        }

    def _named(self, raw: _Json, place: int) -> _Json:
        """The item, with its id only where that may be sent."""
        id_: Any = raw.get("id")
        fits = isinstance(id_, str) and 0 < len(id_) <= _ID_MAX
        if self._ids and fits and place not in self._wire.repeated:
            return raw
        return {key: value for key, value in raw.items() if key != "id"}


def _kind(raw: _Json) -> str:
    return as_text(raw.get("type"))


def _has_words(message: _Json) -> bool:
    return any(
        part.get("text") or part.get("refusal") for part in as_objects(message.get("content"))
    )


def _said(part: _Json, text: str) -> _Json:
    """A part of a message with its text."""
    if part.get("type") == "refusal":
        return {**part, "refusal": text}
    return {"type": "output_text", "annotations": [], **part, "text": text}


def _signed(signature: str | None) -> _Json:
    """The fields of a call that the vendor added to it; none if the signature is not of ours."""
    if not signature or not signature.startswith("{"):
        return {}
    try:
        return as_object(json.loads(signature))
    except (ValueError, RecursionError):
        return {}
