"""The contract table: each HTTP operation once.

Routes, the client's calls, OpenAPI, the TypeScript types and the reference page are made from it.
"""

from typing import Final

from towline_protocol.operations import answer, auth, discovery, read, session, talk
from towline_protocol.operations.operation import Operation
from towline_protocol.operations.query import QUERIES, Query

__all__ = ["CONTRACT_HEADER", "CONTRACT_VERSION", "OPERATIONS", "QUERIES", "Operation", "Query"]

CONTRACT_HEADER: Final = "towline-contract"
"""The header that every answer carries (C2.1)."""
CONTRACT_VERSION: Final = "1"
"""The major number in it; another one is `VersionMismatch`."""

OPERATIONS: Final[dict[str, Operation]] = {
    row.name: row
    for rows in (discovery.ROWS, auth.ROWS, session.ROWS, talk.ROWS, read.ROWS, answer.ROWS)
    for row in rows
}
"""Name to operation: the rows that are built."""
