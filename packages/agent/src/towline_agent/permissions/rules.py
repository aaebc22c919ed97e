"""Permission rules: `allow|ask|deny tool(pattern)` (A5.47)."""

import functools
import itertools
import os
import re
from typing import Final, cast

import msgspec

from towline_agent.permissions.part import Part
from towline_protocol import UsageError

__all__ = [
    "ACTIONS",
    "EXACT",
    "Rule",
    "exact_rule",
    "match",
    "might_match",
    "names_something",
    "parse_rule",
]

ACTIONS: Final = ("allow", "ask", "deny")
"""What a rule can say."""
EXACT: Final = "="
"""A pattern that begins so is no glob and no prefix: the rest is the subject itself. What people
store from a prompt is of this kind, so that it never says more than what was seen (R39)."""

_TOOL: Final = r"[A-Za-z0-9_-]{1,64}|\*"
_SHAPE: Final = r"(?s)(\S+) ([^\s(]+)(?:\((.*)\))?"
"""The pattern goes to the last bracket, so it may hold brackets, spaces and line ends itself."""
_UNCERTAIN: Final = frozenset("$`*?[…")
"""What a word may hold of which only the run tells what it is."""
_BLANK: Final = r"[*?~/\s.]*"
"""A pattern of nothing but these names nothing in particular."""


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """One rule; a bad one can't be made, so none is passed over in silence (`UsageError`).

    How the pattern is read depends on the part it is held against: a path by globs (`*` within a
    segment, `**` across; relative to the root, or absolute), a command by a prefix that ends at a
    word, a host by its name (`*.example.com`), all else as it stands.
    """

    action: str
    """`allow`, `ask` or `deny`."""
    tool: str
    """The tool's name, or `*`."""
    pattern: str | None = None
    """What the part's subject must be like; `None` for any, `=...` for exactly that."""

    def __post_init__(self) -> None:
        if self.action not in ACTIONS:
            raise UsageError(
                f"{self.action!r} is nothing a permission rule can say; use `allow`, `ask` or "
                "`deny`."
            )
        if re.fullmatch(_TOOL, self.tool) is None:
            raise UsageError(
                f"{self.tool!r} in a permission rule is no tool's name; use the name or `*`."
            )

    @property
    def text(self) -> str:
        """The rule as people read and write it."""
        return f"{self.action} {self.tool}" + ("" if self.pattern is None else f"({self.pattern})")


def parse_rule(text: str) -> Rule:
    """A rule out of its text.

    Raises:
        UsageError: The text is no rule.
    """
    is_text = isinstance(cast("object", text), str)
    found = re.fullmatch(_SHAPE, text.strip()) if is_text else None
    if found is None:
        raise UsageError(
            f"{text!r} is not a permission rule; write `allow|ask|deny tool(pattern)`."
        )
    return Rule(action=found[1], tool=found[2], pattern=found[3])


def exact_rule(action: str, tool: str, subject: str) -> Rule:
    """The rule that speaks of this subject and of nothing else."""
    return Rule(action=action, tool=tool, pattern=EXACT + subject)


def names_something(rule: Rule) -> bool:
    """Whether a rule names what it allows: only then it lets pass what asks in every mode.

    `allow read_file` and `allow read_file(**)` name nothing, so a secret file still asks.
    """
    return rule.pattern is not None and re.fullmatch(_BLANK, rule.pattern) is None


def match(
    rule: Rule, tool: str, part: Part | str, *, root: str = "/", whole: str | None = None
) -> bool:
    """Whether a rule speaks of a part of a call.

    A rule that allows is read narrowly: letters as they are, the subject alone. One that asks or
    denies is read widely: upper and lower case alike, and other ways to write the subject too.

    Args:
        rule: The rule.
        tool: The tool's name.
        part: The part, or the subject of one that is matched exactly.
        root: The folder that relative paths begin at.
        whole: The call in one line; an exact rule may name that.
    """
    if rule.tool not in ("*", tool):
        return False
    if rule.pattern is None:
        return True
    if isinstance(part, str):
        part = Part(subject=part)
    wide = rule.action != "allow"
    if rule.pattern.startswith(EXACT):
        named = rule.pattern.removeprefix(EXACT)
        return named in (part.subject, whole) or (wide and named in part.also)
    subjects = (part.subject, *part.also) if wide else (part.subject,)
    return any(_fits(rule.pattern, subject, part.kind, root, wide) for subject in subjects)


