"""Making room in the window by the provider's own means (A4.40).

Anthropic leaves old results of calls out of what the model is shown; each request still carries the
whole conversation. OpenAI sums the conversation up into an item that only it can read; from then on
that item stands for all that came before it.
"""

from typing import Any, Final, cast

import msgspec

from towline_agent.providers.abilities import ability_of
from towline_agent.providers.base import Model
from towline_protocol import Block, Message, Opaque

__all__ = ["CLEARED", "COMPACTION", "START", "managed", "shown_from", "start_tokens"]

START: Final = 0.75
"""Of the window: where room is made, whoever makes it (A4.32)."""
COMPACTION: Final = "compaction"
"""The kind of an item that stands for all that came before it."""
CLEARED: Final = (
    "The provider leaves old results of calls out of what the model is shown, to make room; the "
    "conversation here keeps them."
)
"""How people are told of results that are shown no longer."""


def managed(facts: Model, *, offered: bool) -> Model:
    """The facts of a model, with whether room is made for it where it is asked.

    Args:
        facts: What is known of the model.
        offered: Whether the provider at this address makes room at all.
    """
    able = offered and facts.window is not None and ability_of(facts.id).manages_context
    return msgspec.structs.replace(facts, manages_context=able)


def start_tokens(facts: Model, set_aside: int = 0) -> int:
    """Tokens from which on the provider should make room.

    Args:
        facts: What is known of the model, its window too.
        set_aside: Tokens of the window that no request may fill, since they are for the answer.
    """
    window = facts.window or 0
    return int(START * (window - set_aside if 2 * set_aside < window else window))


def shown_from(messages: tuple[Message, ...], model: str) -> int:
    """The place of the first message that the provider still needs; 0 for all of them.

    Args:
        messages: The conversation.
        model: Who is asked, as `provider/model`: an item of another one says nothing to it.
    """
    for place in range(len(messages) - 1, 0, -1):
        message = messages[place]
        own = message.role == "assistant" and message.model in (None, model)
        if own and any(map(_stands_for_the_past, message.content)):
            return place
    return 0


def _stands_for_the_past(block: Block) -> bool:
    if type(block) is not Opaque or not isinstance(block.raw, dict):
        return False
    raw = cast("dict[str, Any]", block.raw)
    return raw.get("type") == COMPACTION and bool(raw.get("encrypted_content"))
