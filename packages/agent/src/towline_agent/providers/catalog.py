"""From `provider/model` to somebody to ask (A2.81 to A2.90)."""

import os
from collections.abc import Mapping, Sequence
from typing import Final, cast

import msgspec

from towline_agent.providers.base import Model, Provider
from towline_agent.providers.choice import find_vendor
from towline_agent.providers.credential import Credential
from towline_agent.providers.dialect import Asked, make_provider
from towline_agent.providers.facts import known_model
from towline_agent.providers.headers import named_headers
from towline_agent.providers.openai_chat.provider import OpenAIChat
from towline_agent.providers.registry import installed_provider
from towline_agent.providers.transport import CA_SETTING, Transport
from towline_agent.providers.vendor_url import named_url, vertex_url
from towline_agent.providers.vendors import DIALECTS, VENDORS, Vendor
from towline_protocol import UsageError

__all__ = [
    "DIALECT_SETTING",
    "LOCAL_MODEL_FACTS",
    "Found",
    "connect",
    "connect_local",
    "discover",
    "model_facts",
    "vendor_keys",
]

LOCAL_MODEL_FACTS: Final = Model(
    provider="local",
    id="qwen2.5-coder-1.5b-instruct",
    window=8192,
    output_cap=1024,
    price_input=0.0,
    price_output=0.0,
    thinking="none",
    idle_s=900.0,
    concurrency=1,
    one_call_per_step=True,
    named_choice=False,
    none_without_tools=True,
    plain_tools=True,
    bare_prompt=True,
    images=False,
)
"""The embedded local model (A2.91): small, free, with one slot and long silences."""

DIALECT_SETTING: Final = "TOWLINE_DIALECT"
"""The environment variable that says how the address of `custom` is asked."""

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


def connect(
    name: str,
    env: Mapping[str, str] | None = None,
    *,
    base_url: str | None = None,
    api_key: str | None = None,
    api_keys: Sequence[str] | None = None,
    stored: Mapping[str, Sequence[str]] | None = None,
    credential: Credential | None = None,
    ca_file: str | os.PathLike[str] | None = None,
    transport: Transport | None = None,
) -> Provider:
    """A provider for `provider/model`, or for `provider` alone with its usual model.

    `provider+dialect/model` asks it in another dialect than its own, such as
    `openai+chat/gpt-4o`. A name that is not in the catalog may be one that an installed package
    brings along (A4.62). Does no I/O. A missing key or an unusable address shows in the first step
    (A4.45).

    Args:
        name: Such as `openai/gpt-6.1-sol`.
        env: Where keys and addresses are looked up; `None` for the process's environment.
        base_url: Another address than the vendor's (A2.77).
        api_key: A key; with it neither the environment nor `stored` is asked for one.
        api_keys: More such keys. Of several keys one stands in for the other (A3.29).
        stored: Keys that are kept for providers, by their names; they come behind the
            environment's.
        credential: A sign-in, for when there is no key at all (A2.64).
        ca_file: A PEM file that is trusted besides the system's certificates (A2.79).
        transport: Who carries the requests; `None` for the process's own.

    Raises:
        UsageError: No such provider or dialect, no model named where there is no usual one, or an
            address or a key that is empty.
    """
    if isinstance(api_keys, str) or not isinstance(cast("object", api_keys), Sequence | None):
        raise UsageError("'api_keys' takes a list; one key alone goes into `api_key`.")
    if not isinstance(cast("object", ca_file), str | os.PathLike | None):
        raise UsageError(f"'ca_file' can't be {ca_file!r}; give the path of a PEM file.")
    given = _given(name, base_url, api_key, api_keys)
    env = os.environ if env is None else env
    provider, _, model = name.strip().partition("/")
    base, _, dialect = provider.partition("+")
    if base not in VENDORS:
        installed = installed_provider(provider, model, env)
        if installed is not None:
            return installed
    vendor = find_vendor(base)
    moved = named_url(vendor, env, base_url)
    keys = list(dict.fromkeys(given)) or list(vendor_keys(vendor, env, stored))
    dialect = _dialect(vendor, dialect, env, moved=moved is not None)
    url = moved or vendor.other_urls.get(dialect, vendor.base_url)
    if vendor.name == "vertex":
        keys, url = _vertex(keys, credential, moved, env)
    if not url:
        raise UsageError(
            f"The provider {vendor.name!r} has no address of its own; name it in "
            f"{vendor.url_setting}."
        )
    asked = Asked(
        vendor=vendor,
        dialect=dialect,
        url=url,
        moved=moved is not None,
        facts=model_facts(provider, model or _usual(vendor, name)),
        headers=named_headers(vendor, env),
        allow_http=env.get(_HTTP_SETTING, "").lower() in _YES,
        ca_file=os.fspath(ca_file or env.get(CA_SETTING, "")) or None,
    )
    return make_provider(asked, keys, credential, transport)


