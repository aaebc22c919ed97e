"""Who a model is asked through, connected anew once a person has changed how."""

import asyncio
from collections.abc import Awaitable, Callable
from inspect import isawaitable
from typing import NamedTuple

from towline_agent import (
    Model,
    Paced,
    Piece,
    Provider,
    ProviderError,
    ProviderUnavailable,
    Request,
    Slot,
    StepFailed,
    StepResult,
)
from towline_protocol import TowlineError, UsageError

__all__ = ["Connect", "Connection", "Line", "PlainConnect", "to_connect"]


def _never() -> bool:
    return False


class Connection(NamedTuple):
    """A provider, and the places it has when they are few."""

    provider: Provider
    """Who is asked."""
    slot: Slot | None = None
    """`None` when it serves any number at once."""
    stale: Callable[[], bool] = _never
    """Whether its key or its address has changed since it was made."""


Connect = Callable[[str], Awaitable[Connection]]
"""Finds the provider of a `provider/model`; raises `TowlineError` when there is none."""


PlainConnect = Callable[[str], Provider]
"""The same without waiting and without places, such as `towline_agent.connect`."""


def to_connect(connect: Connect | PlainConnect) -> Connect:
    """Either kind as the one that the sessions use.

    Raises:
        UsageError: It cannot be called. What it gives is looked at with the first request.
    """
    if not callable(connect):
        raise UsageError(
            f"connect={connect!r} cannot be called; give a function from 'provider/model' to its "
            "provider, such as `towline_agent.connect`."
        )

    async def open_connection(model: str) -> Connection:
        found = connect(model)
        found = await found if isawaitable(found) else found
        if isinstance(found, Connection):
            return found
        if not callable(getattr(found, "step", None)):
            raise UsageError(
                f"`connect` gave {type(found).__name__!r} for {model!r}; have it return a "
                "provider, as `towline_agent.connect` does, or a `Connection`."
            )
        return Connection(found)

    return open_connection


class _Held:
    """A connection and how many requests use it."""

    __slots__ = ("connection", "users")

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.users = 0


class Line:
    """The provider of one model, for all sessions; see `Provider` and `Paced`.

    Each request goes over the newest connection. One that is stale is closed when no request uses
    it any more: a key that is set while a turn runs counts for its next request.

    Args:
        name: `provider/model`.
        connection: The first connection.
        connect: Makes further ones.
        close: Told which provider nobody uses any more; never waits.
    """

    def __init__(
        self,
        name: str,
        connection: Connection,
        connect: Connect,
        close: Callable[[Provider], None],
    ) -> None:
        self.model: Model = connection.provider.model
        """The model and what is known of it."""
        self._name = name
        self._connect = connect
        self._close = close
        self._held: _Held | None = _Held(connection)
        self._connecting = asyncio.Lock()

    async def step(self, request: Request, on_piece: Callable[[Piece], None]) -> StepResult:
        """Send one request and read its answer."""
        try:
            held = await self._newest()
        except ProviderError as error:
            return StepFailed(error=error)
        except TowlineError as error:
            return StepFailed(error=self._unavailable(error))
        held.users += 1
        try:
            return await held.connection.provider.step(request, on_piece)
        finally:
            held.users -= 1
            if held is not self._held and not held.users:
                self._close(held.connection.provider)

    def pause_s(self, tokens: int) -> float:
        """Seconds to hold back a request of so many tokens."""
        provider = None if self._held is None else self._held.connection.provider
        return provider.pause_s(tokens) if isinstance(provider, Paced) else 0.0

    async def models(self) -> tuple[str, ...]:
        """The models that its address offers."""
        return await (await self._newest()).connection.provider.models()

    async def aclose(self) -> None:
        """Give back connections; the line may be used again after it."""
        if self._held is not None:
            await self._held.connection.provider.aclose()

    def renew(self) -> None:
        """Let go of a stale connection now; the next request makes another one."""
        held = self._held
        if held is not None and held.connection.stale():
            self._held = None
            if not held.users:
                self._close(held.connection.provider)

    async def _newest(self) -> _Held:
        """The connection to use, made anew when it is stale."""
        self.renew()
        if self._held is not None:
            return self._held  # never behind one that is being made
        async with self._connecting:
            if self._held is None:
                self._held = _Held(await self._connect(self._name))
                self.model = self._held.connection.provider.model
            return self._held

    def _unavailable(self, error: TowlineError) -> ProviderUnavailable:
        return ProviderUnavailable(
            error.message, provider=self.model.provider, model=self.model.id, retryable=False
        )
