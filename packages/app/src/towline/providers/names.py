"""Which provider is meant, and what the environment holds for it."""

import re
from collections.abc import Mapping
from typing import Final

from towline_agent import VENDORS
from towline_server import ProviderNotFound

__all__ = ["ALIASES", "find_provider", "held_setting", "natural_order"]

ALIASES: Final = {"google": "gemini"}
"""Other names that people type for a provider."""


def find_provider(named: str) -> str:
    """The provider's name in the catalog.

    Raises:
        ProviderNotFound: There is none.
    """
    provider = ALIASES.get(named.strip().lower(), named.strip().lower())
    if provider not in VENDORS:
        raise ProviderNotFound(
            f"There is no provider {named[:80]!r}; there are: {', '.join(VENDORS)}."
        )
    return provider


def held_setting(provider: str, environ: Mapping[str, str]) -> str | None:
    """The environment variable that holds a provider's key; `None` when none does."""
    settings = VENDORS[provider].key_settings
    names = [name for setting in settings for name in (setting, f"{setting}S")]
    return next((name for name in names if environ.get(name, "").strip()), None)


def natural_order(name: str) -> list[tuple[int, str]]:
    """Sorts `gpt-5.10` behind `gpt-5.9`."""
    parts = re.split(r"(\d+)", name.lower())
    return [(int(part), "") if part.isdigit() else (-1, part) for part in parts]
