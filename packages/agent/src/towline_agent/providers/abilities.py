"""What models can do, by family: data of our own beside the prices (A2.81).

The rows go by the plain name of a model (`plain_name`), whoever offers it; the first that fits the
beginning of the name decides. Newer models of a family count as its newest row: makers keep what
they took away.
"""

import re
from typing import Final

import msgspec

__all__ = ["Ability", "ability_of", "plain_name"]

_DATE: Final = r"[-@](?:20\d{6}|20\d{2}-\d{2}-\d{2}|latest|default)$"
_CLOUD: Final = (
    r"(?:[a-z-]{2,6}\.|global\.)?"
    r"(?:amazon|anthropic|deepseek|google|meta|minimax|mistral|moonshotai|openai|qwen|xai|zai)\."
)
"""How a cloud writes whose model it is: `us.anthropic.claude-…-v1:0`."""
_CLOUD_VERSION: Final = r"-v\d+$"
_POINT: Final = r"(?<=\d)[.p](?=\d)"
_TURNED: Final = r"claude-(\d+(?:-\d+)?)-(opus|sonnet|haiku)(?=-|$)"
"""Newer names have the number last, and some gateways the other way round."""

_SAMPLING: Final = ("temperature", "top_p")
_ALL_SAMPLING: Final = ("temperature", "top_p", "stop")


class Ability(msgspec.Struct, frozen=True, kw_only=True):
    """What a family of models can do; what is unset is not known."""

    thinking: str = ""
    """How it thinks; see `Model.thinking`."""
    refuses: tuple[str, ...] = ()
    """Controls of `Request` that it refuses (A1.19)."""
    output_cap: int | None = None
    """The most tokens of one answer."""
    images: bool | None = None
    """Whether it sees images."""
    fast: bool = False
    """Whether it is cheap and quick enough for titles (A2.94)."""
    manages_context: bool = False
    """Whether its maker's own API makes room in its window (A4.40)."""


_UNKNOWN: Final = Ability()


def _claude_3(thinking: str, cap: int, *, fast: bool = False) -> Ability:
    return Ability(thinking=thinking, output_cap=cap, images=True, fast=fast)


def _claude(thinking: str, cap: int, *refuses: str, fast: bool = False) -> Ability:
    return Ability(
        thinking=thinking,
        refuses=refuses,
        output_cap=cap,
        images=True,
        fast=fast,
        manages_context=True,
    )


def _gpt(thinking: str, cap: int, *refuses: str, fast: bool = False) -> Ability:
    return Ability(thinking=thinking, refuses=refuses, output_cap=cap, images=True, fast=fast)


def _gpt_5(*, fast: bool = False) -> Ability:
    return Ability(
        thinking="effort",
        refuses=_ALL_SAMPLING,
        output_cap=128_000,
        images=True,
        fast=fast,
        manages_context=True,
    )


def _gemini(thinking: str, cap: int, *, fast: bool = False) -> Ability:
    return Ability(thinking=thinking, output_cap=cap, images=True, fast=fast)


def _grok(thinking: str, *refuses: str, images: bool = True, fast: bool = False) -> Ability:
    return Ability(thinking=thinking, refuses=refuses, images=images, fast=fast)


