"""A provider that speaks OpenAI Chat Completions."""

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from towline_agent.errors import EndpointNotFound, ProviderError
from towline_agent.host import Clock, SystemClock
from towline_agent.providers.address import is_safe, parse_address
from towline_agent.providers.base import Model, Piece, Request, StepAnswer, StepFailed, StepResult
from towline_agent.providers.errors import (
    Peer,
    answer_error,
    broken_key_error,
    missing_key_error,
    network_error,
    plain_http_error,
)
from towline_agent.providers.openai_chat.decode import ChatDecoder
from towline_agent.providers.openai_chat.encode import encode_request
from towline_agent.providers.openai_chat.flags import OFFICIAL_FLAGS, ChatFlags
from towline_agent.providers.transport import HttpAnswer, HttpCall, Transport, TransportFailed
from towline_protocol import UsageError

__all__ = ["OpenAIChat"]

_OFFICIAL_URL: Final = "https://api.openai.com/v1"
_OK: Final = range(200, 300)
_LIST_IDLE_S: Final = 10.0
"""Seconds to wait for a list of models: it is asked for while somebody looks on."""


class _Listed(msgspec.Struct, gc=False):
    id: str = ""


class _Listing(msgspec.Struct):
    data: list[_Listed] | None = None


class OpenAIChat:
    """A provider at any address that speaks Chat Completions; see `Provider`.

    ```python
    provider = OpenAIChat("qwen3", base_url="http://localhost:11434")
    ```

    Making one does no I/O and needs no key; what is wrong shows in the first step.

    Args:
        model: The provider's own name of the model.
        api_key: The credential; `None` sends no `Authorization` header at all (A2.65).
        base_url: The address, as people paste it (A2.77, A2.78).
        provider: The provider's name, for messages and for `provider/model`.
        facts: What is known of the model; `None` for safe defaults.
        flags: How this gateway speaks.
        stream: Whether answers are streamed (A2.4).
        extra_headers: Sent with every request.
        known_models: What `models` returns when the address cannot be asked.
        key_setting: The environment variable that should hold the key. With it a missing key fails
            before anything is sent.
        allow_http: Whether an unencrypted address off this machine is fine (A2.80).
        ca_file: A PEM file to trust besides the system's certificates (A2.79).
        transport: Who carries the requests; `None` for the process's own.
        clock: Time, for delays that are stated as dates.
    """

    def __init__(
        self,
        model: str,
        *,
        api_key: str | None = None,
        base_url: str = _OFFICIAL_URL,
        provider: str = "openai",
        facts: Model | None = None,
        flags: ChatFlags | None = None,
        stream: bool = True,
        extra_headers: Mapping[str, str] | None = None,
        known_models: tuple[str, ...] = (),
        key_setting: str | None = None,
        allow_http: bool = False,
        ca_file: str | None = None,
        transport: Transport | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.model = facts or Model(provider=provider, id=model)
        """The model and what is known of it."""
        self._key = (api_key or "").strip() or None
        self._extra_headers = {name.lower(): value for name, value in (extra_headers or {}).items()}
        self._known_models = known_models
        self._ca_file = ca_file
        self._given_transport = transport
        self._clock = clock or SystemClock()
        self._problem: ProviderError | None = None
        self._peer, self._official = self._locate(base_url, key_setting, allow_http)
        self._flags = flags or (OFFICIAL_FLAGS if self._official else ChatFlags())
        self._stream = stream and not self._flags.no_stream

    def __repr__(self) -> str:
        return f"OpenAIChat({self.model.name!r}, base_url={self._peer.url!r})"

    async def step(self, request: Request, on_piece: Callable[[Piece], None]) -> StepResult:
        """Send one request and read its answer; see `Provider`."""
        if self._problem is not None:
            return StepFailed(error=self._problem)
        encoded = encode_request(
            request, self.model, self._flags, stream=self._stream, official=self._official
        )
        decoder = ChatDecoder(self._peer, self._flags, on_piece)
        call = self._call("/chat/completions", encoded.body)
        transport = self._transport()
        try:
            if self._stream:
                answer = await transport.sse(call, decoder.feed)
            else:
                answer = await transport.json(call)
        except TransportFailed as failure:
            return decoder.fail(network_error(self._peer, failure, call.idle_s))
        if answer.status not in _OK:
            return decoder.fail(self._refusal(answer))
        if answer.body:
            decoder.read(answer.body)
        result = decoder.finish()
        if encoded.notices and isinstance(result, StepAnswer):
            notices = (*encoded.notices, *result.notices)
            result = msgspec.structs.replace(result, notices=notices)
        return result

    async def models(self) -> tuple[str, ...]:
        """The models that this address offers; the known ones when it cannot be asked (A1.27)."""
        if self._problem is not None:
            return self._known_models
        call = self._call("/models", None)
        try:
            answer = await self._transport().json(call)
            if answer.status not in _OK:
                return self._known_models
            listed = msgspec.json.decode(answer.body, type=_Listing).data or []
        except (TransportFailed, msgspec.DecodeError, UnicodeDecodeError):
            return self._known_models
        found = tuple(item.id.removeprefix("models/") for item in listed if item.id)
        return found or self._known_models

    async def aclose(self) -> None:
        """Give back connections; idempotent, and the provider may be used again."""
        if self._given_transport is not None:
            await self._given_transport.aclose()

    def _locate(
        self, base_url: str, key_setting: str | None, allow_http: bool
    ) -> tuple[Peer, bool]:
        """Where requests go, and whether that is OpenAI's own host; problems wait for a step."""
        facts = self.model
        try:
            url = parse_address(base_url).api
        except UsageError as error:
            url = ""
            self._problem = EndpointNotFound(
                error.message, provider=facts.provider, model=facts.id, reason="address"
            )
        peer = Peer(
            provider=facts.provider,
            model=facts.id,
            url=url,
            key_setting=key_setting,
            secret=self._key,
        )
        if url and not allow_http and not is_safe(url):
            self._problem = plain_http_error(peer)
        elif url and self._key is None and key_setting is not None:
            self._problem = missing_key_error(peer)
        elif url and not _is_sendable(self._key or ""):
            self._problem = broken_key_error(peer)
        return peer, url == _OFFICIAL_URL

    def _call(self, path: str, body: bytes | None) -> HttpCall:
        headers = {"content-type": "application/json"} if body is not None else {}
        if self._stream and body is not None:
            headers["accept"] = "text/event-stream"
            headers["accept-encoding"] = "identity"  # a packed stream comes late
        else:
            headers["accept"] = "application/json"
        if self._key is not None:
            headers["authorization"] = f"Bearer {self._key}"
        return HttpCall(
            url=self._peer.url + path,
            method="GET" if body is None else "POST",
            headers={**headers, **self._extra_headers},
            body=body,
            idle_s=_LIST_IDLE_S if body is None else self.model.idle_s,
        )

    def _refusal(self, answer: HttpAnswer) -> ProviderError:
        return answer_error(
            self._peer,
            status=answer.status,
            headers=answer.headers,
            body=answer.body,
            now_ms=self._clock.now_ms(),
        )

    def _transport(self) -> Transport:
        if self._given_transport is None:
            # aiohttp is imported with the first request, not with the library.
            from towline_agent.providers.http import shared_transport

            self._given_transport = shared_transport(self._ca_file)
        return self._given_transport


def _is_sendable(key: str) -> bool:
    """Whether a header can hold it; a pasted key may have brought line ends or quotes along."""
    return key.isascii() and all(char > " " for char in key)
