"""The embedded model as a provider: fetched, started and warmed behind one slot."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Final

from towline.local import (
    QWEN_CODER,
    LocalModel,
    LocalModelError,
    Speed,
    check_engine,
    ensure_model,
    named_model,
    serve_model,
)
from towline.stand import Stand
from towline_agent import (
    LOCAL_MODEL_FACTS,
    ChatFlags,
    OpenAIChat,
    Piece,
    ProviderUnavailable,
    Request,
    Slot,
    StepFailed,
    StepResult,
)

__all__ = ["LOCAL_MODEL", "LocalProvider"]

LOCAL_MODEL: Final = LOCAL_MODEL_FACTS.name
"""The embedded model as `provider/model`."""

_LOADING: Final = "model_loading"

OnProgress = Callable[[int, int, str], None]
OnNote = Callable[[str], None]
Warm = Callable[[LocalModel], Awaitable[Speed]]


class LocalProvider:
    """Asks the embedded model; starts it on the first use and again when it died.

    While it is fetched or loaded its one slot is held, so that turns wait for it and say so.
    """

    def __init__(
        self,
        *,
        file: Path | None = None,
        on_progress: OnProgress = lambda done, total, source: None,
        on_note: OnNote = lambda note: None,
        warm: Warm | None = None,
    ) -> None:
        self.model = LOCAL_MODEL_FACTS
        """The model and what is known of it."""
        self.slot = Slot(LOCAL_MODEL_FACTS.concurrency or 1)
        """Its one place."""
        self.slot.first = _LOADING
        self.stand = Stand()
        """How it stands, for people."""
        self._file = file
        self._on_progress = on_progress
        self._on_note = on_note
        self._warm = warm
        self.speed: Speed | None = None
        """How fast it is here; `None` before it was warmed."""
        self._stack = AsyncExitStack()
        self._served: LocalModel | None = None
        self._chat: OpenAIChat | None = None
        self._starting = asyncio.Lock()

    async def start(self) -> LocalModel:
        """Fetch the model if it is not there, and serve it; once however many ask.

        Raises:
            LocalModelError: It cannot be had or does not run; the message says what to do.
        """
        async with self._starting:
            if self._served is not None and self._served.alive:
                return self._served
            self.slot.hold(_LOADING)
            self.stand.begin()
            try:
                await self._stop()
                await check_engine()  # before a gigabyte is fetched
                self._served = await self._stack.enter_async_context(await self._serve())
                self._chat = OpenAIChat(
                    self._served.facts.alias,
                    base_url=self._served.base_url,
                    api_key=self._served.key,
                    facts=LOCAL_MODEL_FACTS,
                    flags=ChatFlags(one_call=True, wrap_results=True),
                )
                if self._warm is not None:
                    self.speed = await self._warm(self._served)
                self.slot.first = None
                self.stand.ready(self._served, self.speed)
                return self._served
            except LocalModelError as error:
                self.stand.failed(error.message)
                raise
            finally:
                self.slot.release()

    async def step(self, request: Request, on_piece: Callable[[Piece], None]) -> StepResult:
        """Send one request and read its answer."""
        try:
            await self.start()
        except LocalModelError as error:
            return StepFailed(
                error=ProviderUnavailable(
                    error.message,
                    provider=self.model.provider,
                    model=self.model.id,
                    retryable=False,  # a second try would fetch a gigabyte again
                )
            )
        assert self._chat is not None
        return await self._chat.step(request, on_piece)

    async def models(self) -> tuple[str, ...]:
        """The one model."""
        return (self.model.id,)

    async def aclose(self) -> None:
        """End the model's server."""
        async with self._starting:
            await self._stop()

    async def _serve(self) -> AbstractAsyncContextManager[LocalModel]:
        """The server of the file that was named, else of the embedded model."""
        if self._file is None:
            file = await ensure_model(on_progress=self._fetched, on_note=self._noted)
            self.stand.loading()
            return serve_model(file)
        file = named_model(self._file)
        # Another model: its own template, and its own name on the wire.
        return serve_model(
            file, replace(QWEN_CODER, alias=file.stem, title=file.name), template=None
        )

    def _fetched(self, done: int, total: int, source: str) -> None:
        self.stand.fetching(done, total, source)
        self._on_progress(done, total, source)

    def _noted(self, note: str) -> None:
        self.stand.note(note)
        self._on_note(note)

    async def _stop(self) -> None:
        self.stand.stopped()
        self.slot.first = _LOADING
        if self._chat is not None:
            await self._chat.aclose()
        await self._stack.aclose()
        self._chat = self._served = None
