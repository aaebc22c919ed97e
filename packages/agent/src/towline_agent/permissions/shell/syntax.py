"""The syntax tree of a shell command, read into its simple commands."""

import functools
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import msgspec

from towline_agent.permissions.shell.checks import (
    CHECKS,
    OPAQUE,
    Unreadable,
    check_letters,
    quote,
    sum_names,
)
from towline_agent.permissions.shell.words import Redirect, Simple, Word, read_word

__all__ = ["Script", "load_parser", "read_commands"]

_DEPTH: Final = 60
"""Levels of nested syntax; no person reads more."""
_NODES: Final = 20_000
"""Nodes of one command, for the same reason."""
_PLAIN: Final = frozenset(
    {
        "arithmetic_expansion", "array", "binary_expression", "c_style_for_statement", "case_item",
        "case_statement", "command", "command_name", "command_substitution", "comment",
        "compound_statement", "concatenation", "declaration_command", "do_group", "elif_clause",
        "else_clause", "expansion", "extglob_pattern", "file_descriptor", "file_redirect",
        "for_statement", "function_definition", "heredoc_body", "heredoc_content", "heredoc_end",
        "heredoc_redirect", "heredoc_start", "herestring_redirect", "if_statement", "list",
        "negated_command", "number", "parenthesized_expression", "pipeline", "postfix_expression",
        "process_substitution", "program", "raw_string", "redirected_statement", "regex",
        "simple_expansion", "special_variable_name", "string", "string_content", "subscript",
        "subshell", "ternary_expression", "test_command", "test_operator", "unary_expression",
        "unset_command", "variable_assignment", "variable_assignments", "variable_name",
        "while_statement", "word",
    }
)  # fmt: skip
"""Nodes that are understood; any other makes the command unreadable."""
_TEXTS: Final = frozenset({"heredoc_body", "heredoc_redirect", "redirected_statement", "string"})
"""Nodes with letters between their children."""
_ONE_LINE: Final = frozenset(
    {"command", "declaration_command", "file_redirect", "herestring_redirect", "unset_command"}
)
"""Nodes that end with their line."""
_CASE_ENDS: Final = frozenset({";;", ";&", ";;&"})
_REPEATS: Final = frozenset(
    {"c_style_for_statement", "for_statement", "function_definition", "while_statement"}
)
_REDIRECTS: Final = ("file_redirect", "heredoc_redirect", "herestring_redirect")


@functools.cache
def load_parser() -> Callable[[bytes], Any] | None:
    """The grammar's parser; `None` where it is not installed."""
    try:
        import tree_sitter_bash
        from tree_sitter import Language, Parser
    except ImportError:
        return None
    return Parser(Language(tree_sitter_bash.language())).parse


class Script(NamedTuple):
    """What a command line is made of."""

    commands: list[Simple]
    """The simple commands in the order in which they stand, inner ones before what holds them."""
    repeats: bool
    """Whether some of them may run more than once, or elsewhere than they stand."""


def read_commands(command: str) -> Script:
    """What a command line is made of.

    Raises:
        Unreadable: The grammar is not there, or it does not understand all of the command.
    """
    parse = load_parser()
    if parse is None:
        raise Unreadable("Commands can't be taken apart here: `tree-sitter-bash` is missing.")
    check_letters(command)
    source = command.encode()
    root = parse(source).root_node
    if root.has_error:
        raise Unreadable("The command can't be read: its grammar is not clear.")
    reader = _Reader(source)
    reader.read(root, 0)
    reader.check_sums()
    return Script(reader.found, reader.repeats)


