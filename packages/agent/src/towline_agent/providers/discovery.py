"""Asking around: model servers on this machine, and the live list of a provider (A2.86, A1.27)."""

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, cast

import msgspec

from towline_agent.errors import ProviderError
from towline_agent.host import SystemClock
from towline_agent.providers.address import parse_address
from towline_agent.providers.base import Provider, Request, StepFailed
from towline_agent.providers.catalog import Found, connect, vendor_keys
from towline_agent.providers.choice import choose_model, is_for_words
from towline_agent.providers.credential import Credential
from towline_agent.providers.errors import (
    Peer,
    answer_error,
    malformed_error,
    network_error,
)
from towline_agent.providers.json_value import UNREADABLE, as_object
from towline_agent.providers.secrets import Secrets
from towline_agent.providers.transport import (
    CA_SETTING,
    HttpAnswer,
    HttpCall,
    Transport,
    TransportFailed,
)
from towline_agent.providers.vendor_url import named_url
from towline_agent.providers.vendors import VENDORS, Vendor
from towline_protocol import Message, SseEvent, Text, UsageError

__all__ = ["Listing", "discover_local", "list_models"]

_ASK_S: Final = 2.0
"""Seconds for a server on this machine to name its models; a dead port answers at once."""
_LIST_S: Final = 20.0
"""Seconds for a provider to name its models: somebody looks on."""
_OK: Final = 200
_NOT_SENT: Final = "Nothing was to be sent."
_LIST_MAX: Final = 2_000
"""Models that are read of one list; the longest one known has 600."""


class Listing(msgspec.Struct, frozen=True, kw_only=True):
    """The models of a provider."""

    models: tuple[str, ...]
    """Their names, without those that do not answer in words."""
    live: bool
    """Whether the provider has named them just now; else they are the known ones."""
    problem: ProviderError | None = None
    """Why it could not be asked; `None` too when it has no list."""


async def discover_local(
    transport: Transport | None = None, env: Mapping[str, str] | None = None
) -> tuple[Found, ...]:
    """The local servers that answer and have a model, in the catalog's order.

    Whatever else listens on such a port is no model server: only a list of models in the form that
    all of these servers give counts.

    Args:
        transport: Who carries the requests; `None` for the process's own.
        env: Where other addresses are named; `None` for the process's environment.
    """
    env = os.environ if env is None else env
    carrier = transport or _shared_transport(env)
    vendors = [vendor for vendor in VENDORS.values() if vendor.local]
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_ask(vendor, carrier, env)) for vendor in vendors]
    return tuple(found for task in tasks if (found := task.result()) is not None)


async def list_models(
    name: str,
    env: Mapping[str, str] | None = None,
    *,
    stored: Mapping[str, Sequence[str]] | None = None,
    credential: Credential | None = None,
    transport: Transport | None = None,
) -> Listing:
    """The models that a provider offers just now; the known ones, and why, when it cannot say.

    Args:
        name: The provider, or `provider/model`.
        env: Where keys and addresses are looked up; `None` for the process's environment.
        stored: Keys that are kept for providers, by their names.
        credential: A sign-in, for when there is no key at all.
        transport: Who carries the requests; `None` for the process's own.

    Raises:
        UsageError: There is no such provider, or it has no address.
    """
    env = os.environ if env is None else env
    watch = _Watch(transport or _shared_transport(env))
    spelled = name if "/" in name else f"{name}/any"
    provider = connect(spelled, env, stored=stored, credential=credential, transport=watch)
    try:
        async with asyncio.timeout(_LIST_S):
            models = await provider.models()
    except TimeoutError:
        models = ()
        watch.failure = TransportFailed("idle")
    known = tuple(model for model in models[:_LIST_MAX] if is_for_words(model))
    if provider.model.provider.partition("+")[0] not in VENDORS:  # of an installed package
        return Listing(models=known, live=bool(known))
    problem = await watch.problem(provider, env, stored)
    return Listing(models=known, live=watch.asked and problem is None, problem=problem)


async def _ask(vendor: Vendor, transport: Transport, env: Mapping[str, str]) -> Found | None:
    try:
        address = parse_address(named_url(vendor, env) or vendor.base_url)
        call = HttpCall(
            url=f"{address.api}/models",
            method="GET",
            headers={"accept": "application/json"},
            idle_s=_ASK_S,
        )
        async with asyncio.timeout(_ASK_S):
            answer = await transport.json(call)
        choice = choose_model(vendor.name, _strict_names(answer))
    except (TimeoutError, TransportFailed, UsageError):
        return None
    why = f"{vendor.title} answers at {address.base}"
    return Found(provider=vendor.name, model=choice.model, why=why)


