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
        Query(name="archived", about="Whether to list what is put away.", kind="flag"),
        Query(
            name="before",
            about="The number of the first message that the reader has.",
            kind="integer",
            least=1,
            most=2**53,
        ),
        Query(name="by", about="What a row is: `day`, `model` or `session`.", most=10),
        Query(
            name="folder",
            about="A folder that sessions may begin in; leave it out for the first root.",
            most=4096,
        ),
        Query(name="from", about="The first day, as `YYYY-MM-DD` in UTC.", most=10),
        Query(name="label", about="List only what has this label.", most=64),
        Query(name="limit", about="The most rows to answer.", kind="integer", least=1, most=200),
        Query(name="log", about="The lineage of the log that the cursor is of.", most=200),
        Query(name="name", about="What a file is called.", most=255),
        Query(name="needs", about="List only what waits for a person.", kind="flag"),
        Query(name="prefix", about="What was typed of a path so far.", most=1024),
        Query(name="reader", about="How the reader names itself.", most=64),
        Query(name="search", about="List only what has all of these words.", most=200),
        Query(name="session", about="A session whose frames come as well.", most=64),
        Query(name="to", about="The last day, as `YYYY-MM-DD` in UTC.", most=10),
    )
}
"""Name to parameter."""