# Patterns are compiled when a model is first looked up, not with the import of the library.
_ROWS: Final[tuple[tuple[str, Ability], ...]] = (
    # Anthropic. Sampling is gone from Opus 4.7 and Sonnet 5 on, a budget of thinking too.
    (r"claude-(?:[12]\b|instant|v\d)", Ability(thinking="none", output_cap=4096, images=False)),
    (r"claude-3-haiku", _claude_3("none", 4096, fast=True)),
    (r"claude-3-(?:opus|sonnet)", _claude_3("none", 4096)),
    (r"claude-3-5-haiku", _claude_3("none", 8192, fast=True)),
    (r"claude-3-5", _claude_3("none", 8192)),
    (r"claude-3-7", _claude_3("budget", 64_000)),
    (r"claude-opus-4(?:-[01])?$", _claude("budget", 32_000)),
    (r"claude-haiku-4", _claude("budget", 64_000, fast=True)),
    (r"claude-(?:opus-4-5|sonnet-4(?:-[05])?)$", _claude("budget", 64_000)),
    (r"claude-sonnet-4-6", _claude("adaptive", 64_000)),
    (r"claude-opus-4-6", _claude("adaptive", 128_000)),
    (r"claude-haiku", _claude("adaptive", 128_000, *_SAMPLING, fast=True)),
    (r"claude-", _claude("adaptive", 128_000, *_SAMPLING)),
    # OpenAI. Models that think refuse sampling; stop sequences too.
    (r"gpt-oss", Ability(thinking="effort", images=False)),
    (r"o1-(?:mini|preview)", Ability(refuses=(*_ALL_SAMPLING, "effort"), images=False)),
    (r"o3-mini", Ability(thinking="effort", refuses=_ALL_SAMPLING, output_cap=100_000)),
    (r"(?:o[134]\b|codex-mini)", _gpt("effort", 100_000, *_ALL_SAMPLING)),
    (r"gpt-(?:\d+(?:-\d+)?-)?chat|chatgpt", _gpt("none", 16_384)),
    (r"gpt-(?:[5-9]|\d\d)(?!\d).*(?:mini|nano|luna)", _gpt_5(fast=True)),
    (r"gpt-(?:[5-9]|\d\d)(?!\d)", _gpt_5()),
    (r"gpt-4-1-(?:mini|nano)", _gpt("none", 32_768, fast=True)),
    (r"gpt-4-1(?!\d)", _gpt("none", 32_768)),
    (r"gpt-4o-mini", _gpt("none", 16_384, fast=True)),
    (r"gpt-4o|gpt-4-5", _gpt("none", 16_384)),
    (r"gpt-4-turbo|gpt-4-vision", _gpt("none", 4096)),
    (r"gpt-3-5|gpt-4-\d{4}", Ability(thinking="none", output_cap=4096, images=False)),
    (r"gpt-4", Ability(thinking="none", output_cap=8192, images=False)),
    # Google
    (r"gemini-(?:1|2-0).*flash", _gemini("none", 8192, fast=True)),
    (r"gemini-(?:1|2-0)", _gemini("none", 8192)),
    (r"gemini-2-5-flash", _gemini("budget", 65_536, fast=True)),
    (r"gemini-2", _gemini("budget", 65_536)),
    (r"gemini-.*flash", _gemini("effort", 65_536, fast=True)),
    (r"gemini-", _gemini("effort", 65_536)),
    # xAI. What thinks refuses stop sequences, and some offers no choice of how much.
    (r"grok-.*non-reasoning", _grok("none", fast=True)),
    (r"grok-2", _grok("none")),
    (r"grok-3-mini", _grok("effort", "stop", images=False)),
    (r"grok-3", _grok("none", images=False)),
    (r"grok-(?:code|build)", _grok("", "stop", "effort", images=False)),
    (r"grok-4(?:-0709|(?:-1)?-fast.*)?$", _grok("", "stop", "effort")),
    (r"grok-", _grok("effort", "stop")),
    # Others
    (r"deepseek.*flash", Ability(thinking="effort", images=False, fast=True)),
    (r"deepseek-v[4-9]", Ability(thinking="effort", images=False)),
    (r"kimi-k2-[5-9]", Ability(refuses=_SAMPLING, images=True)),
    (r"kimi-k2(?:-instruct.*|-0\d{3}.*|-turbo.*)?$", Ability(thinking="none", images=False)),
    (r"kimi-k[3-9]", Ability(images=True)),
    (r"glm-\d(?:-\d)?v", Ability(images=True)),
    (r"glm-.*(?:flash|air)", Ability(images=False, fast=True)),
    (r"glm-", Ability(images=False)),
    (r"ministral", Ability(thinking="none", fast=True)),
    (r"mistral-small", Ability(fast=True)),
    (r"(?:codestral|devstral|mixtral|pixtral|mistral-nemo|mistral-7b)", Ability(thinking="none")),
    (r"qwen.*-vl", Ability(images=True)),
    (r"qwen.*(?:flash|turbo)", Ability(fast=True)),
    (r"qwen2", Ability(thinking="none")),
    (r"(?:meta-)?llama-.*(?:-8b|instant)|gemma-", Ability(thinking="none", fast=True)),
    (r"(?:meta-)?llama-", Ability(thinking="none")),
    (r"sonar-(?:reasoning|deep)", Ability(thinking="effort")),
    (r"sonar", Ability(thinking="none")),
)


def ability_of(model: str) -> Ability:
    """What a model can do; all unset when nobody knows it (A2.84).

    Args:
        model: Its name as some provider writes it.
    """
    name = plain_name(model)
    return next((ability for row, ability in _ROWS if re.match(row, name)), _UNKNOWN)


def plain_name(model: str) -> str:
    """The name of a model without what gateways and clouds put round it.

    `anthropic/claude-opus-4.5:free`, `us.anthropic.claude-opus-4-5-20251101-v1:0` and
    `claude-opus-4-5@20251101` are all `claude-opus-4-5`.
    """
    name = model.lower().rsplit("/", 1)[-1].split(":", 1)[0]
    cloud = re.match(_CLOUD, name)
    if cloud is not None:
        name = re.sub(_CLOUD_VERSION, "", name[cloud.end() :])
    name = re.sub(_POINT, "-", re.sub(_DATE, "", name))
    turned = re.match(_TURNED, name)
    if turned is not None and not turned[1].startswith("3"):
        name = f"claude-{turned[2]}-{turned[1]}{name[turned.end() :]}"
    return name