def might_match(rule: Rule, tool: str, part: Part) -> bool:
    """Whether a rule that asks or denies might speak of a command once its words are known."""
    if part.certain is None or rule.action == "allow" or rule.tool not in ("*", tool):
        return False
    if rule.pattern is None:
        return True
    wanted = _fold_words(_words(rule.pattern.removeprefix(EXACT)))
    for subject in (part.subject, *part.also):
        words = _words(subject)
        if subject == part.subject:
            words = words[: part.certain]
        known = _fold_words(tuple(itertools.takewhile(_is_certain, words)))
        if wanted[: len(known)] == known[: len(wanted)]:
            return True
    return False


def _is_certain(word: str) -> bool:
    return _UNCERTAIN.isdisjoint(word)


def _fits(pattern: str, subject: str, kind: str, root: str, wide: bool) -> bool:
    match kind:
        case "path":
            return _fits_path(pattern, subject, root, wide)
        case "command":
            return _fits_command(pattern, subject, wide)
        case "host":
            return _fits_host(pattern, subject)
        case "unknown":  # what could not be read may be anything: only denials are guessed at
            return pattern == subject or (wide and _fits_command(pattern, subject, wide))
        case _:
            return pattern == subject


def _fits_path(pattern: str, subject: str, root: str, wide: bool) -> bool:
    if pattern.startswith("~/"):
        pattern = os.path.expanduser("~") + pattern[1:]  # noqa: PTH111 - `pathlib` is slow to import
    if pattern.startswith("/"):
        subject = subject if subject.startswith("/") else f"{root.rstrip('/')}/{subject}"
    elif subject.startswith("/"):
        return False  # outside: only an absolute pattern speaks of it
    pattern = pattern.removeprefix("./")
    if wide:
        pattern, subject = _fold(pattern), _fold(subject)
    return _glob(pattern).fullmatch(subject) is not None


def _fold(text: str) -> str:
    """A name as a file system sees it that knows no case and one form of each letter."""
    import unicodedata  # for rules that ask or deny

    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


@functools.lru_cache(maxsize=1024)
def _glob(pattern: str) -> re.Pattern[str]:
    """`*` and `?` within a segment, `**` across; brackets are letters, as in file names."""
    if pattern.endswith("/"):
        pattern += "**"
    pieces = re.split(r"(^\*\*/|/\*\*/|/\*\*$|\*\*|\*|\?)", pattern)
    shape = "".join([_PIECES.get(piece, re.escape(piece)) for piece in pieces])
    return re.compile(shape, re.DOTALL)


_PIECES: Final = {
    "**/": "(?:.*/)?",
    "/**/": "/(?:.*/)?",
    "/**": "(?:/.*)?",
    "**": ".*",
    "*": "[^/]*",
    "?": "[^/]",
}


def _fits_command(pattern: str, subject: str, wide: bool) -> bool:
    """Whether a command begins with these words (R39)."""
    wanted, found = _words(pattern), _words(subject)
    if wanted[-1:] == ("*",):
        wanted = wanted[:-1]
    if wide:
        wanted, found = _fold_words(wanted), _fold_words(found)
    return found[: len(wanted)] == wanted


def _words(command: str) -> tuple[str, ...]:
    import shlex  # for rules of commands alone

    try:
        return tuple(shlex.split(command))
    except ValueError:  # an open quote: then the words are what stands between spaces
        return tuple(command.split())


def _fold_words(words: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(_fold(word) for word in words)


def _fits_host(pattern: str, subject: str) -> bool:
    pattern, subject = pattern.lower(), subject.lower()
    host, port = _split_port(subject)
    wanted, wanted_port = _split_port(pattern)
    if wanted_port and wanted_port != port:
        return False
    host, wanted = host.rstrip("."), wanted.rstrip(".")
    if wanted == "*":
        return True
    if wanted.startswith("*."):
        return host.endswith(wanted[1:]) and len(host) >= len(wanted)
    return host == wanted


def _split_port(text: str) -> tuple[str, str]:
    found = re.fullmatch(r"(\[[^\]]*\]|[^:]*)(?::(\d+))?", text)
    return (text, "") if found is None else (found[1], found[2] or "")
