"""What `.gitignore` files leave out of a walk (A5.4)."""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final, NamedTuple

__all__ = ["IGNORE_FILE", "IGNORE_MAX_BYTES", "Ignore"]

IGNORE_FILE: Final = ".gitignore"
"""What a file with patterns is called."""
IGNORE_MAX_BYTES: Final = 256 * 1024
"""Bytes of one such file; what is larger is none that a person wrote, and is not heeded."""

_CLASSES: Final = {
    "[:alnum:]": "a-zA-Z0-9",
    "[:alpha:]": "a-zA-Z",
    "[:digit:]": "0-9",
    "[:lower:]": "a-z",
    "[:space:]": r"\s",
    "[:upper:]": "A-Z",
    "[:xdigit:]": "0-9a-fA-F",
}
_CLASS: Final = re.compile(
    r"\[(?P<not>[!^]?)(?P<body>\]?(?:\[:[a-z]+:\]|\\.|[^\]\\])*)\]", re.DOTALL
)
_MEMBER: Final = re.compile(
    r"(?P<named>\[:[a-z]+:\])|(?P<low>\\.|[^\\])(?:-(?P<high>\\.|[^\\\]]))?", re.DOTALL
)


class _Rule(NamedTuple):
    regex: re.Pattern[str]
    leaves_out: bool
    by_name: bool
    folders_only: bool


class _Rules(NamedTuple):
    """The patterns of one file. That none of them fits, as is usual, is found out in one go."""

    rules: tuple[_Rule, ...]
    names: re.Pattern[str] | None
    paths: re.Pattern[str] | None

    def judge(self, path: str, name: str, *, is_dir: bool) -> bool | None:
        """Whether it is left out; `None` when no pattern fits."""
        names, paths = self.names, self.paths
        if not (names and names.fullmatch(name)) and not (paths and paths.fullmatch(path)):
            return None
        for rule in reversed(self.rules):
            if rule.folders_only and not is_dir:
                continue
            if rule.regex.fullmatch(name if rule.by_name else path):
                return rule.leaves_out
        return None


class Ignore:
    """What is left out in a folder, by its own patterns and those of the folders above.

    The deepest file with a pattern that fits decides, in it the last one, as git has it.
    """

    def __init__(self, above: "Ignore | None" = None, prefix: int = 0, text: str = "") -> None:
        self._prefix = prefix
        self._rules = _parse(text)
        self._above = above

    def within(self, folder: str, text: str | None) -> "Ignore":
        """The same for a folder below.

        Args:
            folder: Its path from the top, as `leaves_out` gets paths; empty for the top itself.
            text: What its file with patterns holds; `None` when it has none.
        """
        return Ignore(self, len(folder) + 1 if folder else 0, text) if text else self

    def leaves_out(self, path: str, name: str, *, is_dir: bool) -> bool:
        """Whether something is left out; it stands in a folder that is not.

        Args:
            path: Its path from the top.
            name: The last name of it.
            is_dir: Whether it is a folder.
        """
        level: Ignore | None = self
        while level is not None:
            if level._rules.rules:
                verdict = level._rules.judge(path[level._prefix :], name, is_dir=is_dir)
                if verdict is not None:
                    return verdict
            level = level._above
        return False


@lru_cache(maxsize=256)
def _parse(text: str) -> _Rules:
    rules = tuple(rule for line in text.split("\n") if (rule := _read_line(line)) is not None)
    return _Rules(rules, _any_of(rules, by_name=True), _any_of(rules, by_name=False))


def _any_of(rules: tuple[_Rule, ...], *, by_name: bool) -> re.Pattern[str] | None:
    sources = {f"(?:{rule.regex.pattern})": 0 for rule in rules if rule.by_name is by_name}
    return re.compile("|".join(sources), re.DOTALL) if sources else None


def _read_line(line: str) -> _Rule | None:
    """The rule of a line; `None` when it has none, or one that nothing can fit."""
    line = _without_spaces(line.removesuffix("\r"))
    if not line or line.startswith("#"):
        return None
    leaves_out = not line.startswith("!")
    pattern = line if leaves_out else line[1:]
    folders_only = pattern.endswith("/")
    pattern = pattern.removesuffix("/")
    by_name = "/" not in pattern
    try:
        source = _translate(pattern.removeprefix("/"), by_name=by_name)
    except ValueError:
        return None
    if not source:
        return None
    return _Rule(re.compile(source, re.DOTALL), leaves_out, by_name, folders_only)


def _without_spaces(line: str) -> str:
    """A line without the spaces at its end, but with one that a backslash keeps."""
    bare = line.rstrip(" ")
    slashes = len(bare) - len(bare.rstrip("\\"))
    return f"{bare} " if slashes % 2 and bare != line else bare


def _translate(pattern: str, *, by_name: bool) -> str:
    """A pattern as a regular expression for the whole of a name or path.

    What stands between two stars is taken where it comes first and never looked for again, which
    is enough, so that no pattern takes longer than its length times the path's.
    """
    if by_name:
        return _translate_name(pattern)
    groups: list[list[str]] = [[]]
    for name in pattern.split("/"):
        if name == "**":
            groups.append([])
        else:
            groups[-1].append(_translate_name(name))
    first, *more = ["/".join(group) for group in groups]
    if not more:
        return first
    *middle, last = more
    pieces = [f"{first}/" if first else ""]
    pieces += [f"(?>(?:[^/]+/)*?{group}/)" for group in middle if group]
    pieces.append(f"(?:[^/]+/)*{last}" if last else ".+")
    return "".join(pieces)


def _translate_name(glob: str) -> str:
    """A glob for one name; raises `ValueError` when nothing can fit it."""
    parts: list[str] = [""]
    for piece in _pieces(glob):
        if piece != "*":
            parts[-1] += piece
        elif len(parts) == 1 or parts[-1]:
            parts.append("")
    first, *more = parts
    if not more:
        return first
    *middle, last = more
    return first + "".join(f"(?>[^/]*?{part})" for part in middle) + f"[^/]*{last}"


def _pieces(glob: str) -> Iterator[str]:
    at = 0
    while at < len(glob):
        char = glob[at]
        at += 1
        if char == "*":
            yield "*"
        elif char == "?":
            yield "[^/]"
        elif char == "\\":
            if at == len(glob):
                raise ValueError("a backslash without a character after it")
            yield re.escape(glob[at])
            at += 1
        elif char == "[":
            found = _CLASS.match(glob, at - 1)
            if found is None:
                raise ValueError("a class without an end")
            yield _translate_class(found["body"], negated=bool(found["not"]))
            at = found.end()
        else:
            yield re.escape(char)


def _translate_class(body: str, *, negated: bool) -> str:
    members: list[str] = []
    for member in _MEMBER.finditer(body):
        if member["named"]:
            if member["named"] not in _CLASSES:
                raise ValueError("a class that git does not know")
            members.append(_CLASSES[member["named"]])
            continue
        low = member["low"][-1]
        high = (member["high"] or low)[-1]
        if low <= high:
            members.append(f"{re.escape(low)}-{re.escape(high)}")
    if negated:
        return f"[^/{''.join(members)}]"
    return f"(?!/)[{''.join(members)}]" if members else "(?!)"
