"""`towline trust`: let a project's own rules, commands and servers count."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from towline.cli.visible import show_visible
from towline.paths import find_paths
from towline_protocol import UsageError
from towline_server import Policies, Trust, load_config

__all__ = ["list_trusted", "trust_folder"]


def trust_folder(
    folder: Path,
    console: Console,
    *,
    forget: bool = False,
    yes: bool = False,
    environ: Mapping[str, str] = os.environ,
) -> int:
    """Show a folder's own files, and trust exactly these once a person says so (A5.51).

    Args:
        folder: The folder.
        console: Where to show them.
        forget: Whether to trust it no longer.
        yes: Whether the person has said so already.
        environ: The environment.

    Raises:
        UsageError: It is no folder, or there is nobody to ask.
        TowlineError: Its files can't be trusted, or that can't be kept.
    """
    if not folder.is_dir():
        raise UsageError(f"{str(folder)!r} is no folder; name the folder of a project.")
    place = str(folder.resolve())
    policies = _open_policies(environ)
    if forget:
        policies.set_trust_now(place, None)
        _say(console, f"{place} is not trusted: its own files can only make things stricter.")
        return 0
    found = policies.trust_now(place)
    _show(found, console)
    if found.trusted:
        _say(console, "These files are trusted already.")
        return 0
    if not found.files and not found.problems:
        _say(console, "There is nothing to trust here. What comes later is asked about then.")
        return 0
    if not yes and not _ask(console):
        _say(console, "Nothing was changed.")
        return 1
    policies.set_trust_now(place, found.digest)
    _say(console, "Trusted, until one of these files changes.")
    return 0


def list_trusted(console: Console, environ: Mapping[str, str] = os.environ) -> int:
    """Show the folders that a person trusts, and which of them have changed since."""
    policies = _open_policies(environ)
    trusted = policies.trusted_now()
    if not trusted:
        _say(console, "No folder is trusted.")
    for record in trusted:
        still = policies.trust_now(record.folder).trusted
        _say(console, f"{record.folder}{'' if still else '  (changed since: not trusted)'}")
    return 0


def _open_policies(environ: Mapping[str, str]) -> Policies:
    paths = find_paths(environ)
    config = load_config(paths.config_file, environ, data_dir=paths.data_dir)
    return Policies(config.data_dir, config.rules_file)


def _show(found: Trust, console: Console) -> None:
    _say(console, f"{found.folder} brings along:")
    for name in found.files:
        _say(console, f"  {name}")
    for rule in found.rules:
        _say(console, f"  rule: {rule}")
    for problem in found.problems:
        _say(console, f"  problem: {problem}")
    if found.changed:
        _say(console, "They have changed since they were trusted.")


def _ask(console: Console) -> bool:
    if not sys.stdin.isatty():
        raise UsageError("There is nobody to ask here; look at the files, then add --yes.")
    _say(console, "Rules among them may allow things, and commands and servers may start programs.")
    return console.input("Trust them? [y/N] ", markup=False).strip().lower() in ("y", "yes")


def _say(console: Console, line: str) -> None:
    console.print(escape(show_visible(line)), soft_wrap=True, highlight=False)
