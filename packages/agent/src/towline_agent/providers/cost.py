"""What a request has cost (A4.48, A4.49)."""

from typing import Final

from towline_agent.providers.base import Model
from towline_protocol import Usage

__all__ = ["answer_cost", "cost"]

_MILLION: Final = 1_000_000
_NOTHING: Final = Usage()


def cost(model: Model, usage: Usage) -> float | None:
    """US dollars for the tokens of one request; `None` when a price that it needs is unknown.

    Tokens out of the cache and into it have prices of their own where the model has them, else the
    price of input. Thinking is contained in output (A1.13). What rises with the length of a request
    and what is paid for besides tokens, such as searches, is not in it.
    """
    read, write = model.price_cache_read, model.price_cache_write
    parts = (
        (usage.input, model.price_input),
        (usage.output, model.price_output),
        (usage.cache_read, model.price_input if read is None else read),
        (usage.cache_write, model.price_input if write is None else write),
    )
    total = 0.0
    for tokens, price in parts:
        if not tokens:
            continue
        if price is None:
            return None
        total += tokens * price
    return total / _MILLION


def answer_cost(model: Model, usage: Usage) -> float | None:
    """The same for a whole answer: one that nobody counted has cost something, if not nothing."""
    free = model.price_input == 0 and model.price_output == 0
    if usage == _NOTHING and not free:
        return None
    return cost(model, usage)
