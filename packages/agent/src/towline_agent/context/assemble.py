"""Making a request out of the conversation (A4.3)."""

from typing import Any, Final, cast

import msgspec

from towline_agent.plan import Plan
from towline_agent.providers.base import Model, Request, ToolSpec
from towline_agent.providers.room import START
from towline_agent.tools.toolset import Toolset
from towline_protocol import (
    Block,
    File,
    Image,
    Message,
    ResultBlock,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)

__all__ = ["Assembler", "assemble", "estimate_tokens", "tool_specs"]

_CHARS_PER_TOKEN: Final = 4
"""The usual estimate (A3.28)."""
_IMAGE_TOKENS: Final = 1500
"""What a picture counts for, and a document in want of better (A3.28)."""
_MAX_TOKENS: Final = 8192
"""The default bound of an answer (A1.20)."""
_LEAST_TOKENS: Final = 256
"""An answer gets this much even in a full window: the provider then says itself what is wrong."""

_HAND_OVER: Final = (
    "The limit of steps for this turn is reached; no more tools can be called now. Say what was "
    "done, what is left to do and what the person should know."
)


class Assembler:
    """Makes the requests of one turn; what stays the same from step to step is made once."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._counted: tuple[tuple[Message, ...], int] = ((), 0)
        self._facts: Model | None = None
        self._specs: tuple[ToolSpec, ...] = ()
        self._prefix_tokens = 0

    def tokens(self, messages: tuple[Message, ...]) -> int:
        """A rough count (A3.28); each message is counted once."""
        known, chars = self._counted
        if messages[: len(known)] != known:
            known, chars = (), 0
        for message in messages[len(known) :]:
            chars += _count_chars(message.content)
        self._counted = messages, chars
        return chars // _CHARS_PER_TOKEN

    def shown_tokens(self, messages: tuple[Message, ...], facts: Model) -> int:
        """A rough count of what the model is shown of them.

        A provider that makes room itself shows no more than fits, however much it is sent (A4.40).
        """
        tokens = self.tokens(messages)
        if not facts.manages_context or facts.window is None:
            return tokens
        return min(tokens, int(facts.window * START))

    def request(
        self,
        messages: tuple[Message, ...],
        facts: Model,
        *,
        hand_over: bool = False,
        trailing: str = "",
    ) -> Request:
        """The next request: stable prefix, tools, history, trailing words, in this order.

        Args:
            messages: The conversation, well paired.
            facts: The model that is asked.
            hand_over: Ask for words alone: the same tools, tool choice `none` (A4.4).
            trailing: Words for this step alone (A4.11).
        """
        plan = self._plan
        if facts is not self._facts:
            self._look_at(facts)
        if hand_over:
            messages = (*messages, Message("user", (Text(text=_HAND_OVER),)))
        return Request(
            model=facts.id,
            system="" if facts.bare_prompt else plan.system,
            messages=messages,
            tools=() if hand_over and facts.none_without_tools else self._specs,
            tool_choice="none" if hand_over else "auto",
            max_tokens=plan.controls.max_tokens or self._max_tokens(facts, messages),
            temperature=plan.controls.temperature,
            top_p=plan.controls.top_p,
            stop=plan.controls.stop,
            thinking_budget=plan.controls.thinking_budget,
            effort=plan.effort,
            output=None if plan.output is None else plan.output.schema,
            server_tools=plan.server_tools,
            trailing="" if facts.bare_prompt else trailing,
            cache_key=plan.cache_key,
        )

    def _look_at(self, facts: Model) -> None:
        self._facts = facts
        self._specs = tool_specs(self._plan.tools, facts)
        if facts.window is not None:
            chars = 0 if facts.bare_prompt else len(self._plan.system)
            chars += len(msgspec.json.encode(self._specs))
            self._prefix_tokens = chars // _CHARS_PER_TOKEN

    def _max_tokens(self, facts: Model, messages: tuple[Message, ...]) -> int | None:
        """Unset while the window is unknown, else what is left of it (A1.20)."""
        if facts.window is None:
            return None
        left = facts.window - self._prefix_tokens - self.shown_tokens(messages, facts)
        return max(_LEAST_TOKENS, min(_MAX_TOKENS, left, facts.output_cap or _MAX_TOKENS))


def assemble(
    plan: Plan,
    messages: tuple[Message, ...],
    *,
    facts: Model | None = None,
    hand_over: bool = False,
    trailing: str = "",
) -> Request:
    """One request by itself (A4.3, A4.5); a turn keeps an `Assembler`.

    Args:
        plan: What the turn works with.
        messages: The conversation, well paired.
        facts: The model that is asked; `None` for the plan's own.
        hand_over: Ask for words alone: the same tools, tool choice `none` (A4.4).
        trailing: Words for this step alone (A4.11).
    """
    facts = plan.provider.model if facts is None else facts
    return Assembler(plan).request(messages, facts, hand_over=hand_over, trailing=trailing)


def tool_specs(tools: Toolset, facts: Model) -> tuple[ToolSpec, ...]:
    """The tools as this model is told of them, in their order."""
    if not facts.plain_tools:
        return tools.specs
    return tuple(
        msgspec.structs.replace(spec, parameters=_required_only(spec.parameters))
        for spec in tools.specs
    )


def _required_only(schema: dict[str, Any]) -> dict[str, Any]:
    """The least schema that says the same: with more words a small model stops calling at all."""
    required = schema.get("required", [])
    shown = {k: v for k, v in schema.get("properties", {}).items() if k in required}
    kept = {"type": "object", "properties": shown}
    if required:
        kept["required"] = required
    if "$defs" in schema:  # what is shown may refer to them
        kept["$defs"] = schema["$defs"]
    return kept


def estimate_tokens(messages: tuple[Message, ...]) -> int:
    """A rough count: four characters a token, 1,500 tokens an image (A3.28)."""
    return sum(_count_chars(message.content) for message in messages) // _CHARS_PER_TOKEN


def _count_chars(blocks: tuple[Block, ...] | tuple[ResultBlock, ...]) -> int:
    chars = 0
    for block in blocks:  # of all that was said so far: `isinstance` costs three times as much
        kind = type(block)
        if kind is Text or kind is Thinking:
            chars += len(cast("Text", block).text)
        elif kind is ToolCall:
            chars += len(cast("ToolCall", block).arguments)
        elif kind is ToolResult:
            chars += _count_chars(cast("ToolResult", block).content)
        elif kind is Image or kind is File:
            chars += _IMAGE_TOKENS * _CHARS_PER_TOKEN
    return chars
