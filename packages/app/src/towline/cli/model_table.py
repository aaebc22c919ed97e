"""Models in tables: for a wide terminal with columns of numbers, for a narrow one without."""

from collections.abc import Sequence
from typing import Final

import msgspec
from rich.console import Console, Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from towline.cli.visible import show_line
from towline_agent import Model

__all__ = ["ModelRow", "format_price", "format_tokens", "say", "show_rows"]

_WIDE: Final = 64
"""Columns from which on numbers have columns of their own; a phone has 40 to 55."""
_MARK: Final = "▸"
_UNKNOWN: Final = "?"
_THOUSAND: Final = 1_000
_MILLION: Final = 1_000_000


class ModelRow(msgspec.Struct, frozen=True, kw_only=True):
    """One model, or a provider without a usual one."""

    name: str
    """What stands in the first column."""
    facts: Model | None = None
    """Window and prices; `None` when there is no model yet."""
    notes: tuple[str, ...] = ()
    """Lines below the name."""
    taken: bool = False
    """Whether it is the one for new sessions."""
    dearer_from: int | None = None
    """From so many tokens on a request costs more."""


def show_rows(console: Console, rows: Sequence[ModelRow]) -> None:
    """Print rows as a table that fits the terminal."""
    wide = console.width >= _WIDE
    table = Table(box=None, show_header=wide, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("", width=1, no_wrap=True)
    table.add_column("Model", overflow="fold", ratio=1)
    if wide:
        for title in ("Tokens", "$ in", "$ out"):
            table.add_column(title, justify="right", no_wrap=True)
    for row in rows:
        cells = _numbers(row) if wide else []
        table.add_row(_MARK if row.taken else "", _name(row, narrow=not wide), *cells)
    console.print(table)


def say(console: Console, text: str, style: str = "") -> None:
    """Print words, folded between words; what others wrote shows what hides in it."""
    console.print(Text(show_line(text), style=style), highlight=False)


def format_tokens(tokens: int | None) -> str:
    """A number of tokens in at most five characters: `200k`, `1.05M`."""
    if tokens is None:
        return _UNKNOWN
    if tokens >= _MILLION:
        return f"{tokens / _MILLION:.2f}".rstrip("0").rstrip(".") + "M"
    return f"{tokens / _THOUSAND:.0f}k" if tokens >= _THOUSAND else str(tokens)


def format_price(dollars: float | None, *, more: bool = False) -> str:
    """A price for a million tokens; a `+` says that long requests cost more."""
    if dollars is None:
        return _UNKNOWN
    if not dollars:
        return "free"
    return f"{dollars:.4f}".rstrip("0").rstrip(".") + ("+" if more else "")


def _numbers(row: ModelRow) -> list[str]:
    if row.facts is None:
        return ["", "", ""]
    more = row.dearer_from is not None
    return [
        format_tokens(row.facts.window),
        format_price(row.facts.price_input, more=more),
        format_price(row.facts.price_output, more=more),
    ]


def _name(row: ModelRow, *, narrow: bool) -> Group:
    name = Text(show_line(row.name), style="bold" if row.taken or row.notes else "")
    below = [Text(show_line(note), style="dim") for note in row.notes]
    if narrow and row.facts is not None:
        below.insert(0, Text(_in_words(row)))
    return Group(name, *(Padding(text, (0, 0, 0, 2)) for text in below))


def _in_words(row: ModelRow) -> str:
    tokens, sent, made = _numbers(row)
    window = "window unknown" if tokens == _UNKNOWN else f"{tokens} tokens"
    if sent == made == "free":
        return f"{window}, free"
    if sent == _UNKNOWN:
        return f"{window}, price unknown"
    return f"{window}, ${sent} in, ${made} out"
