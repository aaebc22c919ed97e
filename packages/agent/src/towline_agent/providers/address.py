"""Base URLs as people paste them (A2.77, A2.78, A2.80). Pure text."""

import ipaddress
import re
from typing import Final
from urllib.parse import urlsplit, urlunsplit

import msgspec

from towline_protocol import UsageError

__all__ = ["Address", "is_loopback", "is_safe", "parse_address"]

_URL: Final = r"(?ai:https?)://[^\s\"'<>`\\]+"
_TRAILING: Final = (
    r"(?:/(?P<version>v1))?"
    r"(?:/(?P<call>chat/completions|responses|models|messages(?:/count_tokens)?))?/*$"
)
_VERSION: Final = r"/v\d+[a-z0-9]*(?=/|$)"
_PUNCTUATION: Final = ".,;:!?)]}"


class Address(msgspec.Struct, frozen=True, kw_only=True):
    """Where a provider is."""

    base: str
    """The base URL, without what A2.78 drops."""
    api: str
    """The URL under which `/chat/completions`, `/messages` and `/models` lie."""


def parse_address(pasted: str) -> Address:
    """The address in a pasted block: its first http(s) URL.

    `https://api.example.com/v1/chat/completions`, `https://api.example.com/v1/` and
    `https://api.example.com` are the same. Another prefix is kept, and one that holds a version of
    its own, such as `/v1beta/openai`, gets no `/v1`.

    Raises:
        UsageError: There is no URL, or one with a password in it.
    """
    found = re.search(_URL, pasted)
    if found is None:
        raise UsageError(f"{pasted[:80]!r} holds no http or https URL; paste the base URL.")
    try:
        parts = urlsplit(found[0].rstrip(_PUNCTUATION))
        usable = bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        usable = False
        parts = urlsplit("")
    if not usable:
        raise UsageError("That URL has no usable host or port; correct the base URL.")
    if parts.username is not None or parts.password is not None:
        raise UsageError("The base URL holds a user or password; pass the key as `api_key`.")
    scheme, host = parts.scheme.lower(), parts.netloc.lower()
    trailing = re.search(_TRAILING, parts.path)
    assert trailing is not None  # it matches an empty end too
    path = parts.path[: trailing.start()]
    base = urlunsplit((scheme, host, path, "", ""))
    named = trailing["version"] or trailing["call"] or re.search(_VERSION, path)
    version = "/v1" if trailing["version"] or not named else ""
    return Address(base=base, api=base + version)


def is_safe(url: str) -> bool:
    """Whether a conversation may go there: encrypted, or on this machine alone (A2.80)."""
    parts = urlsplit(url)
    if parts.scheme == "https":
        return True
    return is_loopback(parts.hostname or "")


def is_loopback(host: str) -> bool:
    """Whether a host is this machine by its name or number, without asking anybody."""
    host = host.lower().rstrip(".")
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
