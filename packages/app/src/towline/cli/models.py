"""`towline models`: which model is taken and why, and what each provider offers (A2.90)."""

import asyncio
import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import msgspec
from rich.console import Console
from rich.markup import escape

from towline.cli.command import command_name
from towline.cli.model_table import ModelRow, say, show_rows
from towline.cli.visible import show_line, show_visible
from towline.local import cached_model, model_facts, model_folder
from towline.local_provider import LOCAL_MODEL
from towline.models import Choice, discover_signed_in, find_model
from towline.paths import find_paths
from towline.picks import Picks
from towline.providers.names import ALIASES, natural_order
from towline.providers.reach import Reach, open_reach
from towline_agent import (
    LOCAL_MODEL_FACTS,
    VENDORS,
    Found,
    Listing,
    Model,
    Transport,
    choose_model,
    discover,
    discover_local,
    fact_file,
    installed_providers,
    is_for_words,
    known_model,
    known_names,
    list_models,
)
from towline_agent import model_facts as known_facts
from towline_protocol import UsageError
from towline_server import load_config

__all__ = ["show_models", "show_provider"]

_GB = 1_000_000_000


class _Person(msgspec.Struct, frozen=True):
    """What is known of the person who asks."""

    environ: Mapping[str, str]
    picks: Picks
    reach: Reach
    """How they reach providers."""
    named: str | None
    """The model in the settings."""

    @property
    def stored(self) -> dict[str, tuple[str, ...]]:
        """The keys that are kept."""
        return self.reach.stored


class _Offer(msgspec.Struct, frozen=True, kw_only=True):
    """A provider that can be asked, and what would be taken there."""

    provider: str
    found: str
    """How it was found."""
    model: str | None = None
    """As `provider/model`."""
    why: str = ""
    """Why this one."""
    count: int | None = None
    """Models that it offers just now; `None` when it did not say."""
    problem: str | None = None
    """Why it did not say."""


async def show_models(
    console: Console,
    *,
    as_json: bool,
    environ: Mapping[str, str] = os.environ,
    transport: Transport | None = None,
) -> int:
    """Show the providers that can be asked, the model that is taken at each, and why.

    Raises:
        UsageError: The settings are bad.
    """
    person = _look(environ)
    with _waiting("Looking for keys and local model servers…", as_json=as_json):
        local = await discover_local(transport, environ)
    signed_in = discover_signed_in(environ) if person.stored else ()
    found = (*discover(environ, person.stored), *signed_in, *local)
    known = {one.provider: one for one in found}
    with _waiting(f"Asking {', '.join(known)}…", as_json=as_json or not known):
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(_ask(one, person, transport)) for one in known.values()]
            choosing = group.create_task(_choose(person, transport))
    offers, taken = [task.result() for task in tasks], choosing.result()
    if as_json:
        _print_json(console, _overview_json(taken, offers))
        return 0
    say(console, f"New sessions take {taken.model}.", "bold")
    say(console, taken.why)
    console.print()
    rows = [_offer_row(offer, taken) for offer in offers]
    show_rows(console, [*rows, _embedded_row(taken, environ)])
    console.print()
    _say_prices(console, rows)
    others = [name for name in (*VENDORS, *installed_providers()) if name not in known]
    say(console, f"Without a key or an address here: {', '.join(others)}.", "dim")
    say(console, f"`{command_name()} models NAME` lists what one of them offers.", "dim")
    return 0


