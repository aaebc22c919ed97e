"""Which model answers: what a person named, else a key, else a local server, else our own."""

import asyncio
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import msgspec

from towline.local_provider import LOCAL_MODEL, LocalProvider, OnNote, OnProgress, Warm
from towline.picks import Picks
from towline.providers.reach import Reach
from towline.secrets import stored_keys, stored_providers
from towline_agent import (
    VENDORS,
    Found,
    Transport,
    connect,
    discover,
    discover_local,
    installed_providers,
    list_models,
)
from towline_agent import Choice as Newest
from towline_agent import choose_model as choose_live
from towline_protocol import LocalModelState, TowlineError
from towline_server import Connection

__all__ = [
    "Choice",
    "Models",
    "choose_model",
    "discover_signed_in",
    "find_model",
    "is_known",
    "is_offered",
    "read_stored_keys",
]

_LOOK_S: Final = 3.0
"""Seconds to ask a provider for its newest model while a person waits for the start."""


@dataclass(frozen=True, kw_only=True)
class Choice:
    """The model of new sessions."""

    model: str
    """`provider/model`."""
    why: str
    """One sentence for a person (A2.90)."""
    file: Path | None = None
    """A model file that was named."""

    @property
    def local(self) -> bool:
        """Whether it runs on this machine inside towline."""
        return self.model == LOCAL_MODEL


def read_stored_keys(environ: Mapping[str, str] = os.environ) -> dict[str, tuple[str, ...]]:
    """The keys that are kept for providers, by their names.

    Blocks for some seconds at most; where nothing is kept nothing is asked.
    """
    return {name: stored_keys(name, environ) for name in stored_providers(environ)}


def discover_signed_in(environ: Mapping[str, str] = os.environ) -> tuple[Found, ...]:
    """The providers that a person has signed in to and keeps no key for (A2.64)."""
    return tuple(
        Found(provider=name, model=VENDORS[name].default_model, why="You are signed in there")
        for name in stored_providers(environ)
        if name in VENDORS and not stored_keys(name, environ)
    )


def choose_model(
    named: str | None,
    environ: Mapping[str, str] = os.environ,
    *,
    picks: Picks | None = None,
    stored: Mapping[str, Sequence[str]] | None = None,
    local: Sequence[Found] = (),
) -> Choice:
    """Choose the model of new sessions by what is known, without asking anybody (A2.85 to A2.89).

    Args:
        named: `provider/model`, a path of a GGUF file, or `None` to look.
        environ: Where keys are looked for.
        picks: What the person named last for each provider.
        stored: The keys that are kept for providers.
        local: The model servers that were found on this machine.
    """
    if named is not None and named.endswith(".gguf"):
        return Choice(model=LOCAL_MODEL, why=f"{named} was named.", file=Path(named))
    if named is not None:
        return Choice(model=named, why=f"{named} was named.")
    choice = _first((*discover(environ, stored), *local), picks)
    if choice is not None:
        return choice
    return Choice(
        model=LOCAL_MODEL,
        why="No provider key is set, and no model server runs here, so a small model of our own "
        "runs on this machine.",
    )


async def find_model(
    named: str | None,
    environ: Mapping[str, str] = os.environ,
    *,
    picks: Picks | None = None,
    stored: Mapping[str, Sequence[str]] | None = None,
    transport: Transport | None = None,
) -> Choice:
    """Choose the model of new sessions; asks local ports, and a provider for its newest model.

    Without a key, local servers are asked (A2.86). A provider whose free plan has the newest model
    alone is asked which that is (A2.88); one that does not answer in time costs seconds.

    Args:
        named: As for `choose_model`.
        environ: Where keys and addresses are looked for.
        picks: What the person named last for each provider.
        stored: The keys that are kept for providers.
        transport: Who carries the requests; `None` for the process's own.
    """
    if named is not None:
        return choose_model(named, environ)
    found = [*discover(environ, stored), *(discover_signed_in(environ) if stored else ())]
    silent = ""
    for place, one in enumerate(found):
        if one.model is None and VENDORS[one.provider].key_optional:  # an address of one's own
            newest = await _ask(one.provider, environ, stored, transport)
            found[place] = msgspec.structs.replace(one, model=newest and newest.model)
            if newest is None:
                silent = f"{one.why}, but nothing there names its models; name one with --model. "
    choice = _first(found, picks)
    if choice is None:
        choice = _first(await discover_local(transport, environ), picks)
    if choice is None:
        ours = choose_model(None, {})
        return replace(ours, why=silent + ours.why)
    return await _renew(choice, environ, picks, stored, transport)


