"""`towline keys`: what is kept for each provider (A2.75).

A key is shown as its last four characters only (A2.76).
"""

import os
from collections.abc import Mapping

from rich.console import Console
from rich.markup import escape

from towline.cli.command import command_name, name_command
from towline.cli.secret_input import read_secret
from towline.cli.tell import tell_server
from towline.cli.visible import show_visible
from towline.providers.key_trial import KeyVerdict, try_key, try_login
from towline.providers.names import find_provider, held_setting
from towline.secrets import (
    Kept,
    Placed,
    add_key,
    check_secret,
    edit_keys,
    forget_login,
    keep_key,
    kept_secrets,
    login_credential,
    open_wallet,
    read_kept,
)
from towline_agent import VENDORS, show_key, vendor_keys
from towline_protocol import UsageError

__all__ = ["list_keys", "remove_keys", "say_place", "set_key", "try_keys"]


def set_key(
    named: str, console: Console, *, add: bool, environ: Mapping[str, str] = os.environ
) -> int:
    """Read a key and keep it for a provider, in place of its others or behind them.

    Raises:
        ProviderNotFound: There is no such provider.
        UsageError: That is no key.
        SecretsUnavailable: Nothing can be kept here.
    """
    provider = find_provider(named)
    key = check_secret(read_secret(f"Key for {provider}"))
    wallet, rank = open_wallet(environ), 0
    if add:
        advice = f"remove one with `{command_name()} keys remove {provider} --last4 XXXX`"
        placed, rank = add_key(wallet, provider, key, advice=advice)
    else:
        placed = keep_key(wallet, provider, key)
    if rank is None:
        _say(console, f"The key {show_key(key)} is kept for {provider} already.")
        return 0
    behind = f" as backup {rank}" if rank else ""
    _say(console, f"Kept the key {show_key(key)} for {provider}{behind} in {placed.title}.")
    say_place(console, placed, provider, environ)
    _say_environment(console, provider, environ)
    return 0


def say_place(console: Console, placed: Placed, provider: str, environ: Mapping[str, str]) -> None:
    """Say, in one line, why something lies where it does and who sees it."""
    told = tell_server(provider, environ)
    text = " ".join(filter(None, ("" if placed.preferred else placed.why, told)))
    if text:
        _say(console, text)


def list_keys(console: Console, environ: Mapping[str, str] = os.environ) -> int:
    """Say where secrets are kept and show what is there."""
    wallet = open_wallet(environ)
    kept = read_kept(wallet.read())
    placed = wallet.place()
    _say(console, f"Secrets are kept in {placed.title}. Why there: {placed.why}")
    for provider, one in kept.items():
        for line in _lines(one):
            _say(console, f"  {provider:<12} {line}")
    if not kept:
        _say(console, f"None are kept yet; `{command_name()} keys set PROVIDER` keeps one.")
    for vendor in VENDORS:
        _say_environment(console, vendor, environ)
    return 0


def remove_keys(
    named: str,
    console: Console,
    *,
    last4: str | None,
    environ: Mapping[str, str] = os.environ,
) -> int:
    """Forget what is kept for a provider, or the one key that ends so.

    Raises:
        UsageError: Nothing of the kind is kept.
        SecretsUnavailable: It lies where nothing can be removed now.
    """
    provider = find_provider(named)
    wallet = open_wallet(environ)
    kept = kept_secrets(wallet, provider)
    ending = None if last4 is None else last4.strip().removeprefix("…")
    gone = tuple(key for key in kept.keys if ending is None or show_key(key) == f"…{ending}")
    login = kept.login if ending is None else None
    if not gone and login is None:
        names = sorted({name.partition(":")[2] for name in wallet.names()})
        what = "Nothing" if ending is None else f"No key that ends in {ending!r}"
        there = f"kept is something for: {', '.join(names)}" if names else "nothing is kept at all"
        raise UsageError(f"{what} is kept for {provider!r}; {there}.")
    if gone:
        edit_keys(wallet, provider, lambda keys: tuple(key for key in keys if key not in gone))
        _say(console, f"Removed from {provider}: {', '.join(map(show_key, gone))}.")
    if login is not None:
        forget_login(wallet, provider)
        _say(console, f"Removed the sign-in for {provider}.")
    told = tell_server(provider, environ, removed=True)
    if told:
        _say(console, told)
    _say_environment(console, provider, environ)
    return 0


async def try_keys(named: str, console: Console, environ: Mapping[str, str] = os.environ) -> int:
    """Ask a provider for its models with each of its keys, and say which work.

    Returns:
        1 when one does not.

    Raises:
        UsageError: There is no such provider, or no key for it.
        SecretsUnavailable: The keys cannot be read now.
    """
    provider = find_provider(named)
    kept = kept_secrets(open_wallet(environ), provider)
    given = vendor_keys(VENDORS[provider], environ)
    keys = {**dict.fromkeys(kept.keys, "kept"), **dict.fromkeys(given, "from the environment")}
    if not keys and kept.login is None:
        raise UsageError(
            f"There is no key for {provider!r}; `{command_name()} keys set {provider}` keeps one."
        )
    verdicts: list[KeyVerdict] = []
    for key, source in keys.items():
        verdicts.append(await try_key(provider, key, environ))
        _say(console, f"{show_key(key)} ({source}): {verdicts[-1].text}")
    if kept.login is not None:
        credential = login_credential(provider, kept.login, environ)
        verdicts.append(await try_login(credential))
        _say(console, f"sign-in (kept): {verdicts[-1].text}")
    return 0 if all(verdict.good for verdict in verdicts) else 1


def _lines(kept: Kept) -> list[str]:
    lines = [
        f"{show_key(key)}{f'  backup {rank}' if rank else ''}" for rank, key in enumerate(kept.keys)
    ]
    if kept.login is not None:
        project = f", project {kept.login.project}" if kept.login.project else ""
        lines.append(f"signed in{project}")
    if kept.unread is not None:
        lines.append(f"cannot be read now: {kept.unread}")
    return lines


def _say_environment(console: Console, provider: str, environ: Mapping[str, str]) -> None:
    held = held_setting(provider, environ)
    if held is not None:
        _say(console, f"{held} is set, and goes before what is kept for {provider}.")


def _say(console: Console, text: str) -> None:
    console.print(
        escape(show_visible(name_command(text))), soft_wrap=True, highlight=False, emoji=False
    )
