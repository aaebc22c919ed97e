"""The contract table: each HTTP operation once.

Routes, the client's calls, OpenAPI, the TypeScript types and the reference page are made from it.
"""

from typing import Final

from towline_protocol.operations import (
    answer,
    auth,
    checkpoint,
    client_call,
    discovery,
    file,
    model,
    project,
    push,
    read,
    session,
    talk,
)
from towline_protocol.operations.operation import Operation, fault_codes, takes_match
from towline_protocol.operations.query import QUERIES, Query

__all__ = [
    "AREAS",
    "CONTRACT_HEADER",
    "CONTRACT_VERSION",
    "OPERATIONS",
    "QUERIES",
    "Operation",
    "Query",
    "fault_codes",
    "takes_match",
]

CONTRACT_HEADER: Final = "towline-contract"
"""The header that every answer carries (C2.1)."""
CONTRACT_VERSION: Final = "1"
"""The major number in it; another one is `VersionMismatch`."""

_PARTS: Final = (
    discovery,
    auth,
    session,
    talk,
    read,
    answer,
    client_call,
    file,
    checkpoint,
    project,
    model,
    push,
)

OPERATIONS: Final[dict[str, Operation]] = {row.name: row for part in _PARTS for row in part.ROWS}
"""Name to operation: the rows that are built."""
AREAS: Final[dict[str, str]] = {
    row.name: part.__name__.rpartition(".")[2] for part in _PARTS for row in part.ROWS
}
"""Name to the area that it belongs to, in the order of the table."""
