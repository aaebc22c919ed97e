"""Whether a key works, found out by asking its provider for the models (A2.75)."""

import secrets
from collections.abc import Mapping

import msgspec

from towline_agent import (
    VENDORS,
    AuthenticationFailed,
    Credential,
    Listing,
    ProviderError,
    Transport,
    list_models,
)

__all__ = ["KeyVerdict", "try_key", "try_login"]


class KeyVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one try."""

    good: bool
    """Whether the key works, as far as can be told."""
    text: str
    """One sentence."""
    models: tuple[str, ...] = ()
    """What the provider offers, as far as it has said."""
    problem: ProviderError | None = None
    """What it was refused with."""


async def try_key(
    provider: str, key: str, environ: Mapping[str, str], *, transport: Transport | None = None
) -> KeyVerdict:
    """Ask a provider for its models with a key.

    Args:
        provider: Its name in the catalog.
        key: The key.
        environ: Where its address is looked up.
        transport: Who asks; `None` for the process's own.

    Raises:
        UsageError: The provider has no address.
    """
    title = VENDORS[provider].title
    listing = await _ask(provider, key, environ, transport)
    problem = listing.problem
    if isinstance(problem, AuthenticationFailed):
        status = f" (status {problem.status})" if problem.status is not None else ""
        text = f"does not work: {title} does not accept it{status}."
        return KeyVerdict(good=False, text=text, problem=problem)
    if problem is not None:
        text = f"could not be tried. {problem.message}"
        return KeyVerdict(good=False, text=text, problem=problem)
    # some lists are public: then a key that nobody has gets it too
    nobodys = secrets.token_hex(16)
    if not listing.live or (await _ask(provider, nobodys, environ, transport)).live:
        return KeyVerdict(
            good=True,
            text=f"cannot be told: {title} has no list of models that only a key opens. Whether "
            "it is valid shows with the first prompt.",
            models=listing.models,
        )
    text = f"works; {title} offers {len(listing.models)} models."
    return KeyVerdict(good=True, text=text, models=listing.models)


async def try_login(credential: Credential) -> KeyVerdict:
    """Ask a sign-in for a fresh token."""
    try:
        await credential.token()
    except ProviderError as error:
        return KeyVerdict(good=False, text=error.message, problem=error)
    return KeyVerdict(good=True, text="works; it gives an access token.")


async def _ask(
    provider: str, key: str, environ: Mapping[str, str], transport: Transport | None
) -> Listing:
    """The list that this very key opens: those of the environment would go before it."""
    settings = VENDORS[provider].key_settings
    shut = {name for setting in settings for name in (setting, f"{setting}S")}
    rest = {name: value for name, value in environ.items() if name not in shut}
    return await list_models(provider, rest, stored={provider: (key,)}, transport=transport)