async def show_provider(
    named: str,
    console: Console,
    *,
    as_json: bool,
    environ: Mapping[str, str] = os.environ,
    transport: Transport | None = None,
) -> int:
    """Show the models of one provider with windows and prices.

    Raises:
        UsageError: There is no such provider, or it has no address.
    """
    person = _look(environ)
    provider = named.strip().partition("/")[0]
    provider = ALIASES.get(provider.lower(), provider)
    with _waiting(f"Asking {provider}…", as_json=as_json):
        listing = await _list(provider, person, transport)
    model, why = _pick(provider, listing, person.picks)
    names = sorted(listing.models, key=natural_order)
    if as_json:
        _print_json(console, _provider_json(provider, listing, names, model, why))
        return 0
    say(console, _headline(provider, listing, len(names)), "bold")
    if listing.problem is not None:
        say(console, listing.problem.message)
    say(console, f"Taken here: {model} ({why})." if model is not None else why)
    rows = [_model_row(provider, name, taken=f"{provider}/{name}" == model) for name in names]
    if rows:
        console.print()
        show_rows(console, rows)
        console.print()
        _say_prices(console, rows)
    return 0


def _look(environ: Mapping[str, str]) -> _Person:
    paths = find_paths(environ)
    config = load_config(paths.config_file, environ, data_dir=paths.data_dir)
    reach = open_reach(environ)
    picks = Picks(config.data_dir)
    return _Person(reach.environ, picks, reach, config.model or picks.chosen)


async def _choose(person: _Person, transport: Transport | None) -> Choice:
    return await find_model(
        person.named,
        person.environ,
        picks=person.picks,
        stored=person.stored,
        transport=transport,
    )


async def _ask(found: Found, person: _Person, transport: Transport | None) -> _Offer:
    try:
        listing = await _live(found.provider, person, transport)
    except UsageError as error:  # a setting of it is bad: the others are shown all the same
        return _Offer(provider=found.provider, found=found.why, problem=error.message)
    model, why = _pick(found.provider, listing, person.picks)
    return _Offer(
        provider=found.provider,
        found=found.why,
        model=model,
        why=why,
        count=len(listing.models) if listing.live else None,
        problem=listing.problem.message if listing.problem is not None else None,
    )


async def _live(provider: str, person: _Person, transport: Transport | None) -> Listing:
    return await list_models(
        provider,
        person.reach.environ_of(provider),
        stored=person.stored,
        credential=person.reach.credential(provider),
        transport=transport,
    )


async def _list(provider: str, person: _Person, transport: Transport | None) -> Listing:
    if provider == LOCAL_MODEL_FACTS.provider:
        return Listing(models=(LOCAL_MODEL_FACTS.id,), live=True)
    listing = await _live(provider, person, transport)
    if listing.live:
        return listing
    base = provider.partition("+")[0]
    known = [name for name in known_names(base) if is_for_words(name)]
    return msgspec.structs.replace(listing, models=tuple(dict.fromkeys([*listing.models, *known])))


def _pick(provider: str, listing: Listing, picks: Picks) -> tuple[str | None, str]:
    """The model that is taken at a provider, as `provider/model`, and why; or what to do."""
    if provider == LOCAL_MODEL_FACTS.provider:
        return LOCAL_MODEL, "it is the only one"
    last = picks.last(provider)
    live = listing.models if listing.live else ()
    if last is not None:
        gone = live and last.partition("/")[2] not in live
        return last, "your last pick, which is not offered now" if gone else "your last pick"
    if provider.partition("+")[0] not in VENDORS:
        return None, f"Name a model of it as {provider}/MODEL."
    try:
        choice = choose_model(provider.partition("+")[0], live)
    except UsageError as error:
        return None, error.message
    return f"{provider}/{choice.model}", choice.why


def _offer_row(offer: _Offer, taken: Choice) -> ModelRow:
    is_taken = taken.model.partition("/")[0].partition("+")[0] == offer.provider
    model = taken.model if is_taken else offer.model
    why = f"{offer.found}." if model is None else f"{offer.found}; {offer.why}."
    if model is None and offer.why:
        why = f"{why} {offer.why}"
    if offer.count is not None:
        why += f" It offers {_count(offer.count)}."
    notes = [why] if offer.problem is None else [why, offer.problem]
    facts = _facts(model) if model is not None else None
    return ModelRow(
        name=model or offer.provider,
        facts=facts,
        notes=tuple(notes),
        taken=is_taken,
        dearer_from=_dearer_from(facts),
    )


