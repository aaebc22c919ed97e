"""What is known of single models: window and prices (A2.81, A2.82).

The numbers stand in `prices.json`, which a script makes from genai-prices; nothing here asks it.
"""

import functools
import re
from importlib.resources import files
from typing import Final

import msgspec

__all__ = ["FactFile", "Facts", "fact_file", "known_facts"]

_DATE: Final = re.compile(r"[-@](?:\d{8}|\d{4}-\d{2}-\d{2})$")


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """One model, as the data file has it."""

    names: tuple[str, ...]
    """Its names, without dates."""
    prefixes: tuple[str, ...] = ()
    """Beginnings of further names."""
    window: int | None = None
    """Tokens that fit, answer included."""
    input: float | None = None
    """US dollars for a million input tokens, at the base tier."""
    output: float | None = None
    """US dollars for a million output tokens."""


class FactFile(msgspec.Struct, frozen=True):
    """The data file."""

    source: str
    """What it was made from, with version and licence."""
    date: str
    """The day of its prices, `YYYY-MM-DD`."""
    vendors: dict[str, tuple[Facts, ...]]
    """The models of each vendor."""


@functools.cache
def fact_file() -> FactFile:
    """The data file, read at the first call."""
    data = files("towline_agent.providers").joinpath("prices.json").read_bytes()
    return msgspec.json.decode(data, type=FactFile)


def known_facts(vendor: str, model: str) -> Facts | None:
    """The facts of a model; `None` when nobody knows it.

    A name with a date is the name without it; else the longest beginning that fits decides.
    """
    rows = fact_file().vendors.get(vendor, ())
    name = model.lower()
    for candidate in (name, _DATE.sub("", name)):
        for row in rows:
            if candidate in row.names:
                return row
    fitting = [
        (len(prefix), row) for row in rows for prefix in row.prefixes if name.startswith(prefix)
    ]
    return max(fitting, key=lambda pair: pair[0])[1] if fitting else None
