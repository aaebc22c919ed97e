"""A provider that speaks Anthropic's Messages API."""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from towline_agent.host import Clock
from towline_agent.providers.abilities import ability_of
from towline_agent.providers.anthropic.decode import MessagesDecoder
from towline_agent.providers.anthropic.encode import encode_request
from towline_agent.providers.anthropic.flags import OFFICIAL_FLAGS, AnthropicFlags
from towline_agent.providers.anthropic.history import HistoryEncoder
from towline_agent.providers.anthropic.thinking import plan_thinking
from towline_agent.providers.base import (
    Model,
    Piece,
    Request,
    StepAnswer,
    StepFailed,
    StepResult,
)
from towline_agent.providers.credential import Credential
from towline_agent.providers.endpoint import Endpoint
from towline_agent.providers.given import check_given
from towline_agent.providers.room import managed
from towline_agent.providers.transport import Transport
from towline_protocol import Message

__all__ = ["Anthropic"]

_OFFICIAL_URL: Final = "https://api.anthropic.com/v1"
_VERSION: Final = "2023-06-01"
_BETA: Final = "anthropic-beta"
_INTERLEAVED: Final = "interleaved-thinking-2025-05-14"
_CLEARS: Final = "context-management-2025-06-27"
_NO_CLEARING: Final = re.compile(r"context[_-]management|clear_tool_uses", re.IGNORECASE)