def _given(
    name: object, base_url: object, api_key: object, api_keys: Sequence[object] | None
) -> list[str]:
    """The keys that were given, once all that was given is looked at.

    What is empty is most often a setting that is not set: the vendor's own address or a key out of
    the environment must not stand in for it.
    """
    if not isinstance(name, str):
        raise UsageError(f"A model can't be {name!r}; give 'provider/model'.")
    if base_url is not None and not (isinstance(base_url, str) and base_url.strip()):
        raise UsageError(
            f"'base_url' can't be {base_url!r}; leave it out to ask at the vendor's own address."
        )
    given = [*([] if api_key is None else [api_key]), *(api_keys or ())]
    keys = [key for key in given if isinstance(key, str) and key.strip()]
    if len(keys) < len(given) or (api_keys is not None and not keys):
        raise UsageError(
            "A key that was given is empty or no text; leave it out to take the environment's."
        )
    return keys


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
    """What is known of a model; safe defaults when that is nothing (A2.84).

    Args:
        provider: The provider's name, `name` or `name+dialect`.
        model: The provider's own name of the model.
    """
    plain = Model(provider=provider, id=model)
    vendor = VENDORS.get(provider.partition("+")[0])
    if vendor is not None:
        plain = msgspec.structs.replace(
            plain,
            idle_s=plain.idle_s if vendor.idle_s is None else vendor.idle_s,
            named_choice=vendor.named_choice,
            none_without_tools=vendor.none_without_tools,
        )
        if vendor.local:  # the server decides on the window, and names may be anything
            return msgspec.structs.replace(plain, price_input=0.0, price_output=0.0)
    known = known_model(vendor.name if vendor else provider, model)
    prices, ability = known.prices, known.ability
    return msgspec.structs.replace(
        plain,
        window=known.window,
        output_cap=ability.output_cap,
        price_input=prices and prices.input,
        price_output=prices and prices.output,
        price_cache_read=prices and prices.cache_read,
        price_cache_write=prices and prices.cache_write,
        thinking=ability.thinking,
        refuses=ability.refuses,
        fast=ability.fast,
        images=ability.images,
    )


def discover(
    env: Mapping[str, str] | None = None, stored: Mapping[str, Sequence[str]] | None = None
) -> tuple[Found, ...]:
    """The providers for which there is a key or an address (A2.85), best first.

    Args:
        env: Where keys and addresses are looked up; `None` for the process's environment.
        stored: Keys that are kept for providers, by their names.
    """
    env = os.environ if env is None else env
    found: list[Found] = []
    # an address of one's own is there for nothing else
    for vendor in sorted(VENDORS.values(), key=lambda vendor: not vendor.key_optional):
        why = _why(vendor, env, stored or {})
        if why is not None:
            found.append(Found(provider=vendor.name, model=vendor.default_model, why=why))
    return tuple(found)


def vendor_keys(
    vendor: Vendor, env: Mapping[str, str], stored: Mapping[str, Sequence[str]] | None = None
) -> tuple[str, ...]:
    """The keys of a vendor, each once: the environment's, then those that are kept.

    `OPENAI_API_KEY` holds one, `OPENAI_API_KEYS` several between commas.
    """
    keys: list[str] = []
    setting = _key_setting(vendor, env)
    if setting is not None:
        single, several = env.get(setting, ""), env.get(f"{setting}S", "")
        keys = [single, *several.split(",")]
    keys.extend((stored or {}).get(vendor.name, ()))
    return tuple(dict.fromkeys(key for raw in keys if (key := raw.strip())))


def _why(vendor: Vendor, env: Mapping[str, str], stored: Mapping[str, Sequence[str]]) -> str | None:
    if (vendor.local or not vendor.base_url) and vendor.url_setting is not None:
        if env.get(vendor.url_setting, "").strip():
            return f"{vendor.url_setting} is set"
        return None
    setting = _key_setting(vendor, env)
    if setting is not None:
        held = setting if env.get(setting, "").strip() else f"{setting}S"
        return f"{held} is set"
    return "A key is kept for it" if stored.get(vendor.name) else None


def _key_setting(vendor: Vendor, env: Mapping[str, str]) -> str | None:
    """The first of its settings that holds something."""
    return next(
        (
            name
            for name in vendor.key_settings
            if env.get(name, "").strip() or env.get(f"{name}S", "").strip(" ,")
        ),
        None,
    )


def _dialect(vendor: Vendor, asked: str, env: Mapping[str, str], *, moved: bool) -> str:
    named = asked or (env.get(DIALECT_SETTING, "").strip() if vendor.name == "custom" else "")
    if named and named not in DIALECTS:
        raise UsageError(
            f"There is no dialect {named!r}; write '{vendor.name}+DIALECT/MODEL' with one of: "
            f"{', '.join(DIALECTS)}."
        )
    return named or (vendor.moved_dialect if moved else None) or vendor.dialect


def _usual(vendor: Vendor, name: str) -> str:
    if vendor.default_model is None:
        raise UsageError(f"{name!r} names no model; write '{vendor.name}/MODEL'.")
    return vendor.default_model


def _vertex(
    keys: list[str], credential: Credential | None, moved: str | None, env: Mapping[str, str]
) -> tuple[list[str], str]:
    """The token and the address of its project; of `token|project` both come out of one (A2.72)."""
    token, _, project = keys[0].partition("|") if keys else ("", "", "")
    tokens = [token.strip()] if token.strip() else []
    if not tokens and credential is not None:
        project = credential.project or ""
    return tokens, moved or vertex_url(env, project.strip())
