"""Which model is taken when none is named, and why (A2.87 to A2.90)."""

import re
from collections.abc import Sequence
from typing import Final

import msgspec

from towline_agent.providers.facts import known_names
from towline_agent.providers.vendors import VENDORS, Vendor
from towline_protocol import UsageError

__all__ = ["Choice", "choose_model", "find_vendor", "is_for_words"]

_NO_WORDS: Final = (
    r"embed|(?:^|[-_/.:])(?:aqa|asr|audio|bge|clip|dall-e|davinci|e5|flux|gte|guard|image|imagen"
    r"|imagine|live|livetranslate|lyria|minilm|moderation|ocr|orpheus|realtime|rerank|reranker|sora"
    r"|speech|stable-diffusion|transcribe|tts|veo|video|voxtral|whisper)(?:$|[-_/.:\d])"
)
"""Names of models that answer with vectors, sounds or pictures, or only judge."""

_ONLY_IN_THE_APP: Final = (
    "The model 'local' belongs to the towline app, which starts and ends it: ask it by `towline "
    "run`, or over a server that `towline up` runs. Here, take a provider whose key is set, such "
    "as 'openai', or a model server of this machine, such as 'ollama/qwen3'."
)


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """Which model is taken, and why (A2.90)."""

    model: str
    """The provider's own name of it."""
    why: str
    """For people."""


def choose_model(provider: str, live: Sequence[str] = (), last: str | None = None) -> Choice:
    """The model to take when none is named (A2.87 to A2.89).

    Args:
        provider: The provider's name.
        live: The models that it offers just now; empty when it was not asked.
        last: What the person picked last for this provider.

    Raises:
        UsageError: There is nothing to choose from.
    """
    vendor = find_vendor(provider)
    if last and (not live or last in live):
        return Choice(model=last, why="your last pick")
    newest = _newest(vendor, live)
    if newest is not None:
        return Choice(model=newest, why=f"the newest of its kind that {vendor.title} offers")
    if vendor.default_model is not None:
        return Choice(model=vendor.default_model, why=f"the usual one of {vendor.title}")
    # Elsewhere the first of a long list is anything; on a server of one's own it is what runs.
    talking = [model for model in live if is_for_words(model)] if _is_own(vendor) else []
    if talking:
        return Choice(model=talking[0], why=f"the first one that {vendor.title} offers")
    raise UsageError(f"No model is known for {provider!r}; name one as '{provider}/MODEL'.")


def is_for_words(model: str) -> bool:
    """Whether a model of this name may answer in words: no embeddings, speech or pictures."""
    return re.search(_NO_WORDS, model.lower()) is None


def find_vendor(provider: str) -> Vendor:
    """The vendor of a name.

    Raises:
        UsageError: There is none.
    """
    vendor = VENDORS.get(provider)
    if provider == "local":
        raise UsageError(_ONLY_IN_THE_APP)
    if vendor is None:
        import difflib  # only who has mistyped a name waits for it

        maker = next((name for name in VENDORS if provider.lower() in known_names(name)), None)
        if maker is not None:
            raise UsageError(
                f"{provider!r} is a model and no provider. Did you mean '{maker}/{provider}'?"
            )
        near = difflib.get_close_matches(provider.lower(), VENDORS, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        known = ", ".join(VENDORS)
        raise UsageError(
            f"There is no provider {provider!r}.{hint} Write 'provider/model' with one of: {known}."
        )
    return vendor


def _is_own(vendor: Vendor) -> bool:
    return vendor.local or vendor.key_optional


def _newest(vendor: Vendor, live: Sequence[str]) -> str | None:
    if vendor.prefer is None:
        return None
    pattern = re.compile(vendor.prefer)
    matches = [match for match in map(pattern.fullmatch, live) if match is not None]
    best = max(matches, key=lambda match: tuple(map(int, match.groups())), default=None)
    return best[0] if best is not None else None
