"""`towline usage`: what was used, and what it cost."""

import os
from collections.abc import Mapping
from typing import Final

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from towline.cli.attach import find_server
from towline.cli.model_table import format_tokens, say
from towline.cli.visible import show_line, show_visible
from towline.paths import find_paths
from towline_agent import Clock, SystemClock, mint_now
from towline_client import Client
from towline_protocol import UsageError, UsageReport, UsageRow
from towline_server import OWNER, Budget, load_config, open_store

__all__ = ["show_usage"]

_BY: Final = {"day": "Day", "model": "Model", "session": "Session"}
_WIDE: Final = 64
"""Columns from which on there is room for all numbers; a phone has 40 to 55."""


async def show_usage(
    console: Console,
    *,
    by: str,
    first: str | None,
    last: str | None,
    as_json: bool,
    environ: Mapping[str, str] = os.environ,
    clock: Clock | None = None,
) -> int:
    """Print what was used as a table, or as JSON.

    Args:
        console: Where to.
        by: `day`, `model` or `session`.
        first: The first day; `None` for 30 days.
        last: The last one; `None` for today, in UTC.
        as_json: Whether a program reads it.
        environ: Says where the server or its store is.
        clock: Time.

    Raises:
        UsageError: There is no such way to group, or no such day.
        TowlineError: Neither the server nor its store can be asked.
    """
    if by not in _BY:
        raise UsageError(f"There is no --by {by!r}; it is one of: {', '.join(_BY)}.")
    report = await _ask(by, first, last, environ, clock or SystemClock())
    if as_json:
        text = msgspec.json.format(msgspec.json.encode(report)).decode()
        text = show_visible(text) if console.is_terminal else text
        console.print(text, soft_wrap=True, markup=False, emoji=False, highlight=False)
        return 0
    say(console, f"From {report.first} to {report.last} (days end at midnight, UTC):", "bold")
    if not report.total.requests:
        say(console, "Nothing was used.")
        return 0
    console.print(_table(report, wide=console.width >= _WIDE))
    if report.total.unpriced:
        count = report.total.unpriced
        word = "request has" if count == 1 else "requests have"
        say(console, f"{count} {word} no known price, so the cost is too low by theirs (+).", "dim")
    if report.daily_cost is not None:
        say(console, f"Today: ${report.today_cost:.2f} of ${report.daily_cost:.2f}.")
    return 0


async def _ask(
    by: str, first: str | None, last: str | None, environ: Mapping[str, str], clock: Clock
) -> UsageReport:
    """From the server that runs, else out of its store at rest."""
    paths = find_paths(environ)
    server = find_server(paths.run_file)
    if server is not None:
        async with Client(server.url, server.token) as client:
            return await client.models.get_usage(by, first=first, last=last)
    config = load_config(paths.config_file, environ, data_dir=paths.data_dir)
    store = await open_store(config.data_dir, mint=mint_now)
    try:
        budget = Budget(store, now_ms=clock.now_ms, daily_cost=config.daily_cost)
        return await budget.report(OWNER, by, first=first, last=last)
    finally:
        await store.close()


def _table(report: UsageReport, *, wide: bool) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(_BY[report.by], overflow="fold", ratio=1)
    titles = ("In", "Cached", "Out", "Requests", "Cost") if wide else ("Tokens", "Cost")
    for title in titles:
        table.add_column(title, justify="right", no_wrap=True)
    for row in report.rows:
        table.add_row(_name(row), *_numbers(row, wide=wide))
    total = [Text(cell, style="bold") for cell in _numbers(report.total, wide=wide)]
    table.add_row(Text("All", style="bold"), *total)
    return table


def _name(row: UsageRow) -> Text:
    if row.title is None:
        return Text(show_line(row.name))
    return Text.assemble(show_line(row.title), " ", (show_line(row.name), "dim"))


def _numbers(row: UsageRow, *, wide: bool) -> list[str]:
    usage = row.usage
    cached = usage.cache_read + usage.cache_write
    if not wide:
        return [format_tokens(usage.input + cached + usage.output), _dollars(row)]
    return [
        format_tokens(usage.input),
        format_tokens(cached),
        format_tokens(usage.output),
        str(row.requests),
        _dollars(row),
    ]


def _dollars(row: UsageRow) -> str:
    """The cost; `?` when nobody knows, a `+` when some of it is not known."""
    if row.cost is None:
        return "?"
    digits = 2 if row.cost >= 1 or not row.cost else 4
    return f"${row.cost:.{digits}f}{'+' if row.unpriced else ''}"
