"""Writing the items of an answer down while they come: each word once, however often it is said.

A gateway may send an item piece by piece, as a whole when it is done, or only in the list at the
end. Each of these is laid over what was told before, and what is missing is told.
"""

import json
from typing import Any, Final

from towline_agent.providers.answer import AnswerWriter, OpenCall, OpenWords
from towline_agent.providers.json_value import as_object, as_objects, as_text, holds_object
from towline_agent.providers.openai_responses.events import Event
from towline_agent.providers.openai_responses.items import (
    CALL,
    DIALECT,
    MESSAGE,
    REASONING,
    Item,
    Items,
    kind_of,
)
from towline_agent.providers.openai_responses.search import Citations
from towline_agent.providers.surrogates import mend
from towline_protocol import Opaque

__all__ = ["ItemWriter"]

_Json = dict[str, Any]

_PARTS: Final = {
    "output_text": (MESSAGE, "content"),
    "refusal": (MESSAGE, "content"),
    "summary_text": (REASONING, "summary"),
    "reasoning_text": (REASONING, "content"),
}
"""Kinds of parts: the item's kind, and its field that holds them."""
_ITEM_CHARS: Final = 16
"""What an item counts for besides its words, so that an endless list of empty ones has an end."""
_REPEAT_CHARS: Final = 64
"""What a whole counts for that is not what was told piece by piece: to compare them takes time."""
_LOOK_AHEAD: Final = 64
"""Items of a kind among which the one in the list is looked for; nearly always it is the first."""


