"""What is known of single models: window, prices, abilities (A2.81, A2.82).

Windows and prices stand in `prices.json`, which a script makes from genai-prices; nothing here asks
it. Abilities stand in `abilities`.
"""

import functools
import re
from typing import Final

import msgspec

from towline_agent.providers.abilities import Ability, ability_of, plain_name

__all__ = [
    "FactFile",
    "Facts",
    "KnownModel",
    "fact_file",
    "known_facts",
    "known_model",
    "known_names",
]

_DATE: Final = r"[-@](?:\d{8}|\d{4}-\d{2}-\d{2})$"
_TUNED: Final = "ft:"
_BOUNDARIES: Final = "-@:/"
"""What a beginning of a name ends with: `gpt-5` begins `gpt-5-pro`, not `gpt-5.9`."""
_SAME_PRICES: Final = {
    "azure": ("openai", "anthropic", "xai", "deepseek", "kimi"),
    "vertex": ("gemini",),
}
"""Whose prices hold at another address too."""
_MAKERS: Final = (
    "openai", "anthropic", "gemini", "xai", "deepseek", "mistral", "kimi", "glm", "minimax",
    "openrouter",
)  # fmt: skip
"""Whose word on a window counts where a model is offered by somebody else, best first."""


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """One model, as the data file has it."""

    names: tuple[str, ...]
    """Its names, in lower case; the first is its own, others are those of dates and gateways."""
    prefixes: tuple[str, ...] = ()
    """Beginnings of further names."""
    window: int | None = None
    """Tokens that fit, answer included."""
    input: float | None = None
    """US dollars for a million input tokens, at the base tier."""
    output: float | None = None
    """US dollars for a million output tokens."""
    cache_read: float | None = None
    """US dollars for a million tokens out of the cache; `None` where there is no price of its own.
    """
    cache_write: float | None = None
    """US dollars for a million tokens into the cache; `None` as above."""
    dearer_from: int | None = None
    """From so many input tokens on a request costs more than these prices say."""


class FactFile(msgspec.Struct, frozen=True):
    """The data file."""

    source: str
    """What it was made from, with version and licence."""
    date: str
    """The day of its prices, `YYYY-MM-DD`."""
    vendors: dict[str, tuple[Facts, ...]]
    """The models of each vendor."""


class KnownModel(msgspec.Struct, frozen=True, kw_only=True):
    """All that is known of a model at a provider; what is unset is not known."""

    window: int | None = None
    """Tokens that fit, answer included."""
    prices: Facts | None = None
    """The row with its prices there; `None` when they are not known."""
    ability: Ability = Ability()
    """What it can do."""


@functools.cache
def fact_file() -> FactFile:
    """The data file, read at the first call."""
    from importlib.resources import files  # costs more than the rest of this module

    data = files("towline_agent.providers").joinpath("prices.json").read_bytes()
    return msgspec.json.decode(data, type=FactFile)


def known_facts(vendor: str, model: str) -> Facts | None:
    """The facts of a model at a vendor; `None` when nobody knows it there.

    A name with a date is the name without it; else the longest beginning that fits decides.
    """
    name = model.lower()
    names = _names(vendor)
    found = names.get(name) or names.get(re.sub(_DATE, "", name))
    if found is not None:
        return found
    rows = fact_file().vendors.get(vendor, ())
    fitting = [
        (len(prefix), row) for row in rows for prefix in row.prefixes if _begins(name, prefix)
    ]
    return max(fitting, key=lambda pair: pair[0])[1] if fitting else None


def known_names(vendor: str) -> tuple[str, ...]:
    """The models of a vendor in the data file, each by its own name; none that people trained."""
    names = (row.names[0] for row in fact_file().vendors.get(vendor, ()))
    return tuple(name for name in names if not name.startswith(_TUNED))


def known_model(vendor: str, model: str) -> KnownModel:
    """What is known of a model, whoever offers it.

    Prices hold only at the vendor itself; a window and abilities belong to the model, so that they
    are found for gateways, clouds and addresses of one's own too.
    """
    lists = (vendor, *_SAME_PRICES.get(vendor, ()))
    prices = next(filter(None, (known_facts(name, model) for name in lists)), None)
    window = prices.window if prices is not None else None
    if window is None:
        window = _windows().get(plain_name(model))
    return KnownModel(window=window, prices=prices, ability=ability_of(model))


def _begins(name: str, prefix: str) -> bool:
    if not name.startswith(prefix):
        return False
    rest = name[len(prefix) :]
    return not rest or rest[0] in _BOUNDARIES or prefix[-1] in _BOUNDARIES


@functools.cache
def _names(vendor: str) -> dict[str, Facts]:
    found: dict[str, Facts] = {}
    for row in fact_file().vendors.get(vendor, ()):
        for name in row.names:
            found.setdefault(name, row)
    return found


@functools.cache
def _windows() -> dict[str, int]:
    """Windows by plain name; a maker's word goes before a gateway's."""
    found: dict[str, int] = {}
    for vendor in _MAKERS:
        for row in fact_file().vendors.get(vendor, ()):
            for name in row.names if row.window is not None else ():
                found.setdefault(plain_name(name), row.window or 0)
    return found
