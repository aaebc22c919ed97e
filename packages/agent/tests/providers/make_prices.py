"""Makes the data file of windows and prices out of genai-prices (A2.82).

Run it before a release, with genai-prices installed beside the workspace:

    python packages/agent/tests/providers/make_prices.py

It writes `prices.json` beside the catalog. Models without a price or of another kind than chat are
left out; of a tiered price the base tier is kept.
"""

import datetime
import importlib
import importlib.metadata
import json
from pathlib import Path
from typing import Any, Final

OUT: Final = Path(__file__).parents[2] / "src/towline_agent/providers/prices.json"
VENDORS: Final = {
    "anthropic": "anthropic",
    "openai": "openai",
    "google": "gemini",
    "openrouter": "openrouter",
    "x-ai": "xai",
    "deepseek": "deepseek",
    "mistral": "mistral",
    "groq": "groq",
    "together": "together",
}
NO_CHAT: Final = (
    "audio", "batch", "embed", "image", "live", "moderation", "ocr", "realtime", "search",
    "transcribe", "tts", "video", "voice", "whisper",
)  # fmt: skip


def names_of(match: Any) -> tuple[list[str], list[str]]:
    """The exact names and the beginnings of a match clause."""
    parts = getattr(match, "or_", None) or getattr(match, "and_", None)
    if parts:
        pairs = [names_of(part) for part in parts]
        return [n for names, _ in pairs for n in names], [p for _, more in pairs for p in more]
    if hasattr(match, "equals"):
        return [match.equals.lower()], []
    if hasattr(match, "starts_with"):
        return [], [match.starts_with.lower()]
    return [], []


def price_of(value: Any) -> float | None:
    """A price in dollars; of tiers the base."""
    base = getattr(value, "base", value)
    return None if base is None else float(base)


def row_of(model: Any, now: datetime.datetime) -> dict[str, Any] | None:
    """One model, or nothing when it is no chat model with a price."""
    prices = model.get_prices(now)
    sent, made = price_of(prices.input_mtok), price_of(prices.output_mtok)
    if sent is None or made is None or model.deprecated:
        return None
    if any(word in model.id.lower() for word in NO_CHAT):
        return None
    names, prefixes = names_of(model.match)
    row: dict[str, Any] = {"names": sorted({model.id.lower(), *names})}
    if prefixes:
        row["prefixes"] = sorted(set(prefixes))
    if model.context_window:
        row["window"] = model.context_window
    return {**row, "input": sent, "output": made}


def main() -> None:
    """Write the file."""
    now = datetime.datetime.now(datetime.UTC)
    found: dict[str, list[dict[str, Any]]] = {}
    for provider in importlib.import_module("genai_prices.data").providers:
        vendor = VENDORS.get(provider.id)
        if vendor is not None:
            rows = [row_of(model, now) for model in provider.models]
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
