"""Addresses of the Gemini API and of Vertex AI as people paste them (A2.77, A2.78). Pure text."""

import re
from typing import Final
from urllib.parse import urlsplit

from towline_agent.providers.address import parse_address
from towline_protocol import UsageError

__all__ = ["gemini_address", "is_vertex"]

_CALL: Final = re.compile(
    r"(?:/publishers/google)?(?:/(?:models(?:/[^/]*)?|cachedContents(?:/[^/]*)?|openai(?:/.*)?))?/*$"
)
"""What the dialect puts behind its address itself, or what another dialect of the same host does.
"""
_VERSION: Final = re.compile(r"/v\d+[a-z0-9]*(?=/|$)")


def gemini_address(pasted: str, *, vertex: bool) -> str:
    """The address under which `/models` or `/publishers/google/models` lie.

    `https://generativelanguage.googleapis.com` and all below it is
    `https://generativelanguage.googleapis.com/v1beta`: version 1 of that API has no tools. What is
    no address stays as it is; whoever uses it says what is wrong.

    Args:
        pasted: A base URL, or the address of a call.
        vertex: Whether it is Vertex AI.
    """
    try:
        base = parse_address(pasted).base
    except UsageError:
        return pasted
    base = _CALL.sub("", base)
    version = "/v1" if vertex else "/v1beta"
    return base if _VERSION.search(urlsplit(base).path) else base + version


def is_vertex(url: str) -> bool:
    """Whether an address is Google's own of Vertex AI."""
    host = urlsplit(url).hostname or ""
    return host.endswith(".googleapis.com") and "aiplatform" in host