async def _renew(
    choice: Choice,
    environ: Mapping[str, str],
    picks: Picks | None,
    stored: Mapping[str, Sequence[str]] | None,
    transport: Transport | None,
) -> Choice:
    """The choice with the newest model of its provider, where only that one may be used (A2.88)."""
    provider, _, model = choice.model.partition("/")
    vendor = VENDORS.get(provider)
    picked = picks is not None and picks.last(provider) is not None
    if picked or vendor is None or vendor.prefer is None or model != vendor.default_model:
        return choice
    newest = await _ask(provider, environ, stored, transport)
    if newest is None:
        return choice
    why = choice.why.removesuffix(".")
    return Choice(model=f"{provider}/{newest.model}", why=f"{why}, and it is {newest.why}.")


def is_known(model: str) -> bool:
    """Whether there is a provider for a `provider/model`; asks nobody."""
    provider = model.partition("/")[0].partition("+")[0]
    return model == LOCAL_MODEL or provider in VENDORS or provider in installed_providers()


async def is_offered(
    model: str,
    environ: Mapping[str, str] = os.environ,
    stored: Mapping[str, Sequence[str]] | None = None,
) -> bool:
    """Whether the provider has just said that it has this model; false when it does not answer."""
    provider, _, name = model.partition("/")
    try:
        async with asyncio.timeout(_LOOK_S):
            listing = await list_models(provider, environ, stored=stored)
    except (TimeoutError, TowlineError):
        return False
    return listing.live and name in listing.models


def _first(found: Sequence[Found], picks: Picks | None) -> Choice | None:
    for one in found:
        last = picks.last(one.provider) if picks is not None else None
        if last is not None:
            return Choice(model=last, why=f"{one.why}, and it is your last pick there.")
        if one.model is not None:
            return Choice(model=f"{one.provider}/{one.model}", why=f"{one.why}.")
    return None


async def _ask(
    provider: str,
    environ: Mapping[str, str],
    stored: Mapping[str, Sequence[str]] | None,
    transport: Transport | None,
) -> Newest | None:
    """What a provider would have taken of its live list; `None` when it does not say in time."""
    try:
        async with asyncio.timeout(_LOOK_S):
            listing = await list_models(provider, environ, stored=stored, transport=transport)
        return choose_live(provider, listing.models) if listing.live else None
    except (TimeoutError, TowlineError):
        return None  # it may be there when the first prompt comes


class Models:
    """Makes connections; the embedded model is started once and shared."""

    def __init__(
        self,
        choice: Choice,
        *,
        reach: Reach | None = None,
        on_progress: OnProgress = lambda done, total, source: None,
        on_note: OnNote = lambda note: None,
        warm: Warm | None = None,
    ) -> None:
        self.choice = choice
        """The model of new sessions that are made now."""
        self._reach = reach or Reach()
        self._on_progress = on_progress
        self._on_note = on_note
        self._warm = warm
        self._local: LocalProvider | None = None

    async def aclose(self) -> None:
        """End the embedded model, if it was ever asked for."""
        if self._local is not None:
            await self._local.aclose()

    async def local_state(self) -> LocalModelState:
        """How the embedded model stands; `off` as long as nobody has asked for it."""
        if self._local is None:
            return LocalModelState(state="off")
        return await self._local.stand.tell()

    async def take_up(
        self, provider: str, *, picks: Picks | None = None, transport: Transport | None = None
    ) -> None:
        """Give new sessions a model of a provider that can be asked from now on.

        Only where there was none but our own: whoever has a model that works keeps it.

        Args:
            provider: The provider.
            picks: What the person named last for each provider.
            transport: Who asks it for its newest model; `None` for the process's own.
        """
        if picks is not None and picks.chosen is not None:
            return  # somebody has said it
        model = VENDORS[provider].default_model
        found = Found(provider=provider, model=model, why="It can be asked since you set it up")
        choice = _first((found,), picks)
        if choice is None or not self.choice.local:
            return
        environ = self._reach.environ_of(provider)
        choice = await _renew(choice, environ, picks, self._reach.stored, transport)
        if self.choice.local:
            self.choice = choice

    @property
    def local(self) -> LocalProvider:
        """The embedded model; made at the first look, started at the first use."""
        if self._local is None:
            self._local = LocalProvider(
                file=self.choice.file,
                on_progress=self._on_progress,
                on_note=self._on_note,
                warm=self._warm,
            )
        return self._local

    async def connect(self, model: str) -> Connection:
        """The provider of a model.

        Raises:
            UsageError: There is no such provider.
            AuthenticationFailed: It needs a key that is not set.
        """
        if model == LOCAL_MODEL:
            return Connection(self.local, self.local.slot)
        reach, provider = self._reach, model.partition("/")[0].partition("+")[0]
        version = reach.version(provider)
        made = connect(
            model,
            reach.environ_of(provider),
            stored=reach.stored,
            credential=reach.credential(provider),
        )
        return Connection(made, stale=lambda: reach.version(provider) != version)
