"""A provider that speaks Gemini's `generateContent`: the Gemini API and Vertex AI."""

from collections.abc import Callable, Mapping
from typing import Any, Final, cast
from urllib.parse import quote, urlsplit

import msgspec

from towline_agent.errors import ProviderError
from towline_agent.host import Clock
from towline_agent.providers.base import Model, Piece, Request, StepResult
from towline_agent.providers.credential import Credential
from towline_agent.providers.endpoint import Encoded, Endpoint
from towline_agent.providers.gemini.address import gemini_address, is_vertex
from towline_agent.providers.gemini.cache import CachedPrefix, PromptCache
from towline_agent.providers.gemini.contents import HistoryEncoder
from towline_agent.providers.gemini.decode import GeminiDecoder
from towline_agent.providers.gemini.encode import Prompt, encode_request
from towline_agent.providers.gemini.family import family_of
from towline_agent.providers.gemini.flags import GeminiFlags
from towline_agent.providers.given import check_given
from towline_agent.providers.json_value import UNREADABLE, as_object
from towline_agent.providers.transport import HttpAnswer, Transport, TransportFailed

__all__ = ["Gemini"]

_OFFICIAL_URL: Final = "https://generativelanguage.googleapis.com/v1beta"
_OFFICIAL_HOST: Final = "generativelanguage.googleapis.com"
_PROJECT_HEADER: Final = "x-goog-user-project"
_KEY_HEADER: Final = "x-goog-api-key"
_BEARER: Final = "authorization"
_TOKEN: Final = "ya29."  # noqa: S105 - how Google's access tokens begin, not one of them
_KEYS: Final = ("AIza", "AQ.")
"""How Google's API keys begin."""
_PROJECTS: Final = "/projects/"
_PUBLISHER: Final = "publishers/google"
_LIST_PATH: Final = "/models?pageSize=1000"
_GENERATES: Final = "generateContent"
_OK: Final = range(200, 300)
_CACHES_FROM: Final[tuple[int, int]] = (2, 5)
"""The oldest generation whose models for words all take explicit caches."""
_CACHE_IDLE_S: Final = 30.0
"""Seconds to wait for a cache: it is to save time, and the step goes on without it as well."""


