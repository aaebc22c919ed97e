"""What a provider is made with, looked at before anything is made of it."""

import os
from collections.abc import Mapping
from typing import Any

from towline_agent.providers.base import Model
from towline_protocol import UsageError

__all__ = ["check_given"]


def check_given(
    *,
    model: object,
    base_url: object,
    api_key: object,
    headers: object,
    facts: object,
    ca_file: object,
) -> None:
    """Refuse what no provider can be made with.

    What is only unusable, such as an address without a host, shows in the first step (A4.45).

    Raises:
        UsageError: A value is of a wrong type, or the model has no name.
    """
    if not isinstance(model, str) or not model.strip():
        raise UsageError(f"'model' can't be {model!r}; give the provider's own name of a model.")
    if not isinstance(base_url, str):
        raise UsageError(f"'base_url' can't be {base_url!r}; give an address as text.")
    if not isinstance(facts, Model | None):
        raise UsageError(f"'facts' can't be {facts!r}; give `Model(...)`.")
    if facts is not None and facts.window is not None and facts.window < 1:
        raise UsageError(f"A window can't be of {facts.window!r} tokens; leave it out if unknown.")
    if not isinstance(headers, Mapping | None):
        raise UsageError("'extra_headers' must be a dict of names and values.")
    if not isinstance(ca_file, str | os.PathLike | None):
        raise UsageError(f"'ca_file' can't be {ca_file!r}; give the path of a PEM file.")
    token: Any = getattr(api_key, "token", None)
    if api_key is not None and not isinstance(api_key, str) and not callable(token):
        kind = type(api_key).__name__  # the value itself may be a secret
        raise UsageError(f"'api_key' can't be of type {kind!r}; give a text or a credential.")
