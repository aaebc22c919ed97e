"""What is different from gateway to gateway and from model to model, as data."""

import re
from typing import Final

import msgspec

from towline_agent.providers.base import EFFORTS, Model

__all__ = ["GATEWAY_FLAGS", "OFFICIAL_FLAGS", "ResponsesFlags"]

_THINKERS: Final = r"(?!.*-chat)(?:o\d|gpt-(?:[5-9]|\d\d)|codex|computer-use)"
"""Names of OpenAI's models that think; those named `-chat` talk alone."""
_GROK_THINKERS: Final = r"(?!.*non-reasoning)grok-(?:3-mini|[4-9]|\d\d|code|build)"

_OPENAI_EFFORTS: Final = (
    (r"gpt-[34]|chatgpt|.*-chat", ()),
    (r"gpt-5(?:\.\d)?-pro", ("medium", "high", "xhigh")),
    (r"gpt-5-codex|gpt-5\.1-codex(?!-max)|o\d|codex", ("low", "medium", "high")),
    (r"gpt-5\.\d-codex", ("low", "medium", "high", "xhigh")),
    (r"gpt-5(?![.\d])", ("minimal", "low", "medium", "high")),
    (r"gpt-5\.1", ("none", "low", "medium", "high")),
    (r"gpt-5\.[2-5]", ("none", "low", "medium", "high", "xhigh")),
    (r"gpt-", ("none", "low", "medium", "high", "xhigh", "max")),
)
_GROK_EFFORTS: Final = (
    (r"grok-3-mini", ("low", "high")),
    (r"grok-4\.3", ("none", "low", "medium", "high")),
    (r"grok-4\.[56](?!\d)", ("low", "medium", "high")),
    (r"grok-(?:4\.[7-9]|[5-9])", ("low", "medium", "high", "xhigh")),
    (r"grok", ()),
)


class ResponsesFlags(msgspec.Struct, frozen=True, kw_only=True):
    """How one gateway speaks Responses; the defaults fit one that nobody knows (A2.84)."""

    no_stream: bool = False
    """It cannot stream: the answer is asked for whole (A2.4)."""
    thinkers: str = _THINKERS
    """A pattern of the names of models that think, for those whose facts say nothing."""
    encrypted: bool = True
    """Whether it gives the reasoning of models that think in an encrypted form (A2.27)."""
    summary: str | None = None
    """How it is asked to sum up what a model thought; `None` does not ask."""
    effort: bool = True
    """Whether it takes `reasoning.effort`."""
    efforts: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Patterns of model names with the efforts that these take, weakest first; the first that fits
    counts. Other efforts become the next weaker one."""
    thinking_budget: bool = False
    """Whether it takes `reasoning.max_tokens`."""
    thinkers_sample: bool = False
    """Whether models that think take `temperature` and `top_p`."""
    stop: bool = False
    """Whether it takes `stop`, which the API does not have."""
    least_tokens: int = 1
    """The smallest `max_output_tokens` that it takes."""
    schema_output: bool = True
    """Whether it can be held to a JSON Schema."""
    search: str | None = "web_search"
    """The type of its own search tool (A2.62); `None` when it has none."""
    search_sources: bool = False
    """Whether the sources of a search must be asked for."""
    cache_key: bool = True
    """Whether it takes `prompt_cache_key` (A2.29)."""
    item_ids: bool = True
    """Whether items go back under the ids that they came with."""
    compacts: bool = False
    """Whether it sums a long conversation up when it is asked to (A4.40). Only OpenAI's own host is
    known to."""
    result_parts: bool = True
    """Whether a tool's result may hold pictures and files; else these follow in a message."""

    def thinks(self, model: Model, name: str) -> bool:
        """Whether a model reasons before it speaks, by its facts or else by its name."""
        if model.thinking:
            return model.thinking != "none"
        return bool(self.thinkers) and re.match(self.thinkers, _bare(name)) is not None

    def known_efforts(self, name: str) -> tuple[str, ...]:
        """The efforts that a model takes, weakest first; empty for none."""
        if not self.effort:
            return ()
        bare = _bare(name)
        found = (efforts for pattern, efforts in self.efforts if re.match(pattern, bare))
        return next(found, EFFORTS)


def _bare(name: str) -> str:
    """A model's name without the vendor that a gateway puts before it."""
    return name.rsplit("/", 1)[-1].lower().removeprefix("openai.")


OFFICIAL_FLAGS: Final = ResponsesFlags(
    summary="auto",
    efforts=_OPENAI_EFFORTS,
    least_tokens=16,
    search_sources=True,
    compacts=True,
)
"""OpenAI's own host."""

GATEWAY_FLAGS: Final[dict[str, ResponsesFlags]] = {
    "openai": OFFICIAL_FLAGS,
    "azure": ResponsesFlags(summary="auto", efforts=_OPENAI_EFFORTS, least_tokens=16),
    "openrouter": ResponsesFlags(
        summary="auto", thinking_budget=True, thinkers_sample=True, least_tokens=16
    ),
    "xai": ResponsesFlags(thinkers=_GROK_THINKERS, efforts=_GROK_EFFORTS, thinkers_sample=True),
    "deepseek": ResponsesFlags(encrypted=False, thinkers_sample=True),
    "bedrock-mantle": ResponsesFlags(encrypted=False, search=None),
    "lmstudio": ResponsesFlags(encrypted=False, search=None, result_parts=False),
    "llamacpp": ResponsesFlags(
        encrypted=False,
        effort=False,
        stop=True,
        search=None,
        cache_key=False,
        item_ids=False,
        result_parts=False,
    ),
}
"""The gateways that are known, by their names in the catalog."""
