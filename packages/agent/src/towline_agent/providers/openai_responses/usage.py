"""Token counts, under the names that Responses gives them (A1.13)."""

from typing import Any

from towline_agent.providers.json_value import as_object
from towline_agent.providers.openai_chat.usage import read_usage as read_chat_usage
from towline_protocol import Usage

__all__ = ["read_usage"]


def read_usage(raw: Any) -> Usage | None:
    """The counts of a `usage` object; `None` when there are none.

    The API names the details after input and output, Chat Completions after prompt and completion;
    all else is the same.
    """
    found = as_object(raw)
    if not found:
        return None
    renamed = {
        "prompt_tokens_details": found.get("input_tokens_details"),
        "completion_tokens_details": found.get("output_tokens_details"),
    }
    return read_chat_usage({**renamed, **found})
