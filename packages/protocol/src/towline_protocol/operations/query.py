"""What stands behind the `?` of a path: each name once, with one meaning for all operations."""

from typing import Final

import msgspec

__all__ = ["QUERIES", "Query"]


class Query(msgspec.Struct, frozen=True, kw_only=True):
    """One query parameter."""

    name: str
    """Its name."""
    about: str
    """One sentence for the reference."""
    kind: str = "text"
    """`text`, `integer` or `flag` (`true` or `false`)."""
    least: int | None = None
    """The least an integer may be."""
    most: int | None = None
    """The most an integer may be, or the characters of a text."""


QUERIES: Final[dict[str, Query]] = {
    row.name: row
    for row in (
        Query(name="after", about="Go on after this cursor; leave it out to begin.", most=200),
        Query(name="limit", about="The most rows to answer.", kind="integer", least=1, most=200),
        Query(name="log", about="The lineage of the log that the cursor is of.", most=200),
        Query(name="reader", about="How the reader names itself.", most=64),
    )
}
"""Name to parameter."""
