"""`towline doctor`: whether this machine and its store are as they should be."""

import contextlib
import os
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec
from rich.console import Console
from rich.text import Text

from towline.cli.command import command_name, name_command
from towline.cli.environment import ask_providers, check_environment, read_config
from towline.cli.visible import show_visible
from towline.paths import find_paths
from towline_agent import Clock, SystemClock, Transport, mint_now
from towline_server import (
    Finding,
    Repaired,
    StoreError,
    StoreLocked,
    copy_store,
    examine_store,
    repair_store,
)

__all__ = ["CANNOT", "CLEAN", "FOUND", "copy", "examine", "repair"]

CLEAN: Final = 0
"""The exit code when nothing is broken; warnings may have been told."""
FOUND: Final = 1
"""The exit code when something is."""
CANNOT: Final = 2
"""The exit code when it could not be looked at, copied or mended."""

_STYLES: Final = {"ok": "green", "warning": "yellow", "fault": "bold red"}
_WIDTH: Final = 9  # of the longest level and a space


class _Report(msgspec.Struct, frozen=True, kw_only=True):
    """What `--json` prints of a look."""

    faults: int
    warnings: int
    findings: list[Finding]


async def examine(
    console: Console,
    *,
    online: bool = False,
    as_json: bool = False,
    environ: Mapping[str, str] = os.environ,
    clock: Clock | None = None,
    transport: Transport | None = None,
) -> int:
    """Look at the machine and the store, and say each thing in a line. Changes nothing.

    Args:
        console: Where to say it.
        online: Whether to ask each provider that has a key, once.
        as_json: Whether a program reads it.
        environ: The environment.
        clock: Time.
        transport: Who asks the providers; `None` for the process's own.

    Returns:
        `CLEAN`, `FOUND` or `CANNOT`.
    """
    now_ms = (clock or SystemClock()).now_ms()
    paths = find_paths(environ)
    config, told = read_config(paths, environ)
    found = [told]
    page = _Page(console, silent=as_json)
    page.say(told)
    found += map(page.say, check_environment(paths, config, environ))
    if online:
        found += map(page.say, await ask_providers(environ, transport=transport))
    try:
        found += page.follow(
            examine_store(config.data_dir, now_ms=now_ms, on_progress=page.note_progress)
        )
    except StoreError as error:
        page.refuse(error.message)
        return CANNOT
    counts = Counter(one.level for one in found)
    if as_json:
        page.print_json(_Report(faults=counts["fault"], warnings=counts["warning"], findings=found))
    else:
        page.sum_up(found)
    return FOUND if counts["fault"] else CLEAN


def repair(
    console: Console,
    *,
    as_json: bool = False,
    environ: Mapping[str, str] = os.environ,
    clock: Clock | None = None,
) -> int:
    """Mend the store, and say what was done, where the copy lies and what is left.

    Args:
        console: Where to say it.
        as_json: Whether a program reads it.
        environ: The environment.
        clock: Time.

    Returns:
        `CLEAN`, `FOUND` when something is left, or `CANNOT`.
    """
    now_ms = (clock or SystemClock()).now_ms()
    config, told = read_config(find_paths(environ), environ)
    page = _Page(console, silent=as_json)
    if told.level == "fault":  # it may name another data folder
        page.refuse(told.message)
        return CANNOT
    try:
        with page.waiting():
            repaired = repair_store(
                config.data_dir, now_ms=now_ms, mint=mint_now, on_progress=page.note_progress
            )
    except StoreLocked as error:
        page.refuse(f"{error.message} `{command_name()} stop` stops your own server.")
        return CANNOT
    except StoreError as error:
        page.refuse(error.message)
        return CANNOT
    if as_json:
        page.print_json(repaired)
    else:
        page.tell_repair(repaired)
    return FOUND if any(one.level == "fault" for one in repaired.left) else CLEAN


