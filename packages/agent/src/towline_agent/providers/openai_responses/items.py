"""Which item of an answer does an event belong to? Gateways disagree on place and id."""

from typing import Any, Final

from towline_agent.providers.answer import OpenCall, OpenWords
from towline_agent.providers.json_value import as_text

__all__ = ["CALL", "DIALECT", "MESSAGE", "REASONING", "Item", "Items", "kind_of"]

_Json = dict[str, Any]

DIALECT: Final = "openai_responses"
"""The dialect's name in `Opaque` blocks."""
MESSAGE: Final = "message"
"""An item of words."""
REASONING: Final = "reasoning"
"""An item of thinking."""
CALL: Final = "function_call"
"""An item that asks for a tool."""


def kind_of(raw: _Json) -> str:
    """What an item is; a message that somebody else wrote is no message of the model."""
    kind = as_text(raw.get("type"))
    if kind == MESSAGE and raw.get("role", "assistant") != "assistant":
        return "message of another"
    return kind


class Item:
    """One item of an answer that is still being written."""

    __slots__ = ("call", "call_id", "done", "id", "index", "kind", "latest", "raw", "words")

    def __init__(self, kind: str, index: int | None, raw: _Json) -> None:
        self.kind = kind
        """What it is; see `kind_of`."""
        self.index = index
        """Its place in the answer, where the gateway says it."""
        self.id = as_text(raw.get("id"))
        """The id that it began with; may be empty."""
        self.call_id = as_text(raw.get("call_id"))
        """The id of the call that it is or answers; empty for none."""
        self.latest = raw
        """The item as it came last."""
        self.done = False
        """Whether it came whole."""
        self.raw: _Json | None = None
        """What goes into its opaque block at the end; `None` when it has none."""
        self.words: dict[tuple[str, int], OpenWords] = {}
        """Its parts that have words, by field and place."""
        self.call: OpenCall | None = None
        """The call that it is."""

    def is_same(self, raw: _Json) -> bool:
        """Whether an item that came later may be this one."""
        pairs = ((self.id, raw.get("id")), (self.call_id, raw.get("call_id")))
        return all(not ours or not theirs or ours == theirs for ours, theirs in pairs)


class Items:
    """The items of one answer, in the order in which they begin."""

    def __init__(self) -> None:
        self.all: list[Item] = []
        """All of them."""
        self._by_id: dict[tuple[str, str], Item] = {}
        self._by_index: dict[tuple[str, int], Item] = {}
        self._newest: dict[str, Item] = {}

    def add(self, item: Item) -> None:
        """Take in a new item."""
        self.all.append(item)
        self._newest[item.kind] = item
        if item.id:
            self._by_id[item.kind, item.id] = item
        if item.index is not None:
            self._by_index[item.kind, item.index] = item

    def find(self, kind: str, index: Any, id_: Any) -> Item | None:
        """The item that an event names, by its id, else by its place.

        An event that names none belongs to the newest item of its kind.
        """
        numbered = type(index) is int
        named = type(id_) is str and bool(id_)
        item = self._by_id.get((kind, id_)) if named else None
        if item is not None and (not numbered or item.index is None or item.index == index):
            return item
        if numbered:
            return self._by_index.get((kind, index))
        return None if named else self._newest.get(kind)
