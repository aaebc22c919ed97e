"""What the name of a Gemini model says about it (A2.52, A2.53, A2.61)."""

import re
from typing import Final

import msgspec

from towline_agent.providers.base import Model

__all__ = ["Family", "family_of"]

_NAME: Final = re.compile(r"gemini-(?:(\d+)(?:\.(\d+))?)?")
_NEWEST: Final[tuple[int, int]] = (3, 0)
"""What a name without a number stands for, such as `gemini-flash-latest`."""
_THINKS_FROM: Final[tuple[int, int]] = (2, 5)
_LEVELS_FROM: Final[tuple[int, int]] = (3, 0)
_WORDLESS: Final = re.compile(r"image|tts|audio|live|embedding")
"""Models of generation 2 for pictures and sound do not think."""
_KINDS: Final = {"budget": "budget", "effort": "level", "adaptive": "level", "none": ""}


class Family(msgspec.Struct, frozen=True, kw_only=True):
    """How a model wants to be asked."""

    generation: tuple[int, int]
    """Such as `(2, 5)`; `(0, 0)` when the name does not say."""
    pro: bool
    """Whether it is one of the large models, which always think."""
    control: str
    """How thinking is steered: `level`, `budget`, or empty for not at all."""
    thinks: bool
    """Whether it is known to think, so that its thoughts may be asked for."""

    @property
    def newest(self) -> bool:
        """Whether it is of generation 3 or later."""
        return self.generation >= _LEVELS_FROM


def family_of(model: Model) -> Family:
    """What is known of a model: its facts first, then its name."""
    name = model.id.lower()
    generation = _generation(name)
    control = _KINDS.get(model.thinking)
    if control is None:
        control = _control(generation, name)
    return Family(
        generation=generation,
        pro="-pro" in name,
        control=control,
        thinks=bool(control) and (generation >= _THINKS_FROM or bool(model.thinking)),
    )


def _generation(name: str) -> tuple[int, int]:
    found = _NAME.search(name)
    if found is None:
        return (0, 0)
    return (int(found[1]), int(found[2] or 0)) if found[1] else _NEWEST


def _control(generation: tuple[int, int], name: str) -> str:
    if generation >= _LEVELS_FROM:
        return "level"
    if generation < (2, 0) or _WORDLESS.search(name):
        return ""
    return "budget"