class ItemWriter:
    """The items of one answer.

    Args:
        answer: Where their words go.
    """

    def __init__(self, answer: AnswerWriter) -> None:
        self.items = Items()
        """The items so far."""
        self.cited = Citations()
        """The pages that the answer names."""
        self.refused = False
        """Whether the model refused in words."""
        self._answer = answer

    def add_text(self, found: Event) -> None:
        """A piece of what is said."""
        self._add(found, MESSAGE, "content")

    def add_refusal(self, found: Event) -> None:
        """A piece of a refusal."""
        self.refused = True
        self._add(found, MESSAGE, "content")

    def add_summary(self, found: Event) -> None:
        """A piece of a summary of reasoning."""
        self._add(found, REASONING, "summary")

    def add_reasoning(self, found: Event) -> None:
        """A piece of reasoning in full."""
        self._add(found, REASONING, "content")

    def end_text(self, found: Event) -> None:
        """The whole text of a part of a message."""
        self._add_rest(found, found.text or found.refusal, MESSAGE, "content")

    def end_summary(self, found: Event) -> None:
        """The whole text of a part of a summary."""
        self._add_rest(found, found.text, REASONING, "summary")

    def end_reasoning(self, found: Event) -> None:
        """The whole text of a part of reasoning."""
        self._add_rest(found, found.text, REASONING, "content")

    def end_part(self, found: Event) -> None:
        """A whole part."""
        part = as_object(found.part)
        kind = as_text(part.get("type"))
        if kind in _PARTS:
            self._add_rest(found, part.get("text") or part.get("refusal"), *_PARTS[kind])

    def add_arguments(self, found: Event) -> None:
        """A piece of arguments, or all of them."""
        item = self.items.find(CALL, found.output_index, found.item_id)
        if item is None:
            item = self._open(CALL, found.output_index, {"id": found.item_id})
        if item.call is None or item.done:
            return
        if found.arguments is not None:
            self._tell_arguments(item.call, found.arguments)
        elif type(found.delta) is str and found.delta:
            self._answer.add_arguments(item.call, found.delta)

    def add_mark(self, found: Event) -> None:
        """A mark on a text."""
        self.cited.add(found.annotation)

    def begin_item(self, found: Event) -> None:
        """An item begins."""
        raw = as_object(found.item)
        if not raw:
            return
        kind = kind_of(raw)
        item = self.items.find(kind, found.output_index, raw.get("id"))
        if item is None or item.done or not item.is_same(raw):
            self._open(kind, found.output_index, raw)

    def end_item(self, found: Event) -> None:
        """An item is whole."""
        raw = as_object(found.item)
        if not raw:
            return
        kind = kind_of(raw)
        item = self.items.find(kind, found.output_index, raw.get("id"))
        if item is None or (item.done and not item.is_same(raw)):
            item = self._open(kind, found.output_index, raw)
        self._close(item, raw)

    def end_all(self, output: list[_Json]) -> None:
        """The list of all items, at the end of the answer."""
        left: dict[str, list[Item]] = {}
        for item in self.items.all:
            left.setdefault(item.kind, []).append(item)
        for place, raw in enumerate(output):
            kind = kind_of(raw)
            alike = left.get(kind)
            if alike:
                # some gateways name an item anew at the end: then the next of its kind is it
                same = next((item for item in alike[:_LOOK_AHEAD] if item.is_same(raw)), alike[0])
                alike.remove(same)
            else:
                same = self._open(kind, place, raw)
            self._close(same, raw)
            if self._answer.room < 0:
                return

    def _add(self, found: Event, kind: str, field: str) -> None:
        text = found.delta
        if type(text) is not str or not text:
            return
        words = self._words(found, kind, field)
        if words is not None:
            self._answer.add_words(words, text)

    def _add_rest(self, found: Event, whole: Any, kind: str, field: str) -> None:
        if isinstance(whole, str) and whole:
            words = self._words(found, kind, field)
            if words is not None:
                self._tell_rest(words, whole)

    def _words(self, found: Event, kind: str, field: str) -> OpenWords | None:
        """The part that an event speaks of; `None` when its item is over already."""
        item = self.items.find(kind, found.output_index, found.item_id)
        if item is None:
            item = self._open(kind, found.output_index, {"id": found.item_id})
        elif item.done:
            return None
        place = found.summary_index if field == "summary" else found.content_index
        key = (field, place if type(place) is int and place >= 0 else 0)
        return item.words.get(key) or self._open_words(item, key)

    def _open_words(self, item: Item, key: tuple[str, int]) -> OpenWords:
        words = self._answer.open_words(thinking=item.kind == REASONING)
        item.words[key] = words
        return words

    def _open(self, kind: str, index: Any, raw: _Json) -> Item:
        """Begin an item. What is kept of it gets its place now: vendors want their order back."""
        item = Item(kind, index if type(index) is int else None, raw)
        self.items.add(item)
        self._answer.room -= _ITEM_CHARS
        if kind == CALL:
            item.call = self._answer.open_call()
            self._name(item.call, raw)
        elif kind != MESSAGE or item.id or raw.get("phase"):
            item.raw = {}
            self._answer.add_block(Opaque(dialect=DIALECT, raw=item.raw), 0)
        return item

    def _close(self, item: Item, raw: _Json) -> None:
        """Take in an item as a whole."""
        if item.done:
            self._answer.room -= _REPEAT_CHARS
        if item.call is not None:
            self._name(item.call, raw)
            self._tell_arguments(item.call, raw.get("arguments"))
        elif item.kind in (MESSAGE, REASONING):
            for field in ("summary", "content"):
                self._tell_parts(item, field, as_objects(raw.get(field)))
        if not item.done:
            item.latest = raw
            item.done = True

    def _name(self, call: OpenCall, raw: _Json) -> None:
        """Take the name and the id of a call; either may come late."""
        before = len(call.name) + len(call.id)
        call.name = call.name or as_text(raw.get("name"))
        call.id = as_text(raw.get("call_id")) or call.id or as_text(raw.get("id"))
        self._answer.room -= max(0, len(call.name) + len(call.id) - before)

    def _tell_parts(self, item: Item, field: str, parts: list[_Json]) -> None:
        """Tell what is missing of an item's parts.

        Some gateways number parts in their events otherwise than they list them in the end.
        """
        odd = sorted(place for key, place in item.words if key == field and place >= len(parts))
        for place, part in enumerate(parts):
            if item.kind == MESSAGE and part.get("type") == "refusal":
                self.refused = True
            for mark in as_objects(part.get("annotations")):
                self.cited.add(mark)
            whole = as_text(part.get("text")) or as_text(part.get("refusal"))
            key = (field, place)
            if key not in item.words and odd:
                item.words[key] = item.words.pop((field, odd.pop(0)))
            if whole:
                self._tell_rest(item.words.get(key) or self._open_words(item, key), whole)

    def _tell_rest(self, words: OpenWords, whole: str) -> None:
        """Tell what is missing of a text; one that was told otherwise stays as it was told."""
        told = _join(words.parts)
        whole = mend(whole)
        if not whole.startswith(told):
            self._answer.room -= _REPEAT_CHARS
        elif len(whole) > len(told):
            words.half = ""
            self._answer.add_words(words, whole[len(told) :])

    def _tell_arguments(self, call: OpenCall, whole: Any) -> None:
        """Tell what is missing of arguments.

        Pieces that make no sense give way to the whole: some gateways send them encrypted.
        """
        if whole is None:
            return
        text = mend(whole if isinstance(whole, str) else _to_json(whole) or "{")
        told = _join(call.parts)
        if text.startswith(told):
            if len(text) > len(told):
                call.half = ""
                self._answer.add_arguments(call, text[len(told) :])
            return
        self._answer.room -= _REPEAT_CHARS
        if text and not holds_object(told):
            self._answer.room -= len(text)
            call.parts, call.half = [text], ""


def _join(parts: list[str]) -> str:
    """The text so far, joined once however often it is asked for."""
    text = "".join(parts)
    parts[:] = [text] if text else []
    return text


def _to_json(value: Any) -> str:
    """A value as JSON; nothing where it cannot be written down again (A1.24)."""
    try:
        return json.dumps(value, ensure_ascii=False)
    except (RecursionError, ValueError):
        return ""
