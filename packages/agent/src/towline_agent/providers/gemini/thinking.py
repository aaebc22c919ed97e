"""How much a model is asked to think, and how long its answer may become (A2.52 to A2.55)."""

from typing import Any, Final

import msgspec

from towline_agent.providers.base import Model, Request
from towline_agent.providers.gemini.family import Family

__all__ = ["Thinking", "ask_to_think"]

_LEVELS: Final = {
    "none": "minimal",
    "minimal": "minimal",
    "low": "low",
    "medium": "medium",
    "high": "high",
    "xhigh": "high",
    "max": "high",
}
"""Effort as a level: generation 3 cannot do without thinking, and knows no level above high."""
_BUDGETS: Final = {
    "none": 0,
    "minimal": 512,
    "low": 2048,
    "medium": 8192,
    "high": 16_384,
    "xhigh": 16_384,
    "max": 24_576,
}
"""Effort as tokens. 512 is the least that all models of generation 2.5 take."""
_PRO_FLOOR: Final = 128
"""The large models take no smaller budget: they always think."""
_ALLOWANCES: Final = {"minimal": 1024, "low": 4096, "medium": 12_288, "high": 24_576}
_UNSET_ALLOWANCE: Final = 16_384
"""What is added to the bound of an answer for thoughts, which count against it."""
_MOST_TOKENS: Final = 65_536
"""The most tokens of one answer that any model takes."""


class Thinking(msgspec.Struct, frozen=True, kw_only=True):
    """What goes into `generationConfig`; `None` is not sent."""

    config: dict[str, Any] | None = None
    """`thinkingConfig`."""
    max_tokens: int | None = None
    """`maxOutputTokens`."""


def ask_to_think(request: Request, model: Model, family: Family, notices: list[str]) -> Thinking:
    """How thinking is asked for.

    Args:
        request: What was asked for.
        model: What is known of the model.
        family: How it wants to be asked.
        notices: Takes in what was left out and why (A1.19).
    """
    effort = request.effort
    if effort is not None and ("effort" in model.refuses or effort not in _LEVELS):
        notices.append(f"The effort {effort!r} was not sent: {request.model!r} does not take it.")
        effort = None
    budget = request.thinking_budget
    if budget is not None and (family.control != "budget" or "thinking_budget" in model.refuses):
        notices.append(f"The thinking budget was not sent: {request.model!r} takes none.")
        budget = None
    if effort is not None and not family.control:
        notices.append(f"The effort {effort!r} was not sent: {request.model!r} does not think.")
        effort = None
    config, allowance = _config(effort, budget, family)
    limit = None
    if request.max_tokens is not None:
        limit = min(_MOST_TOKENS, request.max_tokens + allowance, model.output_cap or _MOST_TOKENS)
    return Thinking(config=config or None, max_tokens=limit)


def _config(effort: str | None, budget: int | None, family: Family) -> tuple[dict[str, Any], int]:
    """`thinkingConfig`, and how many tokens thoughts may take besides the answer."""
    config: dict[str, Any] = {}
    if not family.control:
        return config, 0
    if family.thinks or effort is not None or budget is not None:
        config["includeThoughts"] = True
    level = None if effort is None else _LEVELS[effort]
    if family.control == "level":
        if family.pro and level == "minimal":
            level = "low"
        if level is not None:
            config["thinkingLevel"] = level
        return config, _UNSET_ALLOWANCE if level is None else _ALLOWANCES[level]
    if budget is None and effort is not None:
        budget = _BUDGETS[effort]
    if budget is not None and family.pro and 0 <= budget < _PRO_FLOOR:
        budget = _PRO_FLOOR
    if budget is not None:
        config["thinkingBudget"] = budget
    if budget == 0:
        return {"thinkingBudget": 0}, 0  # nothing to include, and asking for it is refused
    allowance = _UNSET_ALLOWANCE if level is None else _ALLOWANCES[level]
    return config, max(allowance, budget or 0)
