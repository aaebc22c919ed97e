"""What was used, by day, model, session and user.

Plain functions over a connection, for `SqliteStore.write` and `SqliteStore.query`. What a session
uses is added in the transaction of the events that tell of it: a crash neither loses nor doubles
it. A deleted session keeps its rows here.
"""

import sqlite3
from collections.abc import Iterable
from typing import Any, Final

from towline_protocol import Usage, UsageRow
from towline_server.store.records import UsageCount
from towline_server.store.statements import load_statements

__all__ = ["MAX_ROWS", "add", "cost_of_day", "report"]

MAX_ROWS: Final = 400
"""Rows of a report: the days of a year, and more models and sessions than anybody reads."""

_SQL: Final = load_statements("usage")


def add(connection: sqlite3.Connection, session: str, counts: Iterable[UsageCount]) -> None:
    """Count what a session used; inside an `Append` the store does this itself."""
    connection.executemany(
        _SQL["add_usage"],
        [
            (
                count.user,
                count.day,
                session,
                count.model,
                1,
                count.cost is None,
                count.usage.input,
                count.usage.output,
                count.usage.cache_read,
                count.usage.cache_write,
                count.usage.reasoning,
                count.cost or 0.0,
            )
            for count in counts
        ],
    )


def cost_of_day(connection: sqlite3.Connection, user: str, day: str) -> float:
    """US dollars of a user's day, as far as prices are known."""
    found: float = connection.execute(_SQL["cost_of_day"], (user, day)).fetchone()[0]
    return found


def report(
    connection: sqlite3.Connection, user: str, first: str, last: str, by: str
) -> tuple[list[UsageRow], UsageRow]:
    """A user's rows from one day to another, and their total.

    Args:
        connection: The store.
        user: Whose.
        first: The first day, `YYYY-MM-DD`.
        last: The last one.
        by: `day`, `model` or `session`.
    """
    place = (user, first, last)
    rows = connection.execute(_SQL[f"by_{by}"], (*place, MAX_ROWS)).fetchall()
    total = connection.execute(_SQL["total"], place).fetchone()
    return [_row(columns) for columns in rows], _row(total)


def _row(columns: tuple[Any, ...]) -> UsageRow:
    requests, unpriced = columns[2], columns[3]
    return UsageRow(
        name=columns[0],
        title=columns[1],
        requests=requests,
        unpriced=unpriced,
        usage=Usage(
            input=columns[4],
            output=columns[5],
            cache_read=columns[6],
            cache_write=columns[7],
            reasoning=columns[8],
        ),
        cost=None if requests and requests == unpriced else columns[9],
    )
