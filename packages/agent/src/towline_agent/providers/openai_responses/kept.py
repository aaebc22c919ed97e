"""What goes back of an answer's items besides their words (A1.8, A2.28, A2.31).

Of a message it is all but the text, which the text blocks hold; of reasoning and of items that
only the vendor understands it is the whole. The extra fields of a call go into its signature.
"""

from typing import Any, Final, cast

from towline_agent.providers.answer import ANSWER_MAX_CHARS
from towline_agent.providers.fragments import to_json
from towline_agent.providers.json_value import as_objects
from towline_agent.providers.openai_responses.items import MESSAGE, REASONING, Item
from towline_agent.providers.surrogates import mend_all

__all__ = ["KeptItems", "is_replayable"]

_Json = dict[str, Any]

_KEPT_MAX_BYTES: Final = 8 * ANSWER_MAX_CHARS
"""Bytes that are kept of one answer besides its words: encrypted reasoning is larger than these."""
_DEPTH: Final = 64
"""Levels of lists and objects inside each other; real items have less than ten."""
_KNOWN: Final = frozenset({"type", "name", "arguments", "call_id", "status"})
"""Fields of a call that our block holds, or that the API does not want."""


def is_replayable(reasoning: _Json) -> bool:
    """Whether a reasoning item holds what can be understood.

    Its id alone is nothing to a vendor that stores nothing (A2.26).
    """
    if reasoning.get("encrypted_content"):
        return True
    return any(part.get("text") for part in as_objects(reasoning.get("content")))


class KeptItems:
    """Fills the opaque blocks and the signatures of an answer that is over.

    Args:
        items: The items of the answer.
    """

    def __init__(self, items: list[Item]) -> None:
        self.hides_reasoning = False
        """Whether there was reasoning of which nothing can go back."""
        self.left_out = False
        """Whether something was too large."""
        self._room = _KEPT_MAX_BYTES
        for item in items:
            if item.call is not None:
                item.call.signature = self._signature(item)
            elif item.raw is not None:
                item.raw.update(self._body(item))

    def _signature(self, item: Item) -> str | None:
        extra = {key: value for key, value in item.latest.items() if value is not None}
        extra = self._fit({key: value for key, value in extra.items() if key not in _KNOWN})
        return to_json(extra).decode() if extra else None

    def _body(self, item: Item) -> _Json:
        if item.kind == MESSAGE:
            return self._fit(_head(item)) if item.done and item.words else {}
        if item.kind != REASONING:
            return self._fit(item.latest) if item.done else {}
        found = {key: value for key, value in item.latest.items() if value is not None}
        if item.done and not is_replayable(found):
            self.hides_reasoning = True
        # What is gone leaves its mark: the items after it must not go back under their ids.
        return (item.done and self._fit(found)) or {"type": REASONING}

    def _fit(self, raw: _Json) -> _Json:
        """The item with clean texts; empty when it is too large or too deep."""
        if not raw or _is_deep(raw, _DEPTH):
            return {}
        size = len(to_json(raw))
        if size > self._room:
            self.left_out = True
            return {}
        self._room -= size
        return cast("_Json", mend_all(raw))


def _head(item: Item) -> _Json:
    """A message without its text, its parts in the order of the text blocks."""
    parts = as_objects(item.latest.get("content"))
    told = sorted(item.words, key=lambda key: item.words[key].place)
    heads = [parts[place] if 0 <= place < len(parts) else {} for _, place in told]
    head = {key: value for key, value in item.latest.items() if value is not None}
    head["content"] = [
        {key: value for key, value in part.items() if key not in ("text", "refusal", "logprobs")}
        for part in heads
    ]
    return head


def _is_deep(value: Any, left: int) -> bool:
    if not isinstance(value, dict | list):
        return False
    inner = cast("_Json", value).values() if isinstance(value, dict) else cast("list[Any]", value)
    return left == 0 or any(_is_deep(item, left - 1) for item in inner)
