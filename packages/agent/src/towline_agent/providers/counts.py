"""Numbers of tokens as vendors write them (A1.13)."""

from typing import Any, Final

__all__ = ["read_count"]

_MAX_COUNT: Final = 2**53
"""What JSON's numbers can say everywhere; no count comes near it."""


def read_count(value: Any) -> int:
    """A count of tokens; 0 for what is none: no number, below 0, a part of one, or beyond reason.

    Some languages know no whole numbers, so `7.0` is one.
    """
    if type(value) is not int:
        value = int(value) if type(value) is float and value.is_integer() else 0
    return value if 0 < value < _MAX_COUNT else 0
