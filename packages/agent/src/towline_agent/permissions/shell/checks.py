"""What a shell may evaluate that does not look like a command, and what a grammar may misread."""

import re
from collections.abc import Callable, Iterator
from typing import Any, Final

from towline_agent.permissions.shell.words import read_word

__all__ = ["CHECKS", "OPAQUE", "Unreadable", "check_letters", "quote", "sum_names", "walk"]

OPAQUE: Final = ("$(", "`", "${")
"""What runs programs when a shell evaluates a text that was quoted."""

_SINGLE_OPERATORS: Final = frozenset({"-v", "-R"})
_DOUBLE_OPERATORS: Final = frozenset({"-eq", "-ne", "-lt", "-le", "-gt", "-ge"}) | _SINGLE_OPERATORS
"""Operators whose operands a shell evaluates, in `[ … ]` and in `[[ … ]]`."""
_SPLIT: Final = frozenset({"simple_expansion", "expansion", "command_substitution"})
"""What becomes several words where it is not quoted."""
_COUNTS: Final = frozenset({"$#", "$?", "$$", "$!"})
"""Expansions that are always numbers."""
_UNKNOWN_IN_SUM: Final = frozenset({"command_substitution", "expansion", "raw_string", "string"})
_EXPANDERS: Final = frozenset(
    {"${", "}", ":-", "-", ":=", "=", ":?", "?", ":+", "+", "#", "##", "%", "%%", "/", "//"}
)
"""Signs of an expansion that only put text in the place of text."""

_ESCAPED: Final = re.compile(r"\\.", re.DOTALL)
_HIDDEN: Final = re.compile(r"`|\$[({\[]|[<>]\(")
"""A substitution, in a text without what follows a backslash."""
_SIGNS: Final = re.compile(r"[\s;&|<>()'\"]")
_DELIMITER: Final = re.compile(r"(?P<quote>['\"]?)(?P<word>[A-Za-z_][A-Za-z0-9_]*)(?P=quote)")
_BROKEN_LINE: Final = re.compile(r"\S\\\n\S")
"""A line end in the middle of a word: the shell joins what the grammar takes for two."""


class Unreadable(ValueError):
    """A command that can't be taken apart; the message is a sentence for people."""


def quote(node: Any, source: bytes) -> str:
    """A node's text for a message, cut."""
    return repr(source[node.start_byte : node.end_byte].decode(errors="replace")[:80])


def walk(node: Any) -> Iterator[Any]:
    """A node and all below it, in order."""
    left = [node]
    while left:
        here = left.pop()
        yield here
        left += reversed(here.children)


def check_letters(command: str) -> None:
    """Refuse letters that a person can't see, and words that a line end takes apart."""
    try:
        command.encode()
    except UnicodeEncodeError as error:
        raise Unreadable("The command holds half of a character.") from error
    for letter in command:
        if letter not in " \t\n" and (letter.isspace() or not letter.isprintable()):
            raise Unreadable(f"The command holds the letter {letter!r}, which can't be seen.")
    if _BROKEN_LINE.search(command) is not None:
        raise Unreadable("The command has a line end in the middle of a word.")


def sum_names(node: Any, source: bytes) -> Iterator[str]:
    """The names that a node calculates with; none for a node that does no sums.

    A shell evaluates what such a name holds, and that may run programs.

    Raises:
        Unreadable: It calculates with what only the run tells.
    """
    for part in _sum_of(node, source):
        for inner in walk(part):
            text = source[inner.start_byte : inner.end_byte].decode(errors="replace")
            if inner.type in _UNKNOWN_IN_SUM:
                raise Unreadable(
                    f"The command calculates with {quote(inner, source)}, which could run programs."
                )
            if inner.type in ("variable_name", "word") and not text.isdigit():
                yield text


def _sum_of(node: Any, source: bytes) -> list[Any]:
    """The nodes that are calculated: of a `for ((…))` not its body, of `a[i]` not the name."""
    match node.type:
        case "c_style_for_statement":
            ends = [place for place, child in enumerate(node.children) if child.type == "))"]
            return node.children[: ends[0]] if ends else [node]
        case "subscript":
            return node.children[1:]
        case "arithmetic_expansion":
            return node.children
        case "compound_statement" if source[node.start_byte :].startswith(b"(("):
            return node.children
        case _:
            return []


