"""The files of a folder that decide what is allowed, or what is started for it (A5.49 to A5.54)."""

import hashlib
import os
import stat
import tomllib
from pathlib import Path
from typing import Any, Final, cast

import msgspec

from towline_agent import Rule, parse_rule
from towline_protocol import UsageError

__all__ = ["CONTROL_FOLDER", "RULES_FILE", "Control", "RuleFile", "parse_rules", "read_control"]

CONTROL_FOLDER: Final = ".towline"
"""All in this folder of a project counts: rules, servers, commands, skills."""
RULES_FILE: Final = "permissions.toml"
"""The rules, in that folder or beside the user's `config.toml`."""

_LONE_FILES: Final = (".mcp.json",)
"""Files outside of that folder that start programs too."""
_MAX_FILES: Final = 500
"""Files that a person could look through before they trust them."""
_MAX_BYTES: Final = 8 * 2**20
"""Bytes of all of them together."""
_OPEN: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
"""A pipe in a file's place must not hold the reader up."""


class RuleFile(msgspec.Struct, frozen=True):
    """What a file of rules says."""

    rules: tuple[Rule, ...] = ()
    """The rules that can be read."""
    problems: tuple[str, ...] = ()
    """A sentence for each thing in it that can't."""


class Control(msgspec.Struct, frozen=True, kw_only=True):
    """The control files of one folder, read once: what is hashed is what is used."""

    files: dict[str, bytes]
    """Path to content, sorted by path."""
    digest: str
    """SHA-256 in hex over paths and contents: the same only for the same files."""
    problems: tuple[str, ...] = ()
    """What keeps the folder from being trusted: files that can't be read whole."""

    @property
    def rules(self) -> RuleFile:
        """The project's rules."""
        name = f"{CONTROL_FOLDER}/{RULES_FILE}"
        raw = self.files.get(name)
        return RuleFile() if raw is None else parse_rules(raw, name)


def parse_rules(raw: bytes, name: str) -> RuleFile:
    """The rules of a file such as `rules = ["allow shell(pytest)", "deny read_file(**/*.key)"]`.

    Args:
        raw: Its content.
        name: What it is called, for messages.
    """
    try:
        table: dict[str, Any] = tomllib.loads(raw.decode())
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        return RuleFile(problems=(f"{name!r} can't be read ({error}); mend it.",))
    problems = [
        f"{name!r} has the key {key!r}, which means nothing; the one key is `rules`."
        for key in table
        if key != "rules"
    ]
    texts = table.get("rules", [])
    if not isinstance(texts, list):
        return RuleFile(problems=(*problems, f"In {name!r} `rules` is no list of texts."))
    rules: list[Rule] = []
    for text in cast("list[object]", texts):
        try:
            rules.append(parse_rule(text if isinstance(text, str) else repr(text)))
        except UsageError as error:
            problems.append(f"In {name!r}: {error.message}")
    return RuleFile(tuple(rules), tuple(problems))


def read_control(folder: Path) -> Control:
    """The control files of a folder as they are now. It blocks."""
    reader = _Reader(folder)
    for name in _LONE_FILES:
        reader.read(folder / name)
    top = folder / CONTROL_FOLDER
    if top.is_symlink() or (top.exists() and not top.is_dir()):
        reader.problems.append(f"{CONTROL_FOLDER!r} is no ordinary folder.")
    elif top.is_dir():
        reader.walk(top)
    files = dict(sorted(reader.files.items()))
    state = hashlib.sha256()
    for name, raw in files.items():
        for part in (name.encode(errors="surrogateescape"), raw):
            state.update(b"%d:" % len(part))
            state.update(part)
    return Control(files=files, digest=state.hexdigest(), problems=tuple(reader.problems))


class _Reader:
    """Collects files, within bounds."""

    def __init__(self, folder: Path) -> None:
        self.files: dict[str, bytes] = {}
        self.problems: list[str] = []
        self._folder = folder
        self._left = _MAX_BYTES

    def walk(self, top: Path) -> None:
        """Read all files below a folder; a link to a folder is not followed."""
        for at, folders, names in os.walk(top, onerror=self._note):
            folders.sort()
            here = Path(at)
            for name in folders:
                if (here / name).is_symlink():
                    self.problems.append(f"{self._name(here / name)!r} is a link to a folder.")
            for name in sorted(names):
                if len(self.files) >= _MAX_FILES:
                    self.problems.append(f"There are more than {_MAX_FILES} files.")
                    return
                self.read(here / name)

    def read(self, path: Path) -> None:
        """Read a file, if it is there; a link may lead to another file of the folder alone."""
        if not _leads_to(path).is_relative_to(_leads_to(self._folder)):
            self.problems.append(f"{self._name(path)!r} is a link that leads out of the folder.")
            return
        try:
            fd = os.open(path, _OPEN)
        except FileNotFoundError:
            if path.is_symlink():
                self.problems.append(f"{self._name(path)!r} is a link that leads nowhere.")
            return
        except OSError as error:
            self._note(error)
            return
        with open(fd, "rb") as file:  # noqa: PTH123 - it is open already
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                self.problems.append(f"{self._name(path)!r} is no ordinary file.")
                return
            raw = file.read(self._left + 1)
        if len(raw) > self._left:
            self.problems.append(f"The files hold more than {_MAX_BYTES // 2**20} MiB.")
            return
        self._left -= len(raw)
        self.files[self._name(path)] = raw

    def _note(self, error: OSError) -> None:
        name = self._name(Path(str(error.filename)))
        self.problems.append(f"{name!r} can't be read ({error.strerror}).")

    def _name(self, path: Path) -> str:
        return path.relative_to(self._folder).as_posix()


def _leads_to(path: Path) -> Path:
    """Where a path leads, links followed; one that goes round in a circle stays as it is."""
    return Path(os.path.realpath(path))
