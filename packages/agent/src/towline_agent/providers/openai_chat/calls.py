"""Which call does a piece belong to? Gateways disagree on index, id and name (A2.8 to A2.11)."""

import json
from typing import Any

from towline_agent.providers.answer import OpenCall

__all__ = ["CallSlots"]


class CallSlots:
    """The calls of one answer, by all that a piece may name them with."""

    def __init__(self) -> None:
        self._by_id: dict[str, OpenCall] = {}
        self._by_index: dict[int, OpenCall] = {}
        self.newest: OpenCall | None = None
        """The call that the last piece belonged to."""

    def find(self, index: int | None, id_: str, name: str, arguments: Any) -> OpenCall | None:
        """The call that a piece goes on with; `None` when it begins a new one.

        An id wins over an index (R15). A piece without both belongs to the newest call (R13).
        """
        if id_:
            return self._find_by_id(index, id_, name, arguments)
        if index is None:
            newest = self.newest
            if newest is None or (name and _begins_unnumbered(newest, name, arguments)):
                return None
            return newest
        call = self._by_index.get(index)
        if call is None:
            return None if name else self.newest
        return None if name and _begins(call, name, arguments) else call

    def keep(self, call: OpenCall, index: int | None, id_: str) -> None:
        """Remember under what names a call goes."""
        self.newest = call
        if index is not None:
            self._by_index[index] = call
            if call.index is None:
                call.index = index
        if id_:
            call.id = id_
            self._by_id[id_] = call

    def _find_by_id(
        self, index: int | None, id_: str, name: str, arguments: Any
    ) -> OpenCall | None:
        known = self._by_id.get(id_)
        if known is not None:
            moved = bool(name) and index is not None and index != known.index
            begins = bool(name) and _begins(known, name, arguments)
            return None if moved or begins else known
        late = self.newest if index is None else self._by_index.get(index)
        if late is None or late.id:
            return None  # a new id at the same index is a new call (A2.10)
        return None if name and _begins(late, name, arguments) else late


def _begins(call: OpenCall, name: str, arguments: Any) -> bool:
    """Whether a piece that names a function begins a call of its own, for all its index or id."""
    if not call.parts:
        return False  # more of the name (A2.11), or the name once more
    return name != call.name or (bool(arguments) and _is_whole(call))


def _begins_unnumbered(call: OpenCall, name: str, arguments: Any) -> bool:
    """The same for a piece with neither index nor id."""
    if not call.parts:
        return arguments is not None and name != call.name
    return _begins(call, name, arguments)


def _is_whole(call: OpenCall) -> bool:
    """Whether its arguments are a complete object."""
    if not call.parts[-1].endswith("}"):
        return False
    text = "".join(call.parts)
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
