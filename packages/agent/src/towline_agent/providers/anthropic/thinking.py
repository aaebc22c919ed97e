"""How much a request lets the model think (A2.35, A2.36)."""

import sys
from itertools import groupby
from typing import Any, Final

import msgspec

from towline_agent.providers.anthropic.blocks import DIALECT
from towline_agent.providers.anthropic.flags import (
    BUDGETS,
    AnthropicFlags,
    ClaudeQuirks,
    claude_quirks,
)
from towline_agent.providers.base import Model, Request, nearest_effort
from towline_protocol import Message, Opaque, Text, Thinking, ToolCall, ToolResult

__all__ = ["MAX_TOKENS", "ThinkingPlan", "is_foreign", "plan_thinking"]

MAX_TOKENS: Final = 8_192
"""Tokens of an answer when nobody says how many; the API wants a number (A1.21)."""

_LEAST_BUDGET: Final = 1_024
"""The API refuses less."""
_FORCED: Final = "Thinking was left out: this model does not think where it is made to call a tool."
_UNSIGNED: Final = (
    "Thinking was left out until the end of this turn: it began without thinking of this model."
)


class ThinkingPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What a request says of thinking."""

    max_tokens: int
    """Tokens of the whole answer, thinking among them."""
    thinking: dict[str, Any] | None = None
    """The field `thinking`; `None` leaves it out."""
    effort: str | None = None
    """The field `output_config.effort`; `None` leaves it out."""
    notices: tuple[str, ...] = ()
    """What was left out and why."""

    @property
    def on(self) -> bool:
        """Whether the model was asked to think."""
        return self.thinking is not None and self.thinking["type"] != "disabled"

    @property
    def interleaved(self) -> bool:
        """Whether thinking between calls must be asked for.

        With a budget it does not come by itself (A2.36).
        """
        return self.thinking is not None and self.thinking["type"] == "enabled"


def plan_thinking(request: Request, model: Model, flags: AnthropicFlags) -> ThinkingPlan:
    """What to send of effort, budget and the token cap.

    Args:
        request: The neutral request.
        model: What is known of the model.
        flags: How the gateway speaks.
    """
    effort = None if "effort" in model.refuses else request.effort
    budget = None if "thinking_budget" in model.refuses else request.thinking_budget
    plan = ThinkingPlan(
        max_tokens=min(request.max_tokens or MAX_TOKENS, model.output_cap or sys.maxsize),
        notices=_refused(request, effort, budget),
    )
    if request.max_tokens is not None and plan.max_tokens < request.max_tokens:
        plan = _noted(plan, "`max_tokens` was cut to what this model can write.")
    if effort is None and budget is None:
        return plan
    quirks = claude_quirks(request.model)
    mode = model.thinking or "budget"
    if budget == 0 or (budget is None and effort == "none"):
        return _off(plan, mode, quirks)
    if mode == "none":
        return _noted(plan, "Thinking was left out: this model does not think.")
    if mode == "budget":
        return _by_budget(request, model, flags, plan, budget or BUDGETS.get(effort or "", 8_192))
    if budget is not None:
        plan = _noted(plan, "The thinking budget was left out: this model takes an effort alone.")
    if effort == "none":
        effort = None
    return msgspec.structs.replace(
        plan,
        thinking={"type": "adaptive"} if mode == "adaptive" else None,
        effort=nearest_effort(effort, quirks.efforts) if effort is not None else None,
    )


def is_foreign(message: Message, model: Model) -> bool:
    """Whether another model wrote it: then its proofs mean nothing here (A2.32)."""
    return message.model is not None and message.model != model.name


def _refused(request: Request, effort: str | None, budget: int | None) -> tuple[str, ...]:
    refused = effort != request.effort or budget != request.thinking_budget
    return ("How much to think was left out: this model takes no say in it.",) if refused else ()


def _noted(plan: ThinkingPlan, notice: str) -> ThinkingPlan:
    return msgspec.structs.replace(plan, notices=(*plan.notices, notice))


def _off(plan: ThinkingPlan, mode: str, quirks: ClaudeQuirks) -> ThinkingPlan:
    if mode == "none":
        return plan
    if mode == "effort" or quirks.always_thinks:
        plan = _noted(plan, "Thinking was set as low as it goes: this model always thinks.")
        adaptive = {"type": "adaptive"} if mode == "adaptive" else None
        return msgspec.structs.replace(plan, thinking=adaptive, effort=quirks.efforts[0])
    return msgspec.structs.replace(plan, thinking={"type": "disabled"})


def _by_budget(
    request: Request, model: Model, flags: AnthropicFlags, plan: ThinkingPlan, budget: int
) -> ThinkingPlan:
    """A number of tokens, always less than the token cap that contains it."""
    if request.tools and request.tool_choice not in ("auto", "none"):
        return _noted(plan, _FORCED)
    if not flags.unsigned_thinking and not _may_go_on(request.messages, model):
        return _noted(plan, _UNSIGNED)
    budget = max(budget, _LEAST_BUDGET)
    most = plan.max_tokens
    if request.max_tokens is None:  # room for an answer beside the thinking
        most = min(MAX_TOKENS + budget, model.output_cap or MAX_TOKENS + budget)
    if budget >= most:
        if request.thinking_budget is not None:
            plan = _noted(plan, "The thinking budget was cut: it must be less than `max_tokens`.")
        budget = most * 3 // 4
    if budget < _LEAST_BUDGET:
        return _noted(plan, "Thinking was left out: `max_tokens` leaves no room for it.")
    thinking = {"type": "enabled", "budget_tokens": budget}
    return msgspec.structs.replace(plan, thinking=thinking, max_tokens=most)


def _may_go_on(messages: tuple[Message, ...], model: Model) -> bool:
    """Whether thinking may be on: the API wants a tool loop that thinks to have begun so."""
    began: Message | None = None
    results = False
    sent = (message for message in reversed(messages) if _says_something(message, model))
    for answers, group in groupby(sent, key=_is_answer):
        if not answers:
            results = any(map(_is_results, group))
        elif results:
            began = list(group)[-1]
        else:
            break
    if began is None or not began.content:
        return True
    first = began.content[0]
    signed = isinstance(first, Thinking) and bool(first.signature)
    return signed and not is_foreign(began, model)


def _is_answer(message: Message) -> bool:
    return message.role == "assistant"


def _says_something(message: Message, model: Model) -> bool:
    """Whether anything of a message is sent: an answer that was only thought leaves no trace."""
    if not _is_answer(message):
        return True
    foreign = is_foreign(message, model)
    for block in message.content:
        match block:
            case ToolCall():
                return True
            case Text(text=text) if text.strip():
                return True
            case Opaque(dialect=dialect) if dialect == DIALECT and not foreign:
                return True
            case _:
                pass
    return False


def _is_results(message: Message) -> bool:
    return any(isinstance(block, ToolResult) for block in message.content)
