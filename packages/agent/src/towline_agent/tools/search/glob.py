"""Globs over paths (A5.T2)."""

import re
from collections.abc import Callable
from typing import Final

from towline_agent.errors import ToolInputInvalid

__all__ = ["compile_glob", "expand_braces", "name_globs"]

_GLOB_CHARS: Final = 1000
_BRACES_MAX: Final = 64
"""Globs that one with braces may stand for."""
_ANY_DEPTH: Final = "**"
_BRACES: Final = re.compile(r"\{([^{}]*)\}")
_PLAIN_NAME: Final = re.compile(r"[\w.*?+@ -]+")
"""What a glob of names holds when every reader of globs takes it the same way."""


def compile_glob(glob: str) -> Callable[[str], bool]:
    """A test of paths that are relative to the folder that is searched.

    `*` and `?` stay within a name, `**` stands for any number of folders, `[a-z]` and `[!a-z]` for
    one character, `{a,b}` for one of several. A glob without `/` looks at names at any depth. No
    path takes longer than its length times the glob's.

    Raises:
        ToolInputInvalid: It can't be read.
    """
    globs = [one for one in map(_bare, expand_braces(glob)) if one.strip("/")]
    if not globs:
        raise ToolInputInvalid(f"{glob[:80]!r} is no glob; write one such as 'src/**/*.py'.")
    try:
        found = [re.compile(_translate(one)).fullmatch for one in globs]
    except re.error as error:
        raise ToolInputInvalid(
            f"{glob!r} can't be read as a glob ({error}); close each '['."
        ) from error
    if len(found) == 1:
        (only,) = found
        return lambda path: only(path) is not None
    return lambda path: any(match(path) for match in found)


def expand_braces(glob: str) -> list[str]:
    """The globs that one with braces stands for.

    Raises:
        ToolInputInvalid: There are too many.
    """
    if len(glob) > _GLOB_CHARS:
        raise ToolInputInvalid(f"{glob[:80]!r} … is too long for a glob; use a shorter one.")
    done: list[str] = []
    waiting = [glob]
    while waiting:
        one = waiting.pop()
        braces = _BRACES.search(one)
        if braces is None:
            done.append(one)
        else:
            head, tail = one[: braces.start()], one[braces.end() :]
            waiting += [f"{head}{part}{tail}" for part in reversed(braces[1].split(","))]
        if len(done) + len(waiting) > _BRACES_MAX:
            raise ToolInputInvalid(f"{glob[:80]!r} stands for too many globs; use fewer braces.")
    return done


def name_globs(glob: str) -> list[str] | None:
    """Globs of names, without folders, that every match of a glob has; `None` when none is sure."""
    globs = [one.rstrip("/") for one in map(_bare, expand_braces(glob))]
    names = [one.rpartition("/")[2] for one in globs if one]
    is_sure = all(_PLAIN_NAME.fullmatch(name) and name != _ANY_DEPTH for name in names)
    return names if is_sure else None


def _bare(glob: str) -> str:
    return glob.removeprefix("./")


def _translate(glob: str) -> str:
    parts = [part for part in glob.split("/") if part]
    if "/" not in glob.rstrip("/"):
        parts = [_ANY_DEPTH, *parts]
    pieces: list[str] = []
    for place, part in enumerate(parts):
        is_last = place == len(parts) - 1
        if part == _ANY_DEPTH:
            if is_last:
                pieces.append(".+")
            elif parts[place + 1] != _ANY_DEPTH:
                pieces.append(_depth(parts, place))
        elif _ANY_DEPTH not in parts[:place]:
            pieces.append(_name(part) + ("" if is_last else "/"))
    return "(?s:" + "".join(pieces) + ")"


def _depth(parts: list[str], place: int) -> str:
    """Folders of any depth and the names after them, up to the next such place.

    The first fit is kept: names of a fixed number that fit earlier leave more for what follows. So
    nothing is tried twice, however many stars there are.
    """
    rest = parts[place + 1 :]
    names = rest[: rest.index(_ANY_DEPTH)] if _ANY_DEPTH in rest else rest
    fixed = "/".join(map(_name, names))
    if _ANY_DEPTH in rest:
        return f"(?>(?:[^/]+/)*?{fixed}/)"
    return f"(?:[^/]+/)*{fixed}"


def _name(glob: str) -> str:
    """One name; each star but the last takes as little as it can and keeps it."""
    pieces = re.split(r"\*+", glob)
    if len(pieces) == 1:
        return _chars(glob)
    first, *middle, last = map(_chars, pieces)
    kept = "".join(f"(?>[^/]*?{piece})" for piece in middle)
    whole = f"{first}{kept}[^/]*{last}"
    return f"(?=[^/]){whole}" if not first else whole


def _chars(text: str) -> str:
    """Characters, `?` and classes of a glob as those of a regex."""
    pieces: list[str] = []
    at = 0
    while at < len(text):
        char = text[at]
        end = text.find("]", at + 2 + text.startswith("!", at + 1)) if char == "[" else -1
        if end > 0:
            inner = text[at + 1 : end].replace("\\", "\\\\").replace("[", "\\[")
            inner = re.sub(r"([-&|~])\1", r"\1\\\1", inner)  # no set operation is meant
            inner = f"^{inner[1:]}" if inner[0] in "!^" else inner
            pieces.append(f"(?!/)[{inner}]")
            at = end
        else:
            pieces.append("[^/]" if char == "?" else re.escape(char))
        at += 1
    return "".join(pieces)