def _embedded_row(taken: Choice, environ: Mapping[str, str]) -> ModelRow:
    there = cached_model(folder=model_folder(environ)) is not None
    size = model_facts(environ).size_bytes / _GB
    fetched = "It is here." if there else f"{size:.1f} GB are fetched at the first use."
    return ModelRow(
        name=LOCAL_MODEL,
        facts=LOCAL_MODEL_FACTS,
        notes=(f"Built in: small, runs on this machine, needs no key. {fetched}",),
        taken=taken.local,
    )


def _model_row(provider: str, name: str, *, taken: bool) -> ModelRow:
    facts = _facts(f"{provider}/{name}")
    return ModelRow(name=name, facts=facts, taken=taken, dearer_from=_dearer_from(facts))


def _facts(model: str) -> Model:
    provider, _, name = model.partition("/")
    if provider == LOCAL_MODEL_FACTS.provider:
        return LOCAL_MODEL_FACTS
    return known_facts(provider, name)


def _dearer_from(facts: Model | None) -> int | None:
    if facts is None:
        return None
    prices = known_model(facts.provider.partition("+")[0], facts.id).prices
    return prices.dearer_from if prices is not None else None


def _headline(provider: str, listing: Listing, count: int) -> str:
    vendor = VENDORS.get(provider.partition("+")[0])
    title = vendor.title if vendor is not None else provider
    if listing.live:
        return f"{title} offers {_count(count)}."
    return f"{title} gave no list; {_count(count)} of it are known here."


def _count(models: int) -> str:
    return {0: "no models", 1: "one model"}.get(models, f"{models} models")


def _say_prices(console: Console, rows: Sequence[ModelRow]) -> None:
    if not any(row.facts is not None and row.facts.price_input for row in rows):
        return
    plus = " A + means that long requests cost more." if any(r.dearer_from for r in rows) else ""
    text = f"Prices are US dollars for a million tokens, of {fact_file().date}; ? is unknown.{plus}"
    say(console, text, "dim")


def _waiting(text: str, *, as_json: bool) -> AbstractContextManager[object]:
    """A spinner on standard error, where a person looks on."""
    console = Console(stderr=True)
    return (
        nullcontext()
        if as_json or not console.is_terminal
        else console.status(escape(show_line(text)))
    )


def _overview_json(taken: Choice, offers: Sequence[_Offer]) -> dict[str, Any]:
    return {
        "taken": {"model": taken.model, "why": taken.why},
        "providers": [
            {**msgspec.structs.asdict(offer), "facts": _facts_json(offer.model)} for offer in offers
        ],
        "embedded": _facts_json(LOCAL_MODEL),
    }


def _provider_json(
    provider: str, listing: Listing, names: Sequence[str], model: str | None, why: str
) -> dict[str, Any]:
    return {
        "provider": provider,
        "live": listing.live,
        "problem": listing.problem.message if listing.problem is not None else None,
        "taken": {"model": model, "why": why},
        "models": [_facts_json(f"{provider}/{name}") for name in names],
    }


def _facts_json(model: str | None) -> dict[str, Any] | None:
    if model is None:
        return None
    facts = _facts(model)
    return {
        "model": model,
        "window": facts.window,
        "output_cap": facts.output_cap,
        "price_input": facts.price_input,
        "price_output": facts.price_output,
        "price_cache_read": facts.price_cache_read,
        "price_cache_write": facts.price_cache_write,
        "dearer_from": _dearer_from(facts),
    }


def _print_json(console: Console, value: dict[str, Any]) -> None:
    text = msgspec.json.format(msgspec.json.encode(value)).decode()
    if console.is_terminal:  # a program gets what the provider wrote
        text = show_visible(text)
    console.print(text, soft_wrap=True, markup=False, emoji=False, highlight=False)