class Anthropic:
    """A provider at any address that speaks the Messages API; see `Provider`.

    ```python
    provider = Anthropic("claude-opus-5-5", api_key=key)
    ```

    Making one does no I/O and needs no key; what is wrong shows in the first step.

    Args:
        model: The provider's own name of the model.
        api_key: The credential; `None` sends no header for it at all (A2.65).
        base_url: The address, as people paste it (A2.77, A2.78).
        provider: The provider's name, for messages and for `provider/model`.
        facts: What is known of the model; `None` for what its name says.
        flags: How this gateway speaks; `None` goes by its host.
        stream: Whether answers are streamed (A2.4).
        extra_headers: Sent with every request; `anthropic-beta` is added to ours.
        known_models: What `models` returns when the address cannot be asked.
        key_setting: The environment variable that should hold the key. With it a missing key fails
            before anything is sent.
        allow_http: Whether an unencrypted address off this machine is fine (A2.80).
        ca_file: A PEM file to trust besides the system's certificates (A2.79).
        transport: Who carries the requests; `None` for the process's own.
        clock: Time, for delays that are stated as dates.
        suggested_model: What to take instead when only another model helps (A3.18).
    """

    def __init__(
        self,
        model: str,
        *,
        api_key: str | Credential | None = None,
        base_url: str = _OFFICIAL_URL,
        provider: str = "anthropic",
        facts: Model | None = None,
        flags: AnthropicFlags | None = None,
        stream: bool = True,
        extra_headers: Mapping[str, str] | None = None,
        known_models: tuple[str, ...] = (),
        key_setting: str | None = None,
        allow_http: bool = False,
        ca_file: str | None = None,
        transport: Transport | None = None,
        clock: Clock | None = None,
        suggested_model: str | None = None,
    ) -> None:
        check_given(
            model=model,
            base_url=base_url,
            api_key=api_key,
            headers=extra_headers,
            facts=facts,
            ca_file=ca_file,
        )
        headers = {name.lower(): value for name, value in (extra_headers or {}).items()}
        betas: Any = headers.get(_BETA)
        self._betas = headers.pop(_BETA, "") if isinstance(betas, str) else ""
        bearer = flags is not None and flags.bearer
        self._endpoint = Endpoint(
            facts or _known(provider, model),
            base_url=base_url,
            api_key=api_key,
            key_header="authorization" if bearer else "x-api-key",
            headers={"anthropic-version": _VERSION, **headers},
            known_models=known_models,
            key_setting=key_setting,
            allow_http=allow_http,
            ca_file=ca_file,
            transport=transport,
            clock=clock,
            suggested_model=suggested_model,
        )
        self._flags = flags or _host_flags(self._endpoint.url)
        self.model = managed(self._endpoint.model, offered=self._flags.clears_results)
        """The model and what is known of it."""
        self.is_ours = type(self) is Anthropic and self._endpoint.is_ours
        """Whether a step runs no code but ours, so that it needs no task of its own."""
        self._stream = stream and not self._flags.no_stream
        self._history = HistoryEncoder(self.model, self._flags)

    def __repr__(self) -> str:
        return f"Anthropic({self.model.name!r}, base_url={self._endpoint.url!r})"

    async def step(self, request: Request, on_piece: Callable[[Piece], None]) -> StepResult:
        """Send one request and read its answer; see `Provider`.

        An answer that pauses is asked for again until it is whole (A2.39). A request goes again at
        once where a model that should leave old results out is refused for it (A4.40).
        """
        decoder = MessagesDecoder(self._endpoint.peer, on_piece)
        result = await self._ask(request, decoder)
        if self.model.manages_context and _NO_CLEARING.search(_refusal(result)):
            self.model = msgspec.structs.replace(self.model, manages_context=False)
            decoder = MessagesDecoder(self._endpoint.peer, on_piece)
            result = await self._ask(request, decoder)
        while decoder.paused and isinstance(result, StepAnswer):
            so_far = Message("assistant", result.content, model=self.model.name)
            decoder.resume()
            longer = msgspec.structs.replace(request, messages=(*request.messages, so_far))
            result = await self._ask(longer, decoder, paused=True)
        return result

    @property
    def has_limits(self) -> bool:
        """Whether anything may have to be held back; see `Paced`."""
        return self._endpoint.has_limits

    def pause_s(self, tokens: int) -> float:
        """Seconds to hold back a request of so many tokens; see `Provider`."""
        return self._endpoint.pause_s(tokens)

    async def models(self) -> tuple[str, ...]:
        """The models that this address offers; the known ones when it cannot be asked (A1.27)."""
        return await self._endpoint.models("/models?limit=1000")

    async def aclose(self) -> None:
        """Give back connections; idempotent, and the provider may be used again."""
        await self._endpoint.aclose()

    async def _ask(
        self, request: Request, decoder: MessagesDecoder, *, paused: bool = False
    ) -> StepResult:
        return await self._endpoint.ask(
            "/messages",
            lambda: encode_request(
                request,
                self.model,
                self._flags,
                stream=self._stream,
                history=self._history,
                paused=paused,
            ),
            decoder,
            stream=self._stream,
            headers=self._beta_headers(request),
        )

    def _beta_headers(self, request: Request) -> dict[str, str]:
        betas = [self._betas] if self._betas else []
        plan = plan_thinking(request, self.model, self._flags)
        if plan.interleaved and self._flags.interleaved and _INTERLEAVED not in self._betas:
            betas.append(_INTERLEAVED)
        if self.model.manages_context and _CLEARS not in self._betas:
            betas.append(_CLEARS)
        return {_BETA: ",".join(betas)} if betas else {}


def _host_flags(url: str) -> AnthropicFlags:
    """How a host speaks that nobody describes; one of others gets only what the API itself has."""
    official = urlsplit(url).hostname == urlsplit(_OFFICIAL_URL).hostname
    return OFFICIAL_FLAGS if official else AnthropicFlags()


def _refusal(result: StepResult) -> str:
    """Why a request was refused before anything was said; empty when it was not."""
    if not isinstance(result, StepFailed) or result.streamed:
        return ""
    return result.error.message if result.error.reason == "request_rejected" else ""


def _known(provider: str, model: str) -> Model:
    """What the name of a model says of it."""
    ability = ability_of(model)
    return Model(
        provider=provider,
        id=model,
        thinking=ability.thinking,
        refuses=ability.refuses,
        output_cap=ability.output_cap,
        images=ability.images,
    )
