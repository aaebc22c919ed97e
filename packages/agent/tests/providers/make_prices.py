"""Makes the data file of windows and prices out of genai-prices (A2.82).

Run it before a release, with genai-prices installed beside the workspace:

    python packages/agent/tests/providers/make_prices.py

It writes `prices.json` beside the catalog. One number stands for each price, and this is what it
does not say:

- Of a price that rises with the length of the request the base is kept; `dearer_from` holds the
  number of input tokens from which a request costs more than the numbers say.
- Of a price that changes with the hour of the day the dearest is kept.
- A model that costs money for each request besides has no price here, so its cost is unknown.
- Searches, audio, pictures and one-hour cache entries have prices of their own and are left out.

Models of another kind than chat are left out.
"""

import datetime
import importlib
import importlib.metadata
import json
import re
from pathlib import Path
from typing import Any, Final, cast

OUT: Final = Path(__file__).parents[2] / "src/towline_agent/providers/prices.json"
VENDORS: Final = {
    "anthropic": "anthropic",
    "azure": "azure",
    "cerebras": "cerebras",
    "deepseek": "deepseek",
    "fireworks": "fireworks",
    "github-copilot": "copilot",
    "google": "gemini",
    "groq": "groq",
    "minimax": "minimax",
    "mistral": "mistral",
    "moonshotai": "kimi",
    "openai": "openai",
    "openrouter": "openrouter",
    "perplexity": "perplexity",
    "together": "together",
    "x-ai": "xai",
    "zai": "glm",
}
NO_CHAT: Final = (
    "audio", "batch", "decider", "embed", "image", "live", "moderation", "ocr", "realtime",
    "robotics", "search", "transcribe", "translate", "tts", "video", "voice", "whisper",
)  # fmt: skip
COMPLETIONS: Final = re.compile(r"(?:text-)?(?:ada|babbage|curie|davinci)\b|.*-turbo-instruct$")
"""Models that go on with a text and cannot talk."""
PRICES: Final = {
    "input": "input_mtok",
    "output": "output_mtok",
    "cache_read": "cache_read_mtok",
    "cache_write": "cache_write_mtok",
}


def names_of(match: Any) -> tuple[list[str], list[str]]:
    """The exact names and the beginnings of a match clause."""
    parts = getattr(match, "or_", None) or getattr(match, "and_", None)
    if parts:
        pairs = [names_of(part) for part in parts]
        return [n for names, _ in pairs for n in names], [p for _, more in pairs for p in more]
    for exact in ("equals", "ends_with"):
        if hasattr(match, exact):
            return [getattr(match, exact).lower()], []
    for beginning in ("starts_with", "contains"):
        if hasattr(match, beginning):
            return [], [getattr(match, beginning).lower()]
    return [], []  # a pattern: of a date, which the look-up drops, or of what is no chat model


def prices_of(model: Any, now: datetime.datetime) -> dict[str, Any]:
    """The prices of a model that hold today; of those of an hour the dearest."""
    held: Any = model.prices
    if not isinstance(held, list):
        return dict(cast("dict[str, Any]", vars(held)))
    rows = cast("list[Any]", held)
    dated = [row for row in rows if not hasattr(row.constraint, "start_time")]
    active = [row for row in dated if row.constraint is None or row.constraint.active(now)]
    hourly = [row for row in rows if hasattr(row.constraint, "start_time")]
    choices: list[dict[str, Any]] = [vars(row.prices) for row in [*active[-1:], *hourly]]
    return dict(max(choices, key=lambda prices: number(prices.get("input_mtok")) or 0))


def number(value: Any) -> float | None:
    """A price in dollars; of tiers the base."""
    base = getattr(value, "base", value)
    return None if base is None else float(base)


def row_of(model: Any, now: datetime.datetime) -> dict[str, Any] | None:
    """One model, or nothing when it is no chat model or nothing is known of it."""
    if any(word in model.id.lower() for word in NO_CHAT) or COMPLETIONS.match(model.id):
        return None
    prices = prices_of(model, now)
    found = {name: number(prices.get(key)) for name, key in PRICES.items()}
    if (found["input"] is None) != (found["output"] is None):
        return None  # something that answers without words
    if prices.get("requests_kcount"):
        found = {}
    row: dict[str, Any] = {}
    if model.context_window:
        row["window"] = model.context_window
    row.update({name: price for name, price in found.items() if price is not None})
    tiers = getattr(prices.get("input_mtok"), "tiers", ())
    if tiers and found:
        row["dearer_from"] = min(tier.start for tier in tiers)
    if not row:
        return None
    names, prefixes = names_of(model.match)
    own = model.id.lower()
    head: dict[str, Any] = {"names": [own, *sorted({*names} - {own})]}
    if prefixes:
        head["prefixes"] = sorted(set(prefixes))
    return {**head, **row}


def main() -> None:
    """Write the file."""
    now = datetime.datetime.now(datetime.UTC)
    found: dict[str, list[dict[str, Any]]] = {}
    for provider in importlib.import_module("genai_prices.data").providers:
        vendor = VENDORS.get(provider.id)
        if vendor is None:
            continue
        models = [
            model
            for model in provider.models
            if vendor != "gemini" or not model.id.startswith("claude")  # not at this address
        ]
        rows = [row_of(model, now) for model in models]
        found[vendor] = [row for row in rows if row is not None]
    version = importlib.metadata.version("genai-prices")
    source = f"genai-prices {version}, MIT, Pydantic Services Inc."
    lines = [f'{{"source": "{source}", "date": "{now:%Y-%m-%d}", "vendors": {{']
    blocks: list[str] = []
    for vendor in sorted(found):
        rows = ",\n".join(json.dumps(row) for row in found[vendor])
        blocks.append(f"{json.dumps(vendor)}: [\n{rows}\n]")
    OUT.write_text("\n".join([*lines, ",\n".join(blocks), "}}"]) + "\n")


if __name__ == "__main__":
    main()