def copy(console: Console, target: Path, *, environ: Mapping[str, str] = os.environ) -> int:
    """Write a copy of the store, whether a server runs or not.

    Args:
        console: Where to say it.
        target: The file to write.
        environ: The environment.

    Returns:
        `CLEAN` or `CANNOT`.
    """
    config, told = read_config(find_paths(environ), environ)
    page = _Page(console)
    if told.level == "fault":
        page.refuse(told.message)
        return CANNOT
    try:
        copy_store(config.data_dir, target, mint=mint_now)
    except StoreError as error:
        page.refuse(error.message)
        return CANNOT
    page.print(
        f"The store is copied to {str(target)!r}. To go back to it, stop the server and put it in "
        f"the place of towline.db in {str(config.data_dir)!r}; towline.db-wal and towline.db-shm "
        "there must be moved away with the old file."
    )
    return CLEAN


class _Page:
    """Lines on a terminal, or nothing but JSON."""

    def __init__(self, console: Console, *, silent: bool = False) -> None:
        self._console = console
        self._silent = silent
        self._status = console.status("Looking…")
        self._lively = console.is_terminal and not silent

    def say(self, one: Finding) -> Finding:
        """A finding as a line, with what a repair would do."""
        if self._silent:
            return one
        line = Text(f"{one.level:<{_WIDTH}}", style=_STYLES[one.level])
        line.append(show_visible(name_command(one.message)), style="")
        if one.repair:
            line.append(f" A repair would {show_visible(one.repair)}.", style="dim")
        self._print(line)
        return one

    def follow(self, findings: Iterable[Finding]) -> Iterator[Finding]:
        """Say each as it comes, with the progress in between."""
        with self.waiting():
            for one in findings:
                yield self.say(one)

    @contextlib.contextmanager
    def waiting(self) -> Generator[None]:
        """Show how far a long look is, on a terminal."""
        with self._status if self._lively else contextlib.nullcontext():
            yield

    def note_progress(self, what: str, done: int, total: int) -> None:
        """A look is so far."""
        if self._lively:
            self._status.update(f"Looking at the {what}: {done} of {total}")

    def refuse(self, message: str) -> None:
        """What kept it from looking, copying or mending."""
        if self._silent:
            self.print_json(_Refused(error=message))
        else:
            said = show_visible(name_command(message))
            self._print(Text.assemble(("cannot   ", "bold red"), said))

    def sum_up(self, found: list[Finding]) -> None:
        """One sentence on all of it, and the next step."""
        faults = sum(one.level == "fault" for one in found)
        warnings = sum(one.level == "warning" for one in found)
        mendable = sum(bool(one.repair) for one in found)
        self.print("")
        if not faults and not warnings:
            self.print("All is as it should be.")
            return
        self.print(f"{faults} fault(s), {warnings} warning(s).")
        if mendable:
            again = command_name()
            self.print(
                f"`{again} doctor --repair` mends {mendable} of them, after a copy of the store is "
                f"made. Stop the server before: `{again} stop`."
            )

    def tell_repair(self, repaired: Repaired) -> None:
        """What was done, and what is left."""
        if not repaired.found and not repaired.left:
            self.print("There is nothing to mend.")
            return
        for said in repaired.done:
            self.print(said)
        if repaired.copy is not None:
            self.print(f"The store as it was before is kept at {str(repaired.copy)!r}.")
        if repaired.damaged is not None:
            self.print(f"The damaged file is kept at {str(repaired.damaged)!r}.")
        if repaired.left:
            self.print("What could not be mended:")
            for one in repaired.left:
                self.say(one)
        else:
            self.print("The store is whole now.")

    def print(self, text: str) -> None:
        """A sentence."""
        self._print(Text(show_visible(text)))

    def print_json(self, value: msgspec.Struct) -> None:
        """A value for a program."""
        encoded = msgspec.json.encode(value, enc_hook=str)
        text = msgspec.json.format(encoded).decode()
        self._print(Text(show_visible(text) if self._console.is_terminal else text))

    def _print(self, text: Text) -> None:
        self._console.print(text, soft_wrap=True, highlight=False)


class _Refused(msgspec.Struct, frozen=True, kw_only=True):
    """What `--json` prints when it could not look, copy or mend."""

    error: str
