"""What is kept for each provider: keys, the first one in front of its backups, and a sign-in."""

import logging
import os
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from towline.paths import Paths, find_paths
from towline.secrets.store import SecretsUnavailable
from towline.secrets.wallet import START_S, Placed, Wallet, WalletContents, open_wallet

__all__ = [
    "Kept",
    "Login",
    "edit_keys",
    "forget_login",
    "keep_key",
    "keep_login",
    "kept_secrets",
    "read_kept",
    "stored_kept",
    "stored_keys",
    "stored_login",
    "stored_providers",
]

_log: Final = logging.getLogger("towline")

_KEYS: Final = "keys"
_LOGIN: Final = "login"
_KEY_LIST: Final = tuple[str, ...]


class Login(msgspec.Struct, frozen=True, kw_only=True):
    """A sign-in as it is kept. Its `repr` shows nothing of it."""

    client_id: str = ""
    """The user's own registration; empty with a pasted access token."""
    client_secret: str | None = None
    """Its secret."""
    refresh: str | None = None
    """Gives access tokens."""
    access: str = ""
    """A pasted access token, or the one of a sign-in that has no other."""
    expires_ms: int | None = None
    """When that ends, in milliseconds since 1970; `None` when nobody knows."""
    project: str | None = None
    """The project that requests are counted for."""

    def __repr__(self) -> str:
        return "Login()"


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """What is kept for one provider. Its `repr` shows no key."""

    keys: tuple[str, ...] = ()
    """The key, then its backups."""
    login: Login | None = None
    """The sign-in."""
    unread: str | None = None
    """Why something that is kept could not be read just now, in one sentence."""
    place: str | None = None
    """Where the keys lie: `keyring` or `file`."""

    def __repr__(self) -> str:
        return f"Kept({len(self.keys)} keys)"


_looks: Final[dict[Paths, dict[str, Kept]]] = {}
"""What the one look of this process found, by where it looked."""


def read_kept(contents: WalletContents) -> dict[str, Kept]:
    """What a look into the wallet found, by provider."""
    kept: dict[str, Kept] = {}
    for name in sorted({*contents.values, *contents.unread}):
        kind, _, provider = name.partition(":")
        before = kept.get(provider, Kept())
        if name in contents.unread:
            kept[provider] = msgspec.structs.replace(before, unread=contents.unread[name])
        elif kind in (_KEYS, _LOGIN):
            kept[provider] = _with(before, kind, contents.values[name])
    for name, place in contents.places.items():
        kind, _, provider = name.partition(":")
        if kind == _KEYS and provider in kept:
            kept[provider] = msgspec.structs.replace(kept[provider], place=place)
    return kept


def kept_secrets(wallet: Wallet, provider: str) -> Kept:
    """What is kept for one provider.

    Raises:
        SecretsUnavailable: It lies in a store that cannot be used now.
    """
    kept = Kept()
    for kind in (_KEYS, _LOGIN):
        text = wallet.get(f"{kind}:{provider}")
        if text is not None:
            kept = _with(kept, kind, text)
    return kept


def keep_key(wallet: Wallet, provider: str, key: str) -> Placed:
    """Keep this key and no other for a provider.

    Raises:
        SecretsUnavailable: No store can be used.
    """
    return wallet.set(f"{_KEYS}:{provider}", msgspec.json.encode((key,)).decode())


def edit_keys(
    wallet: Wallet, provider: str, change: Callable[[tuple[str, ...]], tuple[str, ...]]
) -> Placed | None:
    """Change the keys of a provider, with nobody else in between.

    Args:
        wallet: Where they lie.
        provider: Whose they are.
        change: From the keys that are kept to those that shall be.

    Raises:
        SecretsUnavailable: They lie in a store that cannot be used now.
    """

    def edit(text: str | None) -> str | None:
        before = Kept() if text is None else _with(Kept(), _KEYS, text)
        if before.unread is not None:
            raise SecretsUnavailable(before.unread)
        keys = change(before.keys)
        return msgspec.json.encode(keys).decode() if keys else None

    return wallet.edit(f"{_KEYS}:{provider}", edit)


def keep_login(wallet: Wallet, provider: str, login: Login) -> Placed:
    """Keep a sign-in for a provider.

    Raises:
        SecretsUnavailable: No store can be used.
    """
    return wallet.set(f"{_LOGIN}:{provider}", msgspec.json.encode(login).decode())


def forget_login(wallet: Wallet, provider: str) -> None:
    """Forget the sign-in of a provider.

    Raises:
        SecretsUnavailable: It lies in a store that cannot be used now, so it is still there.
    """
    wallet.delete(f"{_LOGIN}:{provider}")


def stored_keys(provider: str, environ: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """The keys that are kept for a provider, the first one in front of its backups.

    All that is kept is looked at once a process, at the first question; the answer takes at most
    some seconds, and where nothing is kept nothing is asked. What cannot be read is said in one
    warning and counts as not there. The environment goes before these keys.

    Args:
        provider: Its name in the catalog.
        environ: Says where files lie and where the keyring is.
    """
    return _look(environ).get(provider, Kept()).keys


def stored_kept(environ: Mapping[str, str] = os.environ) -> dict[str, Kept]:
    """All that is kept, by provider; see `stored_keys`."""
    return dict(_look(environ))


def stored_login(provider: str, environ: Mapping[str, str] = os.environ) -> Login | None:
    """The sign-in that is kept for a provider; see `stored_keys`."""
    return _look(environ).get(provider, Kept()).login


def stored_providers(environ: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """The providers for which a key or a sign-in is kept and can be read; see `stored_keys`."""
    return tuple(name for name, kept in _look(environ).items() if kept.keys or kept.login)


def _look(environ: Mapping[str, str]) -> dict[str, Kept]:
    paths = find_paths(environ)
    if paths not in _looks:
        _looks[paths] = _read(environ)
    return _looks[paths]


def _read(environ: Mapping[str, str]) -> dict[str, Kept]:
    try:
        kept = read_kept(open_wallet(environ, keyring_limit_s=START_S).read())
    except SecretsUnavailable as error:
        _log.warning("Stored keys are not used: %s", error.message)
        return {}
    reasons = dict.fromkeys(one.unread for one in kept.values() if one.unread is not None)
    for reason in reasons:
        names = ", ".join(name for name, one in kept.items() if one.unread == reason)
        _log.warning("Stored keys are not used (%s): %s", names, reason)
    return kept


def _with(kept: Kept, kind: str, text: str) -> Kept:
    try:
        if kind == _KEYS:
            return msgspec.structs.replace(kept, keys=msgspec.json.decode(text, type=_KEY_LIST))
        return msgspec.structs.replace(kept, login=msgspec.json.decode(text, type=Login))
    except msgspec.DecodeError:
        # another version may have written it; setting it anew mends it
        return msgspec.structs.replace(kept, unread="What is kept is damaged; set it anew.")
