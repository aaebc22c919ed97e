"""What a caller of the library gives, looked at before anything is done with it."""

from collections.abc import Sequence
from typing import Any, cast

from towline_agent.permissions.policy import MODES
from towline_agent.providers.base import EFFORTS, Controls
from towline_protocol import File, Image, Limits, PromptBlock, Text, UsageError

__all__ = ["Prompt", "check_arguments", "check_prompt"]

Prompt = str | Sequence[PromptBlock]
"""Words, or blocks such as `Text`, `Image` and `File`."""


def check_prompt(prompt: object) -> None:
    """Refuse what is no prompt.

    Raises:
        UsageError: It is neither words nor a list of blocks, or it is empty.
    """
    if isinstance(prompt, str) and prompt.strip():
        return
    if isinstance(prompt, str) or not isinstance(prompt, Sequence) or not prompt:
        raise UsageError(f"A prompt can't be {prompt!r}; give words, or a list of blocks.")
    for block in cast("Sequence[Any]", prompt):
        if not isinstance(block, Text | Image | File):
            raise UsageError(
                f"A prompt can't hold {block!r}; its blocks are `Text`, `Image` and `File`."
            )


def check_arguments(
    texts: dict[str, object],
    limits: object,
    controls: object,
    fallbacks: object,
    mode: object,
    effort: object,
) -> None:
    """Refuse what an agent cannot be made of.

    Raises:
        UsageError: A value is of a wrong type or no word of its list.
    """
    for name, value in texts.items():
        if not isinstance(value, str):
            raise UsageError(f"{name!r} can't be {value!r}; give a text.")
    if not isinstance(limits, Limits | None):
        raise UsageError(f"'limits' can't be {limits!r}; give `Limits(...)`.")
    if not isinstance(controls, Controls | None):
        raise UsageError(f"'controls' can't be {controls!r}; give `Controls(...)`.")
    if isinstance(fallbacks, str):
        raise UsageError(f"'fallbacks' can't be {fallbacks!r}; give a list of models.")
    if mode not in MODES:
        raise UsageError(f"There is no mode {mode!r}; it is one of: {', '.join(MODES)}.")
    if effort is not None and effort not in EFFORTS:
        raise UsageError(f"There is no effort {effort!r}; it is one of: {', '.join(EFFORTS)}.")
