"""Models and providers as people are shown them: no secret is in it. Pure."""

from typing import Final
from urllib.parse import urlsplit, urlunsplit

from towline.providers.names import held_setting
from towline.providers.reach import Reach
from towline_agent import (
    CA_SETTING,
    LOCAL_MODEL_FACTS,
    OAUTH_SERVICES,
    VENDORS,
    Vendor,
    known_model,
    model_facts,
    show_key,
    vendor_keys,
)
from towline_protocol import ModelInfo, ProviderInfo

__all__ = ["USABLE", "describe_model", "describe_provider", "keys_of"]

USABLE: Final = ("ready", "keyless", "missing", "unreadable")
"""The states of a provider, the most usable first."""


def keys_of(reach: Reach, provider: str) -> dict[str, str]:
    """Each key that is asked with, in order, and where it is: `environment`, `keyring`, `file`."""
    kept = reach.kept(provider)
    given = vendor_keys(VENDORS[provider], reach.own_environ)
    place = kept.place or "file"
    return {
        key: "environment" if key in given else place
        for key in vendor_keys(VENDORS[provider], reach.own_environ, {provider: kept.keys})
    }


def describe_provider(
    reach: Reach, provider: str, *, signing_in: bool = False, problem: str | None = None
) -> ProviderInfo:
    """One provider, and how it is reached.

    Args:
        reach: What is known of it.
        provider: Its name.
        signing_in: Whether a sign-in waits for a person.
        problem: What went wrong with one.
    """
    vendor, kept = VENDORS[provider], reach.kept(provider)
    keys = vendor_keys(vendor, reach.own_environ, {provider: kept.keys})
    setting = held_setting(provider, reach.own_environ)
    moved = reach.environ.get(vendor.url_setting or "", "").strip()
    url = moved or vendor.base_url
    if not url and problem is None and keys:
        problem = f"It has no address of its own; set one, or {vendor.url_setting}."
    has_credential = bool(keys or kept.login)
    found = "environment" if setting is not None else kept.place if kept.keys else None
    return ProviderInfo(
        provider=provider,
        title=vendor.title,
        state=_state(vendor, url, moved, has_credential=has_credential, unread=kept.unread),
        found=found or ("sign_in" if kept.login is not None else None),
        setting=setting,
        key=show_key(keys[0]) if keys else None,
        backup_keys=tuple(show_key(key) for key in keys[1:]),
        signed_in=kept.login is not None,
        can_sign_in=provider in OAUTH_SERVICES,
        signing_in=signing_in,
        base_url=_show_url(url),
        own_url=bool(moved),
        can_move=vendor.url_setting is not None,
        ca_file=reach.environ_of(provider).get(CA_SETTING) or None,
        model=f"{provider}/{vendor.default_model}" if vendor.default_model else None,
        problem=kept.unread or problem,
    )


def _state(
    vendor: Vendor, url: str, moved: str, *, has_credential: bool, unread: str | None
) -> str:
    if unread is not None and not has_credential:
        return "unreadable"
    if not url:
        return "missing"
    if has_credential:
        return "ready"
    needs_key = bool(vendor.key_settings) and not vendor.key_optional
    # another server in a vendor's place may need no key
    return "missing" if needs_key and not moved else "keyless"


def _show_url(url: str) -> str:
    """An address without what may be a secret in it."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path, "", ""))


def describe_model(provider: str, name: str, *, live: bool) -> ModelInfo:
    """One model, and what is known of it.

    Args:
        provider: Its provider.
        name: The provider's own name of it.
        live: Whether the provider has just said that it offers it.
    """
    own = provider == LOCAL_MODEL_FACTS.provider
    facts = LOCAL_MODEL_FACTS if own else model_facts(provider, name)
    prices = known_model(provider, name).prices
    return ModelInfo(
        model=f"{provider}/{name}",
        live=live,
        window=facts.window,
        output_cap=facts.output_cap,
        thinking=facts.thinking,
        refuses=facts.refuses,
        fast=facts.fast,
        images=facts.images,
        price_input=facts.price_input,
        price_output=facts.price_output,
        price_cache_read=facts.price_cache_read,
        price_cache_write=facts.price_cache_write,
        dearer_from=prices.dearer_from if prices is not None else None,
    )
