"""Making a request out of the conversation (A4.3)."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from towline_agent.plan import Plan
from towline_agent.providers.base import Model, Request, ToolSpec
from towline_agent.tools.tool import Tool
from towline_protocol import Image, Message, Text

__all__ = ["assemble", "estimate_tokens", "tool_specs"]

_CHARS_PER_TOKEN: Final = 4
"""The usual estimate (A3.28)."""
_IMAGE_TOKENS: Final = 1500
"""What a picture counts for (A3.28)."""
_MAX_TOKENS: Final = 8192
"""The default bound of an answer (A1.20)."""
_LEAST_TOKENS: Final = 256
"""An answer gets this much even in a full window: the provider then says itself what is wrong."""

_HAND_OVER: Final = (
    "The limit of steps for this turn is reached; no more tools can be called now. Say what was "
    "done, what is left to do and what the person should know."
)


def assemble(plan: Plan, messages: tuple[Message, ...], *, hand_over: bool = False) -> Request:
    """The next request: stable prefix, tools, history, in this order (A4.3, A4.5).

    Args:
        plan: What the turn works with.
        messages: The conversation, well paired.
        hand_over: Ask for words alone: the same tools, tool choice `none` (A4.4).
    """
    if hand_over:
        messages = (*messages, Message("user", (Text(text=_HAND_OVER),)))
    facts = plan.provider.model
    specs = tool_specs(plan.tools, facts)
    choice = "none" if hand_over else "auto"
    system = "" if facts.bare_prompt else plan.system
    if hand_over and facts.none_without_tools:
        specs = ()
    return Request(
        model=facts.id,
        system=system,
        messages=messages,
        tools=specs,
        tool_choice=choice,
        max_tokens=_max_tokens(facts, system, specs, messages),
    )


def tool_specs(tools: Mapping[str, Tool], facts: Model) -> tuple[ToolSpec, ...]:
    """The tools as this model is told of them, in their order."""
    return tuple(
        ToolSpec(
            name=tool.name,
            description=tool.description,
            parameters=_required_only(tool.parameters) if facts.plain_tools else tool.parameters,
        )
        for tool in tools.values()
    )


def _required_only(schema: dict[str, Any]) -> dict[str, Any]:
    """The least schema that says the same: with more words a small model stops calling at all."""
    required = schema.get("required", [])
    shown = {k: v for k, v in schema.get("properties", {}).items() if k in required}
    kept = {"type": "object", "properties": shown}
    return {**kept, "required": required} if required else kept


def estimate_tokens(messages: tuple[Message, ...]) -> int:
    """A rough count: four characters a token, 1,500 tokens an image (A3.28)."""
    return sum(_chars(block) for message in messages for block in message.content) // (
        _CHARS_PER_TOKEN
    )


def _chars(block: object) -> int:
    if isinstance(block, Image):
        return _IMAGE_TOKENS * _CHARS_PER_TOKEN
    for name in ("text", "arguments"):
        value = getattr(block, name, None)
        if isinstance(value, str):
            return len(value)
    content: tuple[object, ...] = getattr(block, "content", ())
    return sum(_chars(part) for part in content)


def _max_tokens(
    facts: Model, system: str, specs: tuple[ToolSpec, ...], messages: tuple[Message, ...]
) -> int | None:
    """Unset while the window is unknown, else what is left of it (A1.20)."""
    if facts.window is None:
        return None
    prefix = (len(system) + len(msgspec.json.encode(specs))) // _CHARS_PER_TOKEN
    left = facts.window - prefix - estimate_tokens(messages)
    return max(_LEAST_TOKENS, min(_MAX_TOKENS, left, facts.output_cap or _MAX_TOKENS))
