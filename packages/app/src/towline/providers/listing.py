"""The models of all providers, asked now and then and not with each look (A1.27, A2.90)."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from towline.providers.info import describe_model, describe_provider
from towline.providers.names import natural_order
from towline.providers.reach import Reach
from towline_agent import (
    LOCAL_MODEL_FACTS,
    VENDORS,
    Clock,
    Listing,
    ProviderUnavailable,
    Transport,
    fact_file,
    is_for_words,
    known_names,
    list_models,
)
from towline_protocol import Fault, ModelInfo, ModelList, UsageError

__all__ = ["ModelLists"]

_FRESH_S: Final = 300.0
"""Seconds for which a list counts: models come and go by the week."""
_RETRY_S: Final = 15.0
"""Seconds until a provider that did not answer is asked again."""
_ASK_S: Final = 8.0
"""Seconds for a provider to name its models: a person looks on, and all are asked at once."""


class _Seen(msgspec.Struct, frozen=True):
    until_s: float
    listing: Listing


class ModelLists:
    """Asks each provider that can be asked, all at once, and remembers what it said.

    Args:
        reach: How they are reached.
        default_model: Tells the model of new sessions.
        clock: Time.
        transport: Who asks; `None` for the process's own.
    """

    def __init__(
        self,
        reach: Reach,
        default_model: Callable[[], str],
        *,
        clock: Clock,
        transport: Transport | None = None,
    ) -> None:
        self._reach = reach
        self._default = default_model
        self._clock = clock
        self._transport = transport
        self._seen: dict[str, _Seen] = {}
        self._asking = asyncio.Lock()

    def forget(self, provider: str) -> None:
        """Ask a provider anew the next time."""
        self._seen.pop(provider, None)

    async def models(self) -> ModelList:
        """The models of every provider that can be asked, and the built-in one."""
        async with self._asking:  # a second look takes what the first one was told
            names = [name for name in VENDORS if self._can_ask(name)]
            async with asyncio.TaskGroup() as group:
                tasks = {name: group.create_task(self._list(name)) for name in names}
        listings = {name: task.result() for name, task in tasks.items()}
        own = describe_model(LOCAL_MODEL_FACTS.provider, LOCAL_MODEL_FACTS.id, live=True)
        models = [model for name in names for model in _describe(name, listings[name])]
        return ModelList(
            default=self._default(),
            models=(*models, own),
            faults=_faults(listings),
            prices_date=fact_file().date,
        )

    def _can_ask(self, name: str) -> bool:
        return describe_provider(self._reach, name).state in ("ready", "keyless")

    async def _list(self, name: str) -> Listing:
        seen = self._seen.get(name)
        if seen is not None and self._clock.monotonic() < seen.until_s:
            return seen.listing
        listing = await self._ask(name)
        lasts_s = _FRESH_S if listing.problem is None else _RETRY_S
        self._seen[name] = _Seen(self._clock.monotonic() + lasts_s, listing)
        return listing

    async def _ask(self, name: str) -> Listing:
        try:
            async with asyncio.timeout(_ASK_S):
                return await list_models(
                    name,
                    self._reach.environ_of(name),
                    stored=self._reach.stored,
                    credential=self._reach.credential(name),
                    transport=self._transport,
                )
        except TimeoutError:
            why = f"{VENDORS[name].title} did not name its models within {_ASK_S:g} s."
        except UsageError as error:
            why = error.message
        problem = ProviderUnavailable(why, provider=name, reason="no_answer")
        return Listing(models=(), live=False, problem=problem)


def _describe(name: str, listing: Listing) -> list[ModelInfo]:
    names = set(listing.models if listing.live or not VENDORS[name].local else ())
    if not listing.live:
        names |= {known for known in known_names(name) if is_for_words(known)}
    return [
        describe_model(name, model, live=listing.live) for model in sorted(names, key=natural_order)
    ]


def _faults(listings: Mapping[str, Listing]) -> dict[str, Fault]:
    """Why a provider did not say; a server that does not run on this machine is no fault."""
    return {
        name: listing.problem.fault()
        for name, listing in listings.items()
        if listing.problem is not None and not VENDORS[name].local
    }