def _strict_names(answer: HttpAnswer) -> tuple[str, ...]:
    """The names in a list of models; nothing when the answer is anything else.

    Web servers, and pages of other programs, answer to any path with a page or with JSON of their
    own.
    """
    if answer.status != _OK:
        return ()
    try:
        document: Any = msgspec.json.decode(answer.body)
    except UNREADABLE:
        return ()
    if not isinstance(document, dict):
        return ()
    fields = cast("dict[str, Any]", document)
    rows = fields.get("data")
    if fields.get("object") != "list" or not isinstance(rows, list):
        return ()
    names: list[str] = []
    for row in cast("list[Any]", rows[:_LIST_MAX]):
        known = as_object(row)
        name = known.get("id")
        if known.get("object") != "model" or not isinstance(name, str) or not name:
            return ()
        names.append(name)
    return tuple(names)


class _Watch:
    """A transport that remembers what came of the last request; see `Transport`."""

    def __init__(self, carrier: Transport) -> None:
        self.failure: TransportFailed | None = None
        self._carrier = carrier
        self._shut: TransportFailed | None = None
        self._call: HttpCall | None = None
        self._answer: HttpAnswer | None = None

    @property
    def asked(self) -> bool:
        """Whether something was sent."""
        return self._call is not None

    async def sse(self, call: HttpCall, on_event: Callable[[SseEvent], bool]) -> HttpAnswer:
        if self._shut is not None:
            raise self._shut
        return await self._carrier.sse(call, on_event)

    async def json(self, call: HttpCall) -> HttpAnswer:
        if self._shut is not None:
            raise self._shut
        self._call, self._answer, self.failure = call, None, None
        try:
            self._answer = await self._carrier.json(call)
        except TransportFailed as failure:
            self.failure = failure
            raise
        return self._answer

    async def aclose(self) -> None:
        await self._carrier.aclose()

    async def problem(
        self,
        provider: Provider,
        env: Mapping[str, str],
        stored: Mapping[str, Sequence[str]] | None,
    ) -> ProviderError | None:
        """Why there is no live list; `None` when there is one."""
        if self.failure is None and self._answer is None:
            return await self._reason(provider)
        peer = _peer(provider, self._call, env, stored)
        if self.failure is not None or self._answer is None:
            return network_error(peer, self.failure or TransportFailed("lost"), _LIST_S)
        if self._answer.status != _OK:
            return answer_error(
                peer,
                status=self._answer.status,
                headers=self._answer.headers,
                body=self._answer.body,
                now_ms=SystemClock().now_ms(),
            )
        return None if _has_rows(self._answer.body) else malformed_error(peer)

    async def _reason(self, provider: Provider) -> ProviderError | None:
        """Why nothing was sent, as a step says it; that sends nothing either."""
        self._shut = TransportFailed("address", _NOT_SENT)
        asked = Request(model=provider.model.id, messages=(Message("user", (Text(text="-"),)),))
        result = await provider.step(asked, lambda _: None)
        if not isinstance(result, StepFailed) or _NOT_SENT in result.error.message:
            return None  # it would have been sent, so it is the list alone that there is not
        return result.error


def _peer(
    provider: Provider,
    call: HttpCall | None,
    env: Mapping[str, str],
    stored: Mapping[str, Sequence[str]] | None,
) -> Peer:
    vendor = VENDORS.get(provider.model.provider.partition("+")[0])
    keys = vendor_keys(vendor, env, stored) if vendor is not None else ()
    secrets = Secrets(keys[0].partition("|")[0] if keys else None)
    if call is not None:
        secrets.add_headers(call.headers)
    return Peer(
        provider=provider.model.provider,
        model="any model",
        url=call.url if call is not None else "",
        key_setting=vendor.key_settings[0] if vendor is not None and vendor.key_settings else None,
        secrets=secrets,
    )


def _has_rows(body: bytes) -> bool:
    try:
        document: Any = msgspec.json.decode(body)
    except UNREADABLE:
        return False
    if isinstance(document, list):
        return bool(cast("list[Any]", document))
    fields = as_object(document)
    return any(isinstance(fields.get(key), list) for key in ("data", "models"))


def _shared_transport(env: Mapping[str, str]) -> Transport:
    # aiohttp is imported with the first request, not with the library.
    from towline_agent.providers.http import shared_transport

    return shared_transport(env.get(CA_SETTING) or None)
