"""Call ids as the API takes them: of its alphabet, and each of one call alone."""

import re
from typing import Final

from towline_protocol import ToolCall

__all__ = ["WireIds"]

_USABLE: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_OTHER: Final = re.compile(r"[^A-Za-z0-9_-]")
_MAX: Final = 64
_NUMBER_MAX: Final = 8


class WireIds:
    """Our call ids to those on the wire, as far as a conversation has come.

    A call keeps the provider's own id where that is usable and no earlier call has it; so what an
    earlier message becomes does not depend on later ones (A4.5).
    """

    def __init__(self) -> None:
        self._ids: dict[str, str] = {}
        self._used: set[str] = set()

    def copy(self) -> "WireIds":
        """One that goes on by itself."""
        made = WireIds()
        made._ids = self._ids.copy()
        made._used = self._used.copy()
        return made

    def add(self, call: ToolCall) -> str:
        """The id of a call that comes next."""
        wire = call.wire_id or ""
        if wire in self._used or _USABLE.fullmatch(wire) is None:
            wire = self._unused(_cleaned(call.id))
        self._used.add(wire)
        self._ids[call.id] = wire
        return wire

    def find(self, id_: str) -> str:
        """The id of the call that a result answers."""
        return self._ids.get(id_) or _cleaned(id_)

    def _unused(self, id_: str) -> str:
        number = 2
        wire = id_
        while wire in self._used:
            wire = f"{id_[: _MAX - _NUMBER_MAX]}_{number}"
            number += 1
        return wire


def _cleaned(id_: str) -> str:
    return _OTHER.sub("_", id_)[-_MAX:] or "call"