class Gemini:
    """A provider at the Gemini API or at Vertex AI; see `Provider`.

    ```python
    provider = Gemini("gemini-3.8-flash", api_key=key)
    provider = Gemini(
        "gemini-3.8-flash",
        api_key=access_token,
        base_url="https://europe-west4-aiplatform.googleapis.com"
        "/v1/projects/PROJECT/locations/europe-west4",
        provider="vertex",
    )
    ```

    Making one does no I/O and needs no key; what is wrong shows in the first step.

    The beginnings of long conversations are kept at the provider and named instead of sent (A2.56).
    That costs storage for as long as they are kept, so close the provider when you are done: it
    deletes them. It is on at the Gemini API for models that are known to offer it; a key without it
    costs one request that fails unseen.

    Args:
        model: The provider's own name of the model.
        api_key: The credential: an API key, or a token, which goes as a bearer token. `None` sends
            no header for it at all (A2.65).
        base_url: The address, as people paste it (A2.77). That of Vertex AI holds project and
            location; without them it is its express mode, which takes a key.
        provider: The provider's name, for messages and for `provider/model`.
        facts: What is known of the model; `None` for safe defaults.
        flags: How this address speaks; `None` goes by the address.
        stream: Whether answers are streamed (A2.4).
        extra_headers: Sent with every request.
        known_models: What `models` returns when the address cannot be asked.
        key_setting: The environment variable that should hold the key. With it a missing key fails
            before anything is sent.
        allow_http: Whether an unencrypted address off this machine is fine (A2.80).
        ca_file: A PEM file to trust besides the system's certificates (A2.79).
        cache: Whether beginnings of conversations are kept at the provider; `None` goes by address
            and model.
        transport: Who carries the requests; `None` for the process's own.
        clock: Time, for delays that are stated as dates and for how long beginnings are kept.
        suggested_model: What to take instead when only another model helps (A3.18).
    """

    def __init__(
        self,
        model: str,
        *,
        api_key: str | Credential | None = None,
        base_url: str = _OFFICIAL_URL,
        provider: str = "gemini",
        facts: Model | None = None,
        flags: GeminiFlags | None = None,
        stream: bool = True,
        extra_headers: Mapping[str, str] | None = None,
        known_models: tuple[str, ...] = (),
        key_setting: str | None = None,
        allow_http: bool = False,
        ca_file: str | None = None,
        cache: bool | None = None,
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
        self._flags = flags or GeminiFlags(vertex=is_vertex(base_url))
        url = gemini_address(base_url, vertex=self._flags.vertex)
        self._endpoint = Endpoint(
            facts or Model(provider=provider, id=model),
            base_url=url,
            api_key=api_key,
            key_header=_key_header(api_key, url, self._flags),
            project_header=_PROJECT_HEADER,
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
        self.is_ours = type(self) is Gemini and self._endpoint.is_ours
        """Whether a step runs no code but ours, so that it needs no task of its own."""
        self._stream = stream
        self._history = HistoryEncoder(self.model)
        self._cache = PromptCache(self._send_cache, self._cached_model(), self._endpoint.clock)
        self._cache.off = not (_offers_caches(url, self.model) if cache is None else cache)

    def __repr__(self) -> str:
        return f"Gemini({self.model.name!r}, base_url={self._endpoint.url!r})"

    async def step(self, request: Request, on_piece: Callable[[Piece], None]) -> StepResult:
        """Send one request and read its answer; see `Provider`."""
        prompt = encode_request(request, self.model, self._flags, self._history)
        kept = None
        if self._endpoint.problem is None:
            kept = await self._cache.prepare(request.cache_key, prompt)
        result = await self._ask(request, prompt, kept, on_piece)
        if kept is not None and self._cache.has_died(result):
            self._cache.forget(request.cache_key, kept)
            result = await self._ask(request, prompt, None, on_piece)
        return result

    @property
    def has_limits(self) -> bool:
        """Whether anything may have to be held back; see `Paced`."""
        return self._endpoint.has_limits

    def pause_s(self, tokens: int) -> float:
        """Seconds to hold back a request of so many tokens; see `Paced`."""
        return self._endpoint.pause_s(tokens)

    async def models(self) -> tuple[str, ...]:
        """The models that this address offers; the known ones when it cannot be asked (A1.27).

        Only those that generate content. Vertex AI has no list of them.
        """
        known = self._endpoint.known_models
        if self._endpoint.problem is not None or self._flags.vertex:
            return known
        try:
            call = await self._endpoint.call(_LIST_PATH, None)
            answer = await self._endpoint.transport().json(call)
            listed = _names(answer.body) if answer.status in _OK else ()
        except (ProviderError, TransportFailed, *UNREADABLE):
            return known
        return listed or known

    async def aclose(self) -> None:
        """Delete what is kept at the provider and give back connections (A2.59).

        Idempotent, and the provider may be used again.
        """
        await self._cache.close()
        await self._endpoint.aclose()

    async def _ask(
        self,
        request: Request,
        prompt: Prompt,
        kept: CachedPrefix | None,
        on_piece: Callable[[Piece], None],
    ) -> StepResult:
        name, count = ("", 0) if kept is None else (kept.name, kept.count)
        call = ":streamGenerateContent?alt=sse" if self._stream else ":generateContent"
        return await self._endpoint.ask(
            f"/{self._path(request.model)}{call}",
            lambda: Encoded(body=prompt.body(name, count), notices=prompt.notices),
            GeminiDecoder(self._endpoint.peer, self._flags, on_piece),
            stream=self._stream,
        )

    def _path(self, model: str) -> str:
        """Where a model lies below the address."""
        name = quote(model.removeprefix("models/"), safe="/@")
        if self._flags.vertex:
            return name if name.startswith("publishers/") else f"{_PUBLISHER}/models/{name}"
        return name if name.startswith("tunedModels/") else f"models/{name}"

    def _cached_model(self) -> str:
        """The full name of the model; at Vertex AI with project and location."""
        _, projects, rest = urlsplit(self._endpoint.url).path.partition(_PROJECTS)
        path = self._path(self.model.id)
        return f"{projects[1:]}{rest}/{path}" if projects else path

    async def _send_cache(self, method: str, path: str, body: bytes | None) -> HttpAnswer:
        try:
            call = await self._endpoint.call(f"/cachedContents{path}", body, method=method)
        except ProviderError as error:  # the request itself will say so
            raise TransportFailed("lost", error.message) from error
        call = msgspec.structs.replace(call, idle_s=min(call.idle_s, _CACHE_IDLE_S))
        return await self._endpoint.transport().json(call)


def _key_header(credential: str | Credential | None, url: str, flags: GeminiFlags) -> str:
    """Where the credential goes: tokens are bearers, and at Vertex AI's projects all but keys."""
    key = credential.strip() if isinstance(credential, str) else ""
    project = flags.vertex and _PROJECTS in url and not key.startswith(_KEYS)
    return _BEARER if project or key.startswith(_TOKEN) else _KEY_HEADER


def _offers_caches(url: str, model: Model) -> bool:
    """Whether explicit caches are known to be offered."""
    family = family_of(model)
    known = family.generation >= _CACHES_FROM and bool(family.control)
    return known and urlsplit(url).hostname == _OFFICIAL_HOST


def _names(body: bytes) -> tuple[str, ...]:
    """The names of the models that generate content."""
    found: Any = msgspec.json.decode(body)
    rows: Any = cast("dict[str, Any]", found).get("models") if isinstance(found, dict) else None
    names: list[str] = []
    for row in cast("list[Any]", rows) if isinstance(rows, list) else []:
        fields = as_object(row)
        name, methods = fields.get("name"), fields.get("supportedGenerationMethods")
        offers = not isinstance(methods, list) or _GENERATES in methods
        if isinstance(name, str) and name and offers:
            names.append(name.removeprefix("models/"))
    return tuple(names)
