"""A provider that speaks OpenAI Chat Completions."""

from collections.abc import Callable, Mapping
from typing import Final

from towline_agent.host import Clock
from towline_agent.providers.base import Model, Piece, Request, StepResult
from towline_agent.providers.credential import Credential
from towline_agent.providers.endpoint import Endpoint
from towline_agent.providers.given import check_given
from towline_agent.providers.openai_chat.decode import ChatDecoder
from towline_agent.providers.openai_chat.encode import encode_request
from towline_agent.providers.openai_chat.flags import OFFICIAL_FLAGS, ChatFlags
from towline_agent.providers.openai_chat.messages import MessageEncoder
from towline_agent.providers.transport import Transport

__all__ = ["OpenAIChat"]

_OFFICIAL_URL: Final = "https://api.openai.com/v1"


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
        flags: ChatFlags | None = None,
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
        self.model = self._endpoint.model
        """The model and what is known of it."""
        self.is_ours = type(self) is OpenAIChat and self._endpoint.is_ours
        """Whether a step runs no code but ours, so that it needs no task of its own."""
        self._official = self._endpoint.url == _OFFICIAL_URL
        self._flags = flags or (OFFICIAL_FLAGS if self._official else ChatFlags())
        self._messages = MessageEncoder(self.model.name, self._flags)
        self._stream = stream and not self._flags.no_stream

    def __repr__(self) -> str:
        return f"OpenAIChat({self.model.name!r}, base_url={self._endpoint.url!r})"

    async def step(self, request: Request, on_piece: Callable[[Piece], None]) -> StepResult:
        """Send one request and read its answer; see `Provider`."""
        return await self._endpoint.ask(
            "/chat/completions",
            lambda: encode_request(
                request,
                self.model,
                self._flags,
                stream=self._stream,
                official=self._official,
                messages=self._messages,
            ),
            ChatDecoder(self._endpoint.peer, self._flags, on_piece),
            stream=self._stream,
        )

    @property
    def has_limits(self) -> bool:
        """Whether anything may have to be held back; see `Paced`."""
        return self._endpoint.has_limits

    def pause_s(self, tokens: int) -> float:
        """Seconds to hold back a request of so many tokens; see `Paced`."""
        return self._endpoint.pause_s(tokens)

    async def models(self) -> tuple[str, ...]:
        """The models that this address offers; the known ones when it cannot be asked (A1.27)."""
        return await self._endpoint.models()

    async def aclose(self) -> None:
        """Give back connections; idempotent, and the provider may be used again."""
        await self._endpoint.aclose()
