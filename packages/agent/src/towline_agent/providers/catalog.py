"""From `provider/model` to somebody to ask (A2.81 to A2.90)."""

import os
import re
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from towline_agent.providers.base import Model
from towline_agent.providers.facts import known_facts
from towline_agent.providers.openai_chat.provider import OpenAIChat
from towline_agent.providers.transport import CA_SETTING, Transport
from towline_agent.providers.vendors import VENDORS, Vendor
from towline_protocol import UsageError

__all__ = [
    "LOCAL_MODEL_FACTS",
    "Choice",
    "Found",
    "choose_model",
    "connect",
    "connect_local",
    "discover",
    "model_facts",
]

LOCAL_MODEL_FACTS: Final = Model(
    provider="local",
    id="qwen2.5-coder-1.5b-instruct",
    window=8192,
    output_cap=1024,
    price_input=0.0,
    price_output=0.0,
    idle_s=900.0,
    concurrency=1,
    one_call_per_step=True,
    named_choice=False,
    none_without_tools=True,
    plain_tools=True,
    bare_prompt=True,
)
"""The embedded local model (A2.91): small, free, with one slot and long silences."""

_HTTP_SETTING: Final = "TOWLINE_ALLOW_HTTP"
_YES: Final = frozenset({"1", "true", "yes", "on"})


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """A provider that works without configuration, and how that is known."""

    provider: str
    """Its name in the catalog."""
    model: str | None
    """The model that would be taken; `None` when only the provider can say."""
    why: str
    """For people, such as `OPENAI_API_KEY is set`."""


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """Which model is taken, and why (A2.90)."""

    model: str
    """The provider's own name of it."""
    why: str
    """For people."""


def connect(
    name: str,
    env: Mapping[str, str] | None = None,
    *,
    base_url: str | None = None,
    api_key: str | None = None,
    transport: Transport | None = None,
) -> OpenAIChat:
    """A provider for `provider/model`, or for `provider` alone with its usual model.

    Does no I/O. A missing key or an unusable address shows in the first step (A4.45).

    Args:
        name: Such as `openai/gpt-5.6-sol`.
        env: Where keys and addresses are looked up; `None` for the process's environment.
        base_url: Another address than the vendor's (A2.77).
        api_key: A key that goes before the environment's.
        transport: Who carries the requests; `None` for the process's own.

    Raises:
        UsageError: No such provider, or no model named where there is no usual one.
    """
    env = os.environ if env is None else env
    vendor, model = _parse(name)
    moved = base_url or _address(vendor, env)
    url = moved or vendor.base_url
    if not url:
        raise UsageError(
            f"The provider {vendor.name!r} has no address of its own; name it in "
            f"{vendor.url_setting}."
        )
    needs_key = bool(vendor.key_settings) and not moved
    return OpenAIChat(
        model,
        api_key=api_key or _key(vendor, env),
        base_url=url,
        provider=vendor.name,
        facts=model_facts(vendor.name, model),
        flags=vendor.flags,
        known_models=(vendor.default_model,) if vendor.default_model else (),
        key_setting=vendor.key_settings[0] if needs_key else None,
        allow_http=env.get(_HTTP_SETTING, "").lower() in _YES,
        ca_file=env.get(CA_SETTING) or None,
        transport=transport,
    )


def connect_local(
    base_url: str,
    api_key: str,
    *,
    facts: Model = LOCAL_MODEL_FACTS,
    transport: Transport | None = None,
) -> OpenAIChat:
    """The embedded local model at the address where its server listens."""
    return OpenAIChat(
        facts.id,
        api_key=api_key,
        base_url=base_url,
        provider=facts.provider,
        facts=facts,
        flags=VENDORS["llamacpp"].flags,
        known_models=(facts.id,),
        transport=transport,
    )


def model_facts(provider: str, model: str) -> Model:
    """What is known of a model; safe defaults when that is nothing (A2.84)."""
    vendor = VENDORS.get(provider)
    known = known_facts(provider, model)
    plain = Model(provider=provider, id=model)
    if vendor is not None:
        free = 0.0 if vendor.local else None
        plain = Model(
            provider=provider,
            id=model,
            price_input=free,
            price_output=free,
            idle_s=plain.idle_s if vendor.idle_s is None else vendor.idle_s,
            named_choice=vendor.named_choice,
            none_without_tools=vendor.none_without_tools,
        )
    if known is None:
        return plain
    return msgspec.structs.replace(
        plain, window=known.window, price_input=known.input, price_output=known.output
    )


def discover(env: Mapping[str, str] | None = None) -> tuple[Found, ...]:
    """The providers for which the environment holds a key or an address (A2.85), best first."""
    env = os.environ if env is None else env
    found: list[Found] = []
    for vendor in VENDORS.values():
        settings = [*vendor.key_settings]
        if vendor.url_setting is not None and (vendor.local or not vendor.base_url):
            settings = [vendor.url_setting]
        held = next((name for name in settings if env.get(name, "").strip()), None)
        if held is not None:
            why = f"{held} is set"
            found.append(Found(provider=vendor.name, model=vendor.default_model, why=why))
    return tuple(found)


def choose_model(provider: str, live: Sequence[str] = (), last: str | None = None) -> Choice:
    """The model to take when none is named (A2.87 to A2.89).

    Args:
        provider: The provider's name.
        live: The models that it offers just now; empty when it was not asked.
        last: What the person picked last for this provider.

    Raises:
        UsageError: There is nothing to choose from.
    """
    vendor = _vendor(provider)
    if last and (not live or last in live):
        return Choice(model=last, why="your last pick")
    newest = _newest(vendor, live)
    if newest is not None:
        return Choice(model=newest, why=f"the newest of its kind that {vendor.title} offers")
    if vendor.default_model is not None:
        return Choice(model=vendor.default_model, why=f"the usual one of {vendor.title}")
    talking = [model for model in live if "embed" not in model.lower()]
    if talking:
        return Choice(model=talking[0], why=f"the first one that {vendor.title} offers")
    raise UsageError(f"No model is known for {provider!r}; name one as '{provider}/MODEL'.")


def _newest(vendor: Vendor, live: Sequence[str]) -> str | None:
    if vendor.prefer is None:
        return None
    pattern = re.compile(vendor.prefer)
    matches = [match for match in map(pattern.fullmatch, live) if match is not None]
    best = max(matches, key=lambda match: tuple(map(int, match.groups())), default=None)
    return best[0] if best is not None else None


def _parse(name: str) -> tuple[Vendor, str]:
    provider, _, model = name.strip().partition("/")
    vendor = _vendor(provider)
    if model:
        return vendor, model
    if vendor.default_model is None:
        raise UsageError(f"{name!r} names no model; write '{provider}/MODEL'.")
    return vendor, vendor.default_model


def _vendor(provider: str) -> Vendor:
    vendor = VENDORS.get(provider)
    if vendor is None:
        known = ", ".join(VENDORS)
        raise UsageError(
            f"There is no provider {provider!r}; write 'provider/model' with one of: {known}."
        )
    return vendor


def _key(vendor: Vendor, env: Mapping[str, str]) -> str | None:
    return next((env[name] for name in vendor.key_settings if env.get(name, "").strip()), None)


def _address(vendor: Vendor, env: Mapping[str, str]) -> str | None:
    """The address that the environment names; Ollama's is often a bare `0.0.0.0:11434`."""
    value = env.get(vendor.url_setting or "", "").strip()
    if not value:
        return None
    if "://" not in value:
        value = f"http://{value}"
    return value.replace("://0.0.0.0", "://127.0.0.1", 1)
