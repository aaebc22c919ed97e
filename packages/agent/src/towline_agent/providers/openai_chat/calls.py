"""Which call does a piece belong to? Gateways disagree on index, id and name (A2.8 to A2.11)."""

import re
from typing import Any, Final

from towline_agent.providers.answer import OpenCall
from towline_agent.providers.json_value import holds_object

__all__ = ["CallSlots"]

_MARKS: Final = re.compile(r'["\\{}\[\]]')
_QUOTE: Final = '"'
_ESCAPE: Final = "\\"


class CallSlots:
    """The calls of one answer, by all that a piece may name them with."""

    def __init__(self) -> None:
        self._by_id: dict[str, OpenCall] = {}
        self._by_index: dict[int, OpenCall] = {}
        self._shapes: dict[OpenCall, _Shape] = {}
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
            if newest is None or (name and self._begins_unnumbered(newest, name, arguments)):
                return None
            return newest
        call = self._by_index.get(index)
        if call is None:
            return None if name else self.newest
        return None if name and self._begins(call, name, arguments) else call

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
            begins = bool(name) and self._begins(known, name, arguments)
            return None if moved or begins else known
        late = self.newest if index is None else self._by_index.get(index)
        if late is None or late.id:
            return None  # a new id at the same index is a new call (A2.10)
        return None if name and self._begins(late, name, arguments) else late

    def _begins(self, call: OpenCall, name: str, arguments: Any) -> bool:
        """Whether a piece that names a function begins its own call, for all its index or id."""
        if not call.parts:
            return False  # more of the name (A2.11), or the name once more
        return name != call.name or (bool(arguments) and self._is_whole(call))

    def _begins_unnumbered(self, call: OpenCall, name: str, arguments: Any) -> bool:
        """The same for a piece with neither index nor id."""
        if not call.parts:
            return arguments is not None and name != call.name
        return self._begins(call, name, arguments)

    def _is_whole(self, call: OpenCall) -> bool:
        """Whether its arguments are a complete object."""
        shape = self._shapes.get(call)
        if shape is None:
            shape = self._shapes[call] = _Shape()
        return shape.is_whole(call.parts)


class _Shape:
    """How far the object that is being written has come. Each piece is looked at once."""

    __slots__ = ("_closed", "_depth", "_escaped", "_seen", "_string", "_whole")

    def __init__(self) -> None:
        self._seen = 0  # pieces
        self._depth = 0
        self._string = False
        self._escaped = False
        self._closed = False  # its last brace has come
        self._whole = False

    def is_whole(self, parts: list[str]) -> bool:
        """Whether the pieces are one object and nothing else."""
        for place in range(self._seen, len(parts)):
            if self._closed:
                self._whole = self._whole and not parts[place].strip()
            else:
                self._read(parts[place])
                if self._closed:  # it happens once, so the whole is read once
                    self._whole = holds_object("".join(parts[: place + 1]))
        self._seen = len(parts)
        return self._whole

    def _read(self, part: str) -> None:
        at = 0
        if self._escaped and part:
            self._escaped = False
            at = 1
        while found := _MARKS.search(part, at):
            at = found.end()
            mark = found[0]
            if mark == _ESCAPE:
                self._escaped = self._string and at == len(part)
                at += self._string
            elif mark == _QUOTE:
                self._string = not self._string
            elif not self._string:
                self._depth += 1 if mark in "{[" else -1
                self._closed = self._closed or self._depth <= 0