class _Reader:
    """Collects simple commands, and refuses what it does not know."""

    def __init__(self, source: bytes) -> None:
        self.found: list[Simple] = []
        self.repeats = False
        self._source = source
        self._seen = 0
        self._places: dict[int, int] = {}
        self._numbers: set[str] = set()
        self._texts: set[str] = set()
        self._summed: set[str] = set()
        self._readers: dict[str, Callable[[Any, int], None]] = {
            "command": self._read_command,
            "declaration_command": self._read_declaration,
            "for_statement": self._read_for,
            "function_definition": self._read_function,
            "redirected_statement": self._read_redirected,
            "unset_command": self._read_declaration,
            "variable_assignment": self._read_assignment,
            **dict.fromkeys(_REDIRECTS, self._read_lone_redirect),
        }

    def read(self, node: Any, depth: int) -> None:
        """Read a node and all below it."""
        self._look(node, depth)
        reader = self._readers.get(node.type)
        if reader is not None:
            reader(node, depth)
        else:
            self._read_children(node, depth)

    def check_sums(self) -> None:
        """Refuse sums over names whose values are not known to be numbers."""
        unsure = self._summed - (self._numbers - self._texts)
        if unsure:
            raise Unreadable(
                f"The command calculates with {min(unsure)!r}, and what that holds could run "
                "programs."
            )

    def _look(self, node: Any, depth: int) -> None:
        self._seen += 1
        if depth > _DEPTH or self._seen > _NODES:
            raise Unreadable("The command is too deep or too long to be taken apart.")
        if node.is_missing or node.is_error or (node.is_named and node.type not in _PLAIN):
            raise Unreadable(f"The command holds {quote(node, self._source)}, which can't be read.")
        if node.type in _CASE_ENDS and node.parent.type != "case_item":
            raise Unreadable("The command can't be read: its grammar is not clear.")
        if node.children and node.type not in _TEXTS:
            self._check_gaps(node)
        self.repeats = self.repeats or node.type in _REPEATS
        check = CHECKS.get(node.type)
        if check is not None:
            check(node, self._source)
        self._summed.update(sum_names(node, self._source))

    def _check_gaps(self, node: Any) -> None:
        """Nothing but blanks may stand between what the grammar has understood."""
        at = 0 if node.type == "program" else node.start_byte
        last: Any = None
        for child in node.children:
            gap = self._source[at : child.start_byte]
            gap = gap.replace(b"\\\n", b" ")
            blanks = b" \t" if node.type in _ONE_LINE else b" \t\n"
            if gap.strip(blanks) or _is_glued(node, last, child, gap):
                raise Unreadable(f"The command can't be read at {quote(node, self._source)}.")
            at = max(at, child.end_byte)
            last = child

    def _read_children(self, node: Any, depth: int) -> None:
        for child in node.children:
            self.read(child, depth + 1)

    def _text(self, node: Any) -> str:
        return self._source[node.start_byte : node.end_byte].decode(errors="replace")

    def _keep(self, node: Any, **facts: Any) -> None:
        self._places[node.id] = len(self.found)
        self.found.append(Simple(source=self._text(node), **facts))

    def _read_command(self, node: Any, depth: int) -> None:
        words: list[Word] = []
        assigns: list[tuple[str, Word]] = []
        redirects: list[Redirect] = []
        for child in node.children:
            if child.type == "variable_assignment":
                assigns.append(self._take_assignment(child, depth))
            elif child.type in _REDIRECTS:
                redirects += self._read_redirect(child, depth, words)
            else:
                words.append(self._read_word(child, depth))
        self._keep(node, words=tuple(words), assigns=tuple(assigns), redirects=tuple(redirects))

    def _read_word(self, node: Any, depth: int) -> Word:
        self.read(node, depth + 1)
        if node.type == "command_name":
            (node,) = node.children
        if not node.is_named:  # a sign that belongs to no word we know, such as `$` of `$"x"`
            return Word(self._text(node), None)
        return read_word(node, self._source)

    def _read_assignment(self, node: Any, depth: int) -> None:
        self._keep(node, assigns=(self._take_assignment(node, depth),))

    def _take_assignment(self, node: Any, depth: int) -> tuple[str, Word]:
        name = self._text(node.children[0]).split("[", 1)[0]
        if not (name.isascii() and name.isidentifier()):
            raise Unreadable(f"{name[:80]!r} is no name of a variable.")
        value = node.child_by_field_name("value")
        if node.children[0].type == "subscript":
            self.read(node.children[0], depth + 1)
        word = Word("", "")
        if value is not None:
            self.read(value, depth + 1)
            word = read_word(value, self._source)
        if any(sign in (word.value or "") for sign in OPAQUE):
            raise Unreadable(f"The command hides a command in {quote(node, self._source)}.")
        self._note(name, word)
        return name, word

    def _note(self, name: str, word: Word) -> None:
        """Take note whether a name holds a number, as far as is known."""
        number = word.value is not None and word.value.lstrip("-").isdecimal()
        (self._numbers if number else self._texts).add(name)

    def _read_redirected(self, node: Any, depth: int) -> None:
        redirects: list[Redirect] = []
        extra: list[Word] = []
        body: Any = None
        for child in node.children:
            if child.type in _REDIRECTS:
                redirects += self._read_redirect(child, depth, extra)
            else:
                body = child
                self.read(child, depth + 1)
        self._append(node, body, extra)
        self._keep(node, redirects=tuple(redirects))

    def _append(self, node: Any, body: Any, extra: list[Word]) -> None:
        """Words behind a redirection belong to the command before it."""
        if not extra:
            return
        if body is None or body.type not in ("command", "declaration_command"):
            raise Unreadable(f"What follows in {quote(node, self._source)} is not clear.")
        place = self._places[body.id]
        before = self.found[place]
        self.found[place] = msgspec.structs.replace(before, words=(*before.words, *extra))

    def _read_redirect(self, node: Any, depth: int, extra: list[Word]) -> list[Redirect]:
        """The redirections of a node; words that stand behind their targets go into `extra`."""
        self._look(node, depth)
        if node.type == "herestring_redirect":
            self._read_children(node, depth)
            return []
        if node.type == "heredoc_redirect":
            return self._read_heredoc(node, depth, extra)
        operator, targets = "", list[Word]()
        for child in node.children:
            if child.type == "file_descriptor":
                continue
            if not child.is_named:
                operator = child.type
                continue
            self.read(child, depth + 1)
            targets.append(read_word(child, self._source))
        extra += targets[1:]
        return [Redirect(operator, targets[0] if targets else None)]

    def _read_heredoc(self, node: Any, depth: int, extra: list[Word]) -> list[Redirect]:
        """A here-document, and what the grammar puts below it: the rest of its line."""
        found: list[Redirect] = []
        for place, child in enumerate(node.children):
            if child.type in _REDIRECTS:
                found += self._read_redirect(child, depth + 1, extra)
                continue
            self.read(child, depth + 1)
            if node.field_name_for_child(place) == "argument":
                extra.append(read_word(child, self._source))
        return found

    def _read_lone_redirect(self, node: Any, depth: int) -> None:
        """A redirection without a command, such as in `$(<file)`."""
        extra: list[Word] = []
        redirects = self._read_redirect(node, depth, extra)
        self._append(node, None, extra)
        self._keep(node, redirects=tuple(redirects))

    def _read_declaration(self, node: Any, depth: int) -> None:
        """`export`, `declare`, `unset` …: names and values."""
        words: list[Word] = []
        assigns: list[tuple[str, Word]] = []
        for child in node.children:
            if child.type == "variable_assignment":
                assigns.append(self._take_assignment(child, depth))
                continue
            self.read(child, depth + 1)
            plain = not child.is_named or child.type == "variable_name"
            text = self._text(child)
            words.append(Word(text, text) if plain else read_word(child, self._source))
        self._keep(node, words=tuple(words), assigns=tuple(assigns))

    def _read_function(self, node: Any, depth: int) -> None:
        extra: list[Word] = []
        for child in node.children:
            if child.type in _REDIRECTS:
                redirects = self._read_redirect(child, depth, extra)
                self._keep(child, redirects=tuple(redirects))
            elif child.type != "word":  # its name
                self.read(child, depth + 1)
        self._append(node, None, extra)

    def _read_for(self, node: Any, depth: int) -> None:
        name = self._text(node.child_by_field_name("variable"))
        values = node.children_by_field_name("value")
        for value in values:
            self._note(name, read_word(value, self._source))
        if not values:  # the arguments of the function or the script
            self._texts.add(name)
        self._read_children(node, depth)


def _is_glued(node: Any, last: Any, child: Any, gap: bytes) -> bool:
    """Whether a shell sees one word where the grammar sees two, or two where it sees one."""
    if node.type == "concatenation":
        return bool(gap)
    if node.type in ("negated_command", "test_command"):
        return last is not None and not gap
    if node.type != "command" or last is None:
        return False
    return not gap and not {last.type, child.type}.intersection(_REDIRECTS)
