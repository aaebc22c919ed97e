"""What is different from gateway to gateway, as data."""

from typing import Final

import msgspec

from towline_agent.providers.base import EFFORTS

__all__ = ["AZURE_FLAGS", "OFFICIAL_FLAGS", "ChatFlags"]


class ChatFlags(msgspec.Struct, frozen=True, kw_only=True):
    """How one gateway speaks Chat Completions; the defaults fit one that nobody knows (A2.84)."""

    usage_option: bool = True
    """Whether it takes `stream_options.include_usage` (A2.2); Mistral refuses the key."""
    no_stream: bool = False
    """It cannot stream: the answer is asked for whole (A2.4)."""
    ends_without_finish: bool = False
    """Its streams are known to end without finish reason and `[DONE]` (A3.10): then words with a
    usage count as whole, with a notice. Never a call."""
    think_tags: bool = False
    """Its models think between `<think>` tags at the start of their words (A2.16)."""
    replay: str | None = None
    """The field in which it wants its own thinking back: `reasoning_content`, `reasoning`, or
    `reasoning_details` for the vendor's unchanged blocks. `None` sends none."""
    call_signatures: bool = False
    """Calls carry a signature that must come back with them (Gemini)."""
    short_call_ids: bool = False
    """Call ids must be nine letters and digits (Mistral)."""
    effort: str | None = "reasoning_effort"
    """Where effort goes: `reasoning_effort`, or `reasoning` for an object; `None` for nowhere."""
    efforts: tuple[str, ...] = EFFORTS[:-1]
    """The efforts that it takes, weakest first; others become the next weaker one."""
    schema_output: bool = True
    """Whether it can be held to a JSON Schema."""
    one_call: bool = False
    """The answer is over when a second call begins: a small model may go on with calls until its
    window is full. Belongs to `Model.one_call_per_step`."""
    wrap_results: bool = False
    """A tool's words go as `{"result": …}`: a small model takes bare words for a new request."""
    completion_tokens: bool = False
    """Whether the most tokens go as `max_completion_tokens` (A2.1); OpenAI's own host, which takes
    them so, needs no flag."""
    refuses: tuple[str, ...] = ()
    """Controls that it refuses, such as `stop` (A1.19)."""
    cache_key: bool = False
    """Whether it takes `prompt_cache_key` (A2.29)."""
    no_effort_with_tools: tuple[str, ...] = ()
    """Beginnings of model names that refuse tools on this API unless effort is `none`."""


OFFICIAL_FLAGS: Final = ChatFlags(
    cache_key=True,
    no_effort_with_tools=("gpt-5.4", "gpt-5.5", "gpt-5.6", "gpt-6"),
)
"""OpenAI's own host. Its newer models think and call tools together on the Responses API alone."""

AZURE_FLAGS: Final = msgspec.structs.replace(OFFICIAL_FLAGS, completion_tokens=True)
"""The same models at Azure."""
