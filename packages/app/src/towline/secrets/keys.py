"""The rules of the keys that are kept, whoever sets them: a command or an operation."""

from typing import Final

from towline.secrets.provider import edit_keys
from towline.secrets.wallet import Placed, Wallet
from towline_agent import show_key
from towline_protocol import UsageError

__all__ = ["MAX_KEYS", "add_key", "check_secret", "set_keys"]

MAX_KEYS: Final = 16
"""Keys of one provider: each is a backup of the one before it, and nobody has more accounts."""
_MAX_CHARS: Final = 16 * 1024
"""The longest tokens have a few thousand; more is another file."""


def check_secret(text: str) -> str:
    """The text, if a header can carry it.

    Raises:
        UsageError: It holds what no key does. The message does not repeat it.
    """
    if len(text) > _MAX_CHARS:
        raise UsageError("What came is far too long for a key; give the key alone.")
    if not all("!" <= char <= "~" for char in text):
        raise UsageError(
            "That is no key: it holds white space, line ends or letters that no key has. Copy the "
            "key alone, without quotes and names around it."
        )
    return text


def add_key(wallet: Wallet, provider: str, key: str, *, advice: str) -> tuple[Placed, int | None]:
    """Keep a key as a backup behind the others.

    Args:
        wallet: Where it goes.
        provider: Whose it is.
        key: The key.
        advice: What a person can do when there are too many, as a part of a sentence.

    Returns:
        Where it lies now, and how many are before it; `None` when it was there already.

    Raises:
        UsageError: There are too many.
        SecretsUnavailable: They lie in a store that cannot be used now.
    """
    rank: int | None = None

    def append(keys: tuple[str, ...]) -> tuple[str, ...]:
        nonlocal rank
        if key in keys:
            return keys
        _check_count(provider, len(keys) + 1, advice)
        rank = len(keys)
        return (*keys, key)

    placed = edit_keys(wallet, provider, append)
    assert placed is not None  # there is at least one key
    return placed, rank


def set_keys(
    wallet: Wallet, provider: str, key: str | None, backups: tuple[str, ...] | None
) -> Placed | None:
    """Keep a key in front, or other backups, or both; `None` leaves them as they are.

    Raises:
        UsageError: One is no key, there are too many, or there would be backups of nothing.
        SecretsUnavailable: They lie in a store that cannot be used now.
    """
    first = None if key is None else _checked(key)

    def change(keys: tuple[str, ...]) -> tuple[str, ...]:
        front = keys[:1] if first is None else (first,)
        rest = keys[1:] if backups is None else tuple(_kept_or_new(one, keys) for one in backups)
        if rest and not front:
            raise UsageError(f"There is no key for {provider!r} to back up; send a `key` too.")
        fresh = tuple(dict.fromkeys((*front, *rest)))
        _check_count(provider, len(fresh), "send fewer `backup_keys`")
        return fresh

    return edit_keys(wallet, provider, change)


def _kept_or_new(key: str, kept: tuple[str, ...]) -> str:
    """A key; one that is written as a list shows it (`…1234`) is the kept one."""
    if not key.startswith("…"):
        return _checked(key)
    found = [one for one in kept if show_key(one) == key]
    if len(found) != 1:
        raise UsageError(
            f"No one key that is kept is shown as {key!r}; read the provider again, or send the "
            "whole key."
        )
    return found[0]


def _checked(key: str) -> str:
    text = key.strip()
    if not text:
        raise UsageError("A key is empty; leave it out, or send the key.")
    return check_secret(text)


def _check_count(provider: str, count: int, advice: str) -> None:
    if count > MAX_KEYS:
        raise UsageError(
            f"{MAX_KEYS} keys are the most that can be kept for {provider!r}; {advice}."
        )
