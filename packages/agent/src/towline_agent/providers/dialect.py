"""The one table from a dialect to the class that speaks it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from towline_agent.providers.base import Model, Provider
from towline_agent.providers.credential import Credential
from towline_agent.providers.openai_chat.provider import OpenAIChat
from towline_agent.providers.transport import Transport
from towline_agent.providers.vendors import Vendor

__all__ = ["Asked", "make_provider"]


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """Who is asked, where and how. Its `repr` shows no header: one may be a secret."""

    vendor: Vendor
    """The vendor."""
    dialect: str
    """One of `DIALECTS`."""
    url: str
    """The address."""
    moved: bool
    """Whether the address is another one than the vendor's own."""
    facts: Model
    """What is known of the model."""
    headers: Mapping[str, str]
    """Sent with every request."""
    allow_http: bool = False
    """Whether an unencrypted address off this machine is fine (A2.80)."""
    ca_file: str | None = None
    """A PEM file to trust besides the system's certificates (A2.79)."""

    def __repr__(self) -> str:
        return f"Asked({self.facts.name!r}, {self.dialect!r}, {self.url!r})"


def make_provider(
    asked: Asked,
    keys: Sequence[str],
    credential: Credential | None = None,
    transport: Transport | None = None,
) -> Provider:
    """The provider; of several keys a ring in which one stands in for the other (A3.29).

    Args:
        asked: Who is asked, where and how.
        keys: The keys, the first one goes first.
        credential: What is sent when there is no key.
        transport: Who carries the requests; `None` for the process's own.
    """
    if len(keys) > 1:
        from towline_agent.providers.keys import KeyRing  # as below

        return KeyRing({key: _make(asked, key, transport) for key in keys})
    return _make(asked, keys[0] if keys else credential, transport)


def _make(asked: Asked, key: str | Credential | None, transport: Transport | None) -> Provider:
    vendor = asked.vendor
    elsewhere = asked.moved and bool(vendor.base_url)
    needs_key = bool(vendor.key_settings) and not vendor.key_optional and not elsewhere
    options: dict[str, Any] = {
        "api_key": key,
        "base_url": asked.url,
        "provider": asked.facts.provider,
        "facts": asked.facts,
        "extra_headers": asked.headers,
        "known_models": (vendor.default_model,) if vendor.default_model else (),
        "key_setting": vendor.key_settings[0] if needs_key else None,
        "allow_http": asked.allow_http,
        "ca_file": asked.ca_file,
        "transport": transport,
        "suggested_model": vendor.default_model,
    }
    return _MAKERS[asked.dialect](asked, options)


def _chat(asked: Asked, options: dict[str, Any]) -> Provider:
    flags = asked.vendor.flags
    if asked.moved:  # a server that stands in for it may refuse what it does not know
        flags = msgspec.structs.replace(flags, cache_key=False)
    return OpenAIChat(asked.facts.id, flags=flags, **options)


# The others are imported when they are first asked for, not with the library.


def _responses(asked: Asked, options: dict[str, Any]) -> Provider:
    from towline_agent.providers.openai_responses.flags import GATEWAY_FLAGS, ResponsesFlags
    from towline_agent.providers.openai_responses.provider import OpenAIResponses

    flags = GATEWAY_FLAGS.get(asked.vendor.name, ResponsesFlags())
    if asked.moved and asked.vendor.base_url:  # another host: its own rules
        flags = None
    return OpenAIResponses(asked.facts.id, flags=flags, **options)


def _anthropic(asked: Asked, options: dict[str, Any]) -> Provider:
    from towline_agent.providers.anthropic.provider import Anthropic

    flags = asked.vendor.messages
    if asked.moved:  # a server that stands in for it may refuse what it does not know
        flags = msgspec.structs.replace(flags, clears_results=False)
    return Anthropic(asked.facts.id, flags=flags, **options)


def _gemini(asked: Asked, options: dict[str, Any]) -> Provider:
    from towline_agent.providers.gemini.flags import GeminiFlags
    from towline_agent.providers.gemini.provider import Gemini

    flags = GeminiFlags(vertex=asked.vendor.name == "vertex")
    return Gemini(asked.facts.id, flags=flags, **options)


_MAKERS: Final[dict[str, Callable[[Asked, dict[str, Any]], Provider]]] = {
    "chat": _chat,
    "responses": _responses,
    "anthropic": _anthropic,
    "gemini": _gemini,
}
