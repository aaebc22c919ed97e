"""A provider that speaks OpenAI Responses."""

import re
from collections.abc import Callable, Mapping
from typing import Final
from urllib.parse import urlsplit

import msgspec

from towline_agent.host import Clock
from towline_agent.providers.base import Model, Piece, Request, StepFailed, StepResult
from towline_agent.providers.credential import Credential
from towline_agent.providers.endpoint import Encoded, Endpoint
from towline_agent.providers.given import check_given
from towline_agent.providers.openai_responses.decode import ResponsesDecoder
from towline_agent.providers.openai_responses.encode import encode_request
from towline_agent.providers.openai_responses.flags import GATEWAY_FLAGS, ResponsesFlags
from towline_agent.providers.openai_responses.history import HistoryEncoder
from towline_agent.providers.room import managed
from towline_agent.providers.transport import Transport

__all__ = ["OpenAIResponses"]

_OFFICIAL_URL: Final = "https://api.openai.com/v1"
_HOSTS: Final = (
    (".api.openai.com", "openai"),
    (".openai.azure.com", "azure"),
    (".services.ai.azure.com", "azure"),
    (".openrouter.ai", "openrouter"),
    (".api.x.ai", "xai"),
    (".api.deepseek.com", "deepseek"),
)
"""Ends of host names whose gateway is known without being named."""

_SUMMARY: Final = re.compile(r"reasoning\.summary|reasoning summar", re.IGNORECASE)
_NO_ENCRYPTION: Final = re.compile(
    r"encrypted content is not supported|reasoning\.encrypted_content|['\"`]include\b",
    re.IGNORECASE,
)
_NO_COMPACTION: Final = re.compile(r"context_management|compact_threshold", re.IGNORECASE)
_UNREADABLE: Final = re.compile(r"encrypted[ _]content", re.IGNORECASE)


class OpenAIResponses:
    """A provider at any address that speaks Responses; see `Provider`.

    ```python
    provider = OpenAIResponses("gpt-5.6-sol", api_key=key)
    ```

    Making one does no I/O and needs no key; what is wrong shows in the first step. Nothing is
    stored at the vendor (A2.26).

    A request is sent again at once, in another form, where the vendor refuses something that was
    no part of the question: summaries of thinking for accounts that may not have them, encrypted
    thinking from models that give none, old thinking that another account's key encrypted, and
    summing up for models that are not summed up.

    Args:
        model: The provider's own name of the model.
        api_key: The credential; `None` sends no `Authorization` header at all (A2.65).
        base_url: The address, as people paste it (A2.77, A2.78).
        provider: The provider's name, for messages and for `provider/model`.
        facts: What is known of the model; `None` for safe defaults.
        flags: How this gateway speaks; `None` goes by its host.
        stream: Whether answers are streamed (A2.4).
        extra_headers: Sent with every request.
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
        provider: str = "openai",
        facts: Model | None = None,
        flags: ResponsesFlags | None = None,
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
        self._endpoint = Endpoint(
            facts or Model(provider=provider, id=model),
            base_url=base_url,
            api_key=api_key,
            headers=extra_headers,
            known_models=known_models,
            key_setting=key_setting,
            allow_http=allow_http,
            ca_file=ca_file,
            transport=transport,
            clock=clock,
            suggested_model=suggested_model,
        )
        self._flags = flags or _host_flags(self._endpoint.url)
        self.model = managed(self._endpoint.model, offered=self._flags.compacts)
        """The model and what is known of it."""
        self.is_ours = type(self) is OpenAIResponses and self._endpoint.is_ours
        """Whether a step runs no code but ours, so that it needs no task of its own."""
        self._stream = stream and not self._flags.no_stream
        self._history = HistoryEncoder(self.model.name, self._flags)
        self._reasons = False  # the model was seen to reason

    def __repr__(self) -> str:
        return f"OpenAIResponses({self.model.name!r}, base_url={self._endpoint.url!r})"

    async def step(self, request: Request, on_piece: Callable[[Piece], None]) -> StepResult:
        """Send one request and read its answer; see `Provider`."""
        replay = True
        while True:
            decoder = ResponsesDecoder(self._endpoint.peer, on_piece)
            result = await self._endpoint.ask(
                "/responses",
                lambda replay=replay: self._encode(request, replay),
                decoder,
                stream=self._stream,
            )
            self._reasons = self._reasons or decoder.hides_reasoning
            words = _refusal(result)
            if not self._concede(words):
                if not replay or not _UNREADABLE.search(words):
                    return result
                replay = False

    @property
    def has_limits(self) -> bool:
        """Whether anything may have to be held back; see `Paced`."""
        return self._endpoint.has_limits

    def pause_s(self, tokens: int) -> float:
        """Seconds to hold back a request of so many tokens; see `Provider`."""
        return self._endpoint.pause_s(tokens)

    async def models(self) -> tuple[str, ...]:
        """The models that this address offers; the known ones when it cannot be asked (A1.27)."""
        return await self._endpoint.models()

    async def aclose(self) -> None:
        """Give back connections; idempotent, and the provider may be used again."""
        await self._endpoint.aclose()

    def _encode(self, request: Request, replay: bool) -> Encoded:
        history = self._history
        if not replay:
            history = HistoryEncoder(self.model.name, self._flags, replay=False)
        return encode_request(
            request,
            self.model,
            self._flags,
            stream=self._stream,
            history=history,
            reasons=self._reasons,
        )

    def _concede(self, words: str) -> bool:
        """Give up what a refusal speaks of, for good; whether there was something to give up."""
        flags = self._flags
        if flags.summary is not None and _SUMMARY.search(words):
            self._flags = msgspec.structs.replace(flags, summary=None)
        elif flags.encrypted and _NO_ENCRYPTION.search(words):
            self._flags = msgspec.structs.replace(flags, encrypted=False)
        elif self.model.manages_context and _NO_COMPACTION.search(words):
            self.model = msgspec.structs.replace(self.model, manages_context=False)
        else:
            return False
        return True


def _refusal(result: StepResult) -> str:
    """Why a request was refused before anything was said; empty when it was not."""
    if not isinstance(result, StepFailed) or result.streamed:
        return ""
    return result.error.message if result.error.reason == "request_rejected" else ""


def _host_flags(url: str) -> ResponsesFlags:
    host = f".{urlsplit(url).hostname or ''}"
    name = next((name for end, name in _HOSTS if host.endswith(end)), "")
    return GATEWAY_FLAGS.get(name, ResponsesFlags())