def _check_comment(node: Any, source: bytes) -> None:
    """A comment begins a word; else the shell reads on where the grammar stops."""
    before = source[: node.start_byte].decode(errors="replace")
    if before and (before[-1] not in " \t\n;&|()" or before.endswith("\\\n")):
        raise Unreadable(f"It is not clear whether {quote(node, source)} is a comment.")


def _check_pieces(node: Any, source: bytes) -> None:
    """No substitution may hide in what the grammar takes for letters."""
    at = node.start_byte
    pieces: list[bytes] = []
    for child in node.named_children:
        if child.type not in ("string_content", "heredoc_content"):
            pieces.append(source[at : child.start_byte])
            at = child.end_byte
    pieces.append(source[at : node.end_byte])
    for piece in pieces:
        if _HIDDEN.search(_ESCAPED.sub("", piece.decode(errors="replace"))) is not None:
            raise Unreadable(f"The command hides a command in {quote(node, source)}.")


def _check_heredoc(node: Any, source: bytes) -> None:
    """The shell ends a here-document at the first line that is its word, and so must we."""
    by_kind = {child.type: child for child in node.children}
    start, end = by_kind.get("heredoc_start"), by_kind.get("heredoc_end")
    body = by_kind.get("heredoc_body")
    if start is None or end is None or body is None:
        raise Unreadable(f"The here-document {quote(node, source)} is not clear.")
    text = source[start.start_byte : start.end_byte].decode(errors="replace")
    found = _DELIMITER.fullmatch(text)
    lines = source[body.start_byte : body.end_byte].decode(errors="replace").split("\n")
    if found is None or any(line.strip() == found["word"] for line in lines):
        raise Unreadable(f"The here-document {text!r} is not clear.")
    if not found["quote"]:  # what it holds is expanded
        _check_pieces(body, source)


def _check_expansion(node: Any, source: bytes) -> None:
    """`${x:1:2}` calculates, `${!x}` follows a name, `${x@P}` runs what it holds."""
    for child in node.children:
        if not child.is_named and child.type not in _EXPANDERS:
            raise Unreadable(f"The command holds {quote(node, source)}, which can't be judged.")
        if child.type == "raw_string":
            _check_literal(child, source)


def _check_literal(node: Any, source: bytes) -> None:
    value = read_word(node, source).value
    if value is not None and any(sign in value for sign in OPAQUE):
        raise Unreadable(f"The command hides a command in {quote(node, source)}.")


def _check_test(node: Any, source: bytes) -> None:
    """`[ … ]` and `[[ … ]]`: some of their operators evaluate what they compare."""
    single = node.children[0].type == "["
    for inner in walk(node):
        text = source[inner.start_byte : inner.end_byte].decode(errors="replace")
        if text in (_SINGLE_OPERATORS if single else _DOUBLE_OPERATORS):
            raise Unreadable(f"The command compares by {text!r}, which could run programs.")
        if inner.type in ("raw_string", "string"):
            _check_literal(inner, source)
        splits = inner.type in _SPLIT and inner.parent.type not in ("string", "expansion")
        if single and splits and text not in _COUNTS:
            raise Unreadable(f"{quote(inner, source)} may become more than one word; quote it.")


def _check_declaration(node: Any, source: bytes) -> None:
    """With `-i` a value is calculated, with `-n` a name is followed."""
    for child in node.named_children:
        text = source[child.start_byte : child.end_byte].decode(errors="replace")
        if text[:1] in "-+" and not {"i", "n"}.isdisjoint(text):
            raise Unreadable(f"{quote(node, source)} may run what its values hold.")
        if child.type in ("raw_string", "string", "word", "concatenation"):
            _check_literal(child, source)


def _check_word(node: Any, source: bytes) -> None:
    """A bare word ends at the first blank or sign of the shell's."""
    _check_pieces(node, source)
    text = source[node.start_byte : node.end_byte].decode(errors="replace")
    if _SIGNS.search(_ESCAPED.sub("", text)) is not None:
        raise Unreadable(f"It is not clear where the word {text[:80]!r} ends.")


CHECKS: Final[dict[str, Callable[[Any, bytes], None]]] = {
    "comment": _check_comment,
    "declaration_command": _check_declaration,
    "expansion": _check_expansion,
    "heredoc_redirect": _check_heredoc,
    "string": _check_pieces,
    "test_command": _check_test,
    "unset_command": _check_declaration,
    "word": _check_word,
}
"""By the kind of node; each raises `Unreadable`."""
