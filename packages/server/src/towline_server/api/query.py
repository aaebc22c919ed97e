"""What stands behind the `?`, checked against the table before a handler runs."""

import re
from collections.abc import Mapping
from typing import Final

from towline_protocol import QUERIES, Operation, Query, UsageError

__all__ = ["QueryValue", "read_query"]

QueryValue = str | int | bool
"""A parameter's value: a text, an integer or a flag."""

_INTEGER: Final = re.compile(r"-?[0-9]{1,16}")  # of ASCII, and nothing that takes long to read
_FLAGS: Final = {"true": True, "false": False}
_SHOWN: Final = 40  # characters of a wrong value that are said back


def read_query(operation: Operation, given: Mapping[str, str]) -> dict[str, QueryValue]:
    """The parameters of a request that its operation reads, by name; others are passed over.

    Args:
        operation: The row of the table.
        given: All parameters as they came.

    Raises:
        UsageError: One does not fit its row of `QUERIES`.
    """
    return {name: _read(QUERIES[name], given[name]) for name in operation.query if name in given}


def _read(row: Query, text: str) -> QueryValue:
    if row.kind == "flag":
        if text not in _FLAGS:
            raise _misfit(row, text, "`true` or `false`")
        return _FLAGS[text]
    if row.kind == "integer":
        return _read_integer(row, text)
    if row.most is not None and len(text) > row.most:
        raise _misfit(row, text, f"a text of at most {row.most} characters")
    if "\0" in text:  # the store and the disk would read only what stands before it
        raise _misfit(row, text, "a text without a NUL character")
    return text


def _read_integer(row: Query, text: str) -> int:
    number = int(text) if _INTEGER.fullmatch(text) else None
    low, high = row.least, row.most
    if number is None or (low is not None and number < low) or (high is not None and number > high):
        least = "" if low is None else f" from {low}"
        most = "" if high is None else f" to {high}"
        raise _misfit(row, text, f"a whole number{least}{most}")
    return number


def _misfit(row: Query, text: str, wanted: str) -> UsageError:
    shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
    return UsageError(
        f"The parameter {row.name}={shown!r} does not fit; it is {wanted}.",
        details={"parameter": row.name},
    )
