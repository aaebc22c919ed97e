"""The words of a shell command: what is known of each before it runs."""

import shlex
from collections.abc import Sequence
from typing import Any, Final

import msgspec

__all__ = ["PIPE", "Redirect", "Simple", "Word", "join_words", "read_word"]

_GLOB: Final = frozenset("*?[")
PIPE: Final = "/dev/fd/63"
"""What a shell puts in the place of `<(…)`."""
_LITERAL: Final = frozenset({"word", "number", "raw_string", "string", "concatenation"})
"""Nodes whose text may be known."""


class Word(msgspec.Struct, frozen=True):
    """One word as it is written."""

    source: str
    """Its text in the command."""
    value: str | None
    """What it is once quotes are taken off; `None` when only the run tells."""
    glob: bool = False
    """Whether the shell may put names of files in its place."""
    quoted: bool = False
    """Whether it stays one word, whatever it holds."""


class Redirect(msgspec.Struct, frozen=True):
    """One redirection."""

    operator: str
    """Such as `>` or `<<<`."""
    target: Word | None
    """To where; `None` for a closed file."""


class Simple(msgspec.Struct, frozen=True, kw_only=True):
    """One simple command: assignments, words, redirections."""

    source: str
    """Its text."""
    words: tuple[Word, ...] = ()
    """The program and its arguments."""
    assigns: tuple[tuple[str, Word], ...] = ()
    """Variables that are set for it, or for the shell when it has no words."""
    redirects: tuple[Redirect, ...] = ()
    """Where it reads from and writes to."""


def join_words(words: Sequence[Word]) -> str:
    """Words as one line in one way of writing; what is not known stays as it is written."""
    return " ".join(
        word.source if word.value is None or word.value == PIPE else shlex.quote(word.value)
        for word in words
    )


def read_word(node: Any, source: bytes) -> Word:
    """What is known of a word before it runs.

    Args:
        node: Its node in the syntax tree.
        source: The whole command.
    """
    text = source[node.start_byte : node.end_byte].decode(errors="replace")
    kind: str = node.type
    if kind == "process_substitution":  # what runs in it is judged by itself
        return Word(text, PIPE, quoted=True)
    if kind not in _LITERAL:
        return Word(text, None)
    if kind == "concatenation":
        return _read_concatenation(node, source, text)
    if kind == "raw_string":
        return Word(text, text[1:-1], quoted=True)
    if kind == "string":
        plain = all(child.type in ('"', "string_content") for child in node.children)
        return Word(text, _unquote_double(text[1:-1]) if plain else None, quoted=True)
    return _read_bare(text)


def _read_concatenation(node: Any, source: bytes, text: str) -> Word:
    pieces = [read_word(child, source) for child in node.children]
    values = [piece.value for piece in pieces]
    if _has_braces(text) or None in values or any(p.source[:1] == "~" for p in pieces):
        return Word(text, None, quoted=all(piece.quoted for piece in pieces))
    joined = "".join(value for value in values if value is not None)
    return Word(text, joined, glob=any(piece.glob for piece in pieces))


def _has_braces(text: str) -> bool:
    """Whether the shell may make several words of one, as of `{a,b}`."""
    return "{" in text and ("," in text or ".." in text)


def _unquote_double(text: str) -> str:
    found: list[str] = []
    letters = iter(text)
    for letter in letters:
        if letter != "\\":
            found.append(letter)
            continue
        after = next(letters, "")
        if after != "\n":
            found.append(after if after in '$`"\\' else letter + after)
    return "".join(found)


def _read_bare(text: str) -> Word:
    """A word without quotes: backslashes, globs, and `~` for a home folder."""
    found: list[str] = []
    glob = False
    strange = "{}$`'\"" if _has_braces(text) else "$`'\""
    letters = iter(text)
    for letter in letters:
        if letter == "\\":
            after = next(letters, "")
            found.append("" if after == "\n" else after)
            continue
        if letter in strange:  # what the grammar should have told apart
            return Word(text, None)
        glob = glob or letter in _GLOB
        found.append(letter)
    if text.startswith("~"):
        value = _expand_home(text, "".join(found))
        return Word(text, value, glob=glob)
    return Word(text, "".join(found), glob=glob)


def _expand_home(text: str, value: str) -> str | None:
    """`~` and `~/x` are the home folder's; of `~bob` and `~+` only the run tells."""
    import os.path

    if "\\" in text.split("/", 1)[0]:
        return None
    return os.path.expanduser(value) if value == "~" or value.startswith("~/") else None  # noqa: PTH111 - `pathlib` is slow to import
