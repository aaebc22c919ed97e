"""One model at one address: what all dialects share of asking it.

A dialect adds two pure halves: bytes from a request, and a decoder from the answer to one result.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol, cast

import msgspec

from towline_agent.errors import EndpointNotFound, ProviderError, RateLimited
from towline_agent.host import Clock, SystemClock
from towline_agent.providers.answer import Notices
from towline_agent.providers.base import Model, StepAnswer, StepFailed, StepResult
from towline_agent.providers.credential import Credential, auth_headers
from towline_agent.providers.errors import (
    Peer,
    answer_error,
    broken_header_error,
    broken_key_error,
    empty_error,
    malformed_error,
    missing_key_error,
    network_error,
    plain_http_error,
)
from towline_agent.providers.json_value import UNREADABLE, as_object
from towline_agent.providers.pacing import shared_pacer
from towline_agent.providers.secrets import Secrets
from towline_agent.providers.transport import (
    HttpAnswer,
    HttpCall,
    Transport,
    TransportFailed,
)
from towline_protocol import SseEvent, UsageError

__all__ = ["Decoder", "Encoded", "Endpoint"]

_OK: Final = range(200, 300)
_LIST_IDLE_S: Final = 10.0
"""Seconds to wait for a list of models: it is asked for while somebody looks on."""
_BEARER: Final = "authorization"
_HEADER_NAME: Final = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_HEADER_VALUE: Final = r"[\t\x20-\x7e\x80-\ud7ff\ue000-\U0010ffff]*"
_BROKEN_OFF: Final = frozenset({"incomplete", "cut"})
_BYTES_PER_TOKEN: Final = 4
"""The estimate until the provider has counted (A3.28)."""


class Encoded(msgspec.Struct, frozen=True, kw_only=True):
    """A request as bytes."""

    body: bytes
    """The JSON body."""
    notices: tuple[str, ...] = ()
    """What was left out and why, for people (A1.19)."""


class Decoder(Protocol):
    """Reads one answer of a dialect. Pure: `feed` or `read`, then `finish` or `fail` once."""

    def feed(self, event: SseEvent) -> bool:
        """Take in one event; true when all that matters has come."""
        ...

    def read(self, body: bytes) -> None:
        """Take in a whole document, such as an unstreamed answer or an error page (A2.20)."""
        ...

    def finish(self) -> StepResult:
        """The result, after the last event."""
        ...

    def fail(self, error: ProviderError) -> StepResult:
        """The result when the connection failed; an answer that was whole by then stays one."""
        ...


class Endpoint:
    """An address, a credential and a model.

    Making one does no I/O and needs no key; what is wrong shows in the first step (A4.45).

    Args:
        model: What is known of the model.
        base_url: The address, as people paste it (A2.77, A2.78).
        api_key: The key, or another credential; `None` sends no header for it at all (A2.65).
        key_header: The header that holds a key; in `authorization` it is a bearer token.
        project_header: The header that names a credential's project, where there is one.
        headers: Sent with every request.
        known_models: What `models` returns when the address cannot be asked.
        key_setting: The environment variable that should hold the key. With it a missing key fails
            before anything is sent.
        allow_http: Whether an unencrypted address off this machine is fine (A2.80).
        ca_file: A PEM file to trust besides the system's certificates (A2.79).
        transport: Who carries the requests; `None` for the process's own.
        clock: Time.
        suggested_model: What to take instead when only another model helps (A3.18).
    """

    def __init__(
        self,
        model: Model,
        *,
        base_url: str,
        api_key: str | Credential | None = None,
        key_header: str = _BEARER,
        project_header: str | None = None,
        headers: Mapping[str, str] | None = None,
        known_models: tuple[str, ...] = (),
        key_setting: str | None = None,
        allow_http: bool = False,
        ca_file: str | None = None,
        transport: Transport | None = None,
        clock: Clock | None = None,
        suggested_model: str | None = None,
    ) -> None:
        self.model = model
        """What is known of the model."""
        self.clock = clock or SystemClock()
        """Time."""
        self.known_models = known_models
        """What `models` returns when the address cannot be asked."""
        self.problem: ProviderError | None = None
        """Why nothing can be sent; every step fails with it."""
        self._credential = None if isinstance(api_key, str) else api_key
        self._key = api_key.strip() or None if isinstance(api_key, str) else None
        self._key_header = key_header
        self._project_header = project_header
        self._headers = {name.lower(): value for name, value in (headers or {}).items()}
        self._ca_file = ca_file
        self._given_transport = transport
        self.is_ours = transport is None and self._credential is None
        """Whether what it is made of is all ours, and no code of others runs in `ask`."""
        self.peer = self._locate(base_url, key_setting, allow_http, suggested_model)
        """Who is asked, for the sentences of errors."""
        self._pacer = shared_pacer(
            self.peer.url, self._key or repr(self._credential), model.id, clock=self.clock
        )

    @property
    def url(self) -> str:
        """The address under which the dialect's paths lie; empty when it is unusable."""
        return self.peer.url

    async def ask(
        self,
        path: str,
        encode: Callable[[], Encoded],
        decoder: Decoder,
        *,
        stream: bool,
        headers: Mapping[str, str] | None = None,
    ) -> StepResult:
        """Send one request and read its answer: the whole of a provider's `step`.

        Args:
            path: Where the request goes, below the address.
            encode: Makes the body; not called when nothing can be sent.
            decoder: Reads the answer.
            stream: Whether the answer comes as a stream of events.
            headers: Sent with this request alone.
        """
        if self.problem is not None:
            return StepFailed(error=self.problem)
        encoded = encode()
        try:
            call = await self.call(path, encoded.body, stream=stream, headers=headers)
        except ProviderError as error:  # a sign-in that could not be renewed
            return StepFailed(error=error)
        sending = self._pacer.sent(len(encoded.body) // _BYTES_PER_TOKEN)
        transport = self.transport()
        try:
            try:
                exchange = transport.sse(call, decoder.feed) if stream else transport.json(call)
                result = self._read(await exchange, decoder)
            except TransportFailed as failure:
                result = decoder.fail(network_error(self.peer, failure, call.idle_s))
        except RecursionError:  # of an answer that is nested deeper than anything can be read
            deep = "It is nested too deeply."
            result = StepFailed(error=malformed_error(self.peer, deep, retryable=False))
        if isinstance(result, StepAnswer):
            usage = result.usage
            self._pacer.answered(sending, usage.input + usage.cache_read + usage.cache_write)
            if encoded.notices:
                notices = Notices()
                for notice in (*encoded.notices, *result.notices):
                    notices.add(notice)
                result = msgspec.structs.replace(result, notices=notices.all())
        elif isinstance(result.error, RateLimited):
            self._pacer.refused(result.error, sending)
        elif result.error.reason in _BROKEN_OFF and not (result.streamed or result.content):
            result = msgspec.structs.replace(result, error=empty_error(self.peer, result.error))
        return result

    def _read(self, answer: HttpAnswer, decoder: Decoder) -> StepResult:
        """The result that an answer comes to; its events were told."""
        if answer.status not in _OK:
            return decoder.fail(self.refusal(answer))
        if answer.body:
            decoder.read(answer.body)
        return decoder.finish()

    async def _authorized(self, credential: Credential) -> dict[str, str]:
        """The headers of a credential that is not just a key.

        Raises:
            ProviderError: It could not be renewed, or it holds what no header can.
        """
        found = auth_headers(
            credential,
            await credential.token(),
            key_header=self._key_header,
            project_header=self._project_header,
        )
        if not all(map(_is_value, found.values())):
            raise broken_key_error(self.peer)
        self.peer.secrets.add_headers(found)
        return found

    def _added(self, headers: dict[str, str]) -> dict[str, str]:
        """Headers that somebody has asked for beside ours.

        Raises:
            ProviderError: One holds what none can.
        """
        for name, value in headers.items():
            if not _is_value(value) or not re.fullmatch(_HEADER_NAME, name):
                raise broken_header_error(self.peer, name)
        self.peer.secrets.add_headers(headers)
        return headers

    @property
    def has_limits(self) -> bool:
        """Whether anything may have to be held back; see `Paced`."""
        return self._pacer.has_limits

    def pause_s(self, tokens: int) -> float:
        """Seconds to hold back a request of so many tokens; see `Paced`."""
        return self._pacer.pause_s(tokens)

    async def models(self, path: str = "/models") -> tuple[str, ...]:
        """The models that this address offers; the known ones when it cannot be asked (A1.27)."""
        if self.problem is not None:
            return self.known_models
        try:
            answer = await self.transport().json(await self.call(path, None))
            listed = _names(answer.body) if answer.status in _OK else ()
        except (ProviderError, TransportFailed, *UNREADABLE):
            return self.known_models
        return listed or self.known_models

    async def aclose(self) -> None:
        """Give back connections; idempotent, and the endpoint may be used again."""
        if self._given_transport is not None:
            await self._given_transport.aclose()

    async def call(
        self,
        path: str,
        body: bytes | None,
        *,
        stream: bool = False,
        headers: Mapping[str, str] | None = None,
        method: str | None = None,
    ) -> HttpCall:
        """One request with all its headers.

        Raises:
            ProviderError: The credential could not be renewed, or a header holds what none can.
        """
        sent = {"content-type": "application/json"} if body is not None else {}
        if stream and body is not None:
            sent["accept"] = "text/event-stream"
            sent["accept-encoding"] = "identity"  # a packed stream comes late
        else:
            sent["accept"] = "application/json"
        if self._key is not None:
            bearer = self._key_header == _BEARER
            sent[self._key_header] = f"Bearer {self._key}" if bearer else self._key
        if self._credential is not None:
            sent.update(await self._authorized(self._credential))
        if self._headers or headers:
            sent.update(self._added({**self._headers, **(headers or {})}))
        return HttpCall(
            url=self.peer.url + path,
            method=method or ("GET" if body is None else "POST"),
            headers=sent,
            body=body,
            idle_s=_LIST_IDLE_S if body is None else self.model.idle_s,
        )

    def refusal(self, answer: HttpAnswer) -> ProviderError:
        """The error that an HTTP error status means."""
        return answer_error(
            self.peer,
            status=answer.status,
            headers=answer.headers,
            body=answer.body,
            now_ms=self.clock.now_ms(),
        )

    def transport(self) -> Transport:
        """Who carries the requests."""
        if self._given_transport is None:
            # aiohttp is imported with the first request, not with the library.
            from towline_agent.providers.http import shared_transport

            self._given_transport = shared_transport(self._ca_file)
        return self._given_transport

    def _locate(
        self,
        base_url: str,
        key_setting: str | None,
        allow_http: bool,
        suggested_model: str | None,
    ) -> Peer:
        """Where requests go; what is wrong with it waits for a step."""
        # Its parser of addresses is imported with the first provider, not with the library.
        from towline_agent.providers.address import is_safe, parse_address

        facts = self.model
        try:
            url = parse_address(base_url).api
        except UsageError as error:
            url = ""
            self.problem = EndpointNotFound(
                error.message, provider=facts.provider, model=facts.id, reason="address"
            )
        peer = Peer(
            provider=facts.provider,
            model=facts.id,
            url=url,
            key_setting=key_setting,
            secrets=Secrets(self._key),
            suggested_model=suggested_model,
        )
        has_credential = self._key is not None or self._credential is not None
        if url and not allow_http and not is_safe(url):
            self.problem = plain_http_error(peer)
        elif url and not has_credential and key_setting is not None:
            self.problem = missing_key_error(peer)
        elif url and not _is_sendable(self._key or ""):
            self.problem = broken_key_error(peer)
        return peer


def _names(body: bytes) -> tuple[str, ...]:
    """The names in a list of models: `data` with `id`, or Google's `models` with `name`."""
    found: Any = msgspec.json.decode(body)
    listing = cast("dict[str, Any]", found) if isinstance(found, dict) else {"data": found}
    rows: Any = listing.get("data") or listing.get("models")
    names: list[str] = []
    for row in cast("list[Any]", rows) if isinstance(rows, list) else []:
        fields = as_object(row)
        name = fields.get("id") or fields.get("name")
        if isinstance(name, str) and name:
            names.append(name.removeprefix("models/"))
    return tuple(names)


def _is_value(value: Any) -> bool:
    """Whether it can be the value of a header."""
    return isinstance(value, str) and re.fullmatch(_HEADER_VALUE, value) is not None


def _is_sendable(key: str) -> bool:
    """Whether a header can hold it; a pasted key may have brought line ends or quotes along."""
    return key.isascii() and all(char > " " for char in key)
