"""Messages that were encoded before: a long history is sent again with every step (A4.5)."""

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final, Generic, Protocol, Self, TypeVar

import msgspec

from towline_agent.providers.surrogates import mend_all
from towline_protocol import Message, Text

__all__ = ["Prefixes", "to_json"]

_MAX_BYTES: Final = 8 * 1024 * 1024
"""Bytes of JSON that are kept for one provider; about the longest window that is filled with text.
"""
_KEPT_BYTES: Final = 1024
"""What one more conversation counts for beside its JSON: its messages and its state, roughly."""
_SHORT_BYTES: Final = 1024
"""A first prompt of words up to this is not kept: it is written anew as fast as it is found, and
of many short runs most never go on."""

_NOTHING: Final[tuple[tuple[Message, ...], bytes, None]] = ((), b"", None)


class _Copyable(Protocol):
    def copy(self) -> Self: ...


_S = TypeVar("_S", bound=_Copyable)


class Prefixes(Generic[_S]):
    """The JSON of conversations as they were last sent, to go on from there.

    Args:
        begin: Makes the state of an empty conversation: what a message's JSON depends on beside
            the message itself, such as the ids that calls before it have taken.
        add: The JSON objects that messages become, joined; brings the state forward.
        max_bytes: Bytes that are kept, as JSON and beside it.
        joint: What stands between the parts; a dialect whose parts hold their own has none.
    """

    def __init__(
        self,
        begin: Callable[[], _S],
        add: Callable[[_S, tuple[Message, ...]], bytes],
        max_bytes: int = _MAX_BYTES,
        *,
        joint: bytes = b",",
    ) -> None:
        self._begin = begin
        self._add = add
        self._joint = joint
        self._max_bytes = max_bytes
        self._size = 0
        # a plain dict would look for its oldest key behind all that were taken out before
        self._kept: OrderedDict[int, tuple[tuple[Message, ...], bytes, _S]] = OrderedDict()
        self._lock = threading.Lock()  # one agent may run in two loops at once

    def count_known(self, messages: tuple[Message, ...]) -> int:
        """How many messages, from the first on, are kept just as they are."""
        known = self._kept.get(id(messages[0]), _NOTHING)[0] if messages else ()
        return len(known) if messages[: len(known)] == known else 0

    def encode(self, messages: tuple[Message, ...]) -> tuple[bytes, _S]:
        """The JSON objects of a conversation, joined by commas, and the state after it.

        The state is the caller's own. What was encoded once is not encoded again, as long as the
        conversation goes on as it began.
        """
        if not messages:
            return b"", self._begin()
        known, encoded, state = self._kept.get(id(messages[0]), _NOTHING)
        if state is None or messages[: len(known)] != known:
            known, encoded, state = (), b"", self._begin()
        else:
            state = state.copy()
        if len(known) < len(messages):
            added = self._add(state, messages[len(known) :])
            encoded += self._joint + added if encoded and added else added
            if len(encoded) > _SHORT_BYTES or not _is_one_of_words(messages):
                self._keep(messages, encoded, state.copy())
        return encoded, state

    def _keep(self, messages: tuple[Message, ...], encoded: bytes, state: _S) -> None:
        with self._lock:
            before = self._kept.pop(id(messages[0]), None)
            known = 0 if before is None else len(before[1]) + _KEPT_BYTES
            self._size += len(encoded) + _KEPT_BYTES - known
            self._kept[id(messages[0])] = (messages, encoded, state)
            while self._size > self._max_bytes:
                _, (_, oldest, _) = self._kept.popitem(last=False)
                self._size -= len(oldest) + _KEPT_BYTES


def _is_one_of_words(messages: tuple[Message, ...]) -> bool:
    """Whether it is a single message of words, of which nothing can be left out or renamed."""
    return len(messages) == 1 and {Text}.issuperset(map(type, messages[0].content))


def to_json(value: Any) -> bytes:
    """A value as JSON; half a character in somebody's text becomes U+FFFD (A2.25)."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return msgspec.json.encode(mend_all(value))
