"""The symbols of a source text: by tree-sitter, and for Python without it by its own parser.

The worker loads this module and `languages.py` alone, so they import nothing else of the library.
"""

import ast
import re
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from typing import Any, Final, NamedTuple

from towline_agent.tools.code.languages import GRAMMARS, Grammar

__all__ = ["NAME_CHARS", "SYMBOLS_MAX", "GrammarMissing", "Symbol", "python_symbols", "symbols"]

NAME_CHARS: Final = 200
"""Characters of a name; what is longer was made by a machine."""
SYMBOLS_MAX: Final = 20_000
"""Symbols of one text; only generated ones have more."""

_READ_SIZE: Final = 65_536
"""Bytes handed to the parser in one go."""
_STEPS: Final = 256
"""Nodes visited between two looks at the clock."""
_DEFINITION: Final = re.compile(r"^([ \t]*)(class|(?:async[ \t]+)?def)[ \t]+(\w+)", re.MULTILINE)
_VALUES: Final = {
    "arrow_function": "function",
    "function_expression": "function",
    "generator_function": "function",
    "class": "class",
}
"""What a name may be given in JavaScript that makes it the name of a function or a class."""
_CALLABLE: Final = frozenset({"function", "method"})


class Symbol(NamedTuple):
    """Something with a name."""

    name: str
    """Its own name."""
    kind: str
    """`class`, `function`, `method`, `variable`, `constant`, `field`, `type`, `interface`, `enum`,
    `struct`, `trait`, `module` or `macro`."""
    line: int
    """The line where it begins, from 1."""
    end_line: int
    """Its last line."""
    container: str
    """What it stands in, outermost first, with dots; empty at the top."""


class GrammarMissing(ImportError):
    """The grammar of a language is not installed."""


_ENDLESS_WORD: Final = re.compile(rb"\w{20000}")
"""No name is so long, and looking for the end of one takes some grammars minutes."""


def symbols(
    language: str, source: bytes, *, late: Callable[[], bool] = lambda: False
) -> tuple[Symbol, ...]:
    """The definitions in a text, in order; broken code gives those that can be made out.

    Args:
        language: One of `GRAMMARS`.
        source: The text in UTF-8; whatever else it holds does no harm.
        late: Asked often; when it answers `True` the work ends.

    Raises:
        GrammarMissing: tree-sitter or the grammar is not installed, and the language not Python.
        TimeoutError: `late` said so.
    """
    grammar = GRAMMARS[language]
    if _ENDLESS_WORD.search(source):
        return ()
    try:
        parser = _load(language)
    except ImportError as error:
        if language == "python":
            return python_symbols(source)
        raise GrammarMissing(language) from error

    def read(offset: int, _: object) -> bytes:
        return source[offset : offset + _READ_SIZE]

    def stop(*_: object) -> bool:
        return late()

    try:
        tree = parser.parse(read, progress_callback=stop)
    except ValueError as error:
        parser.reset()  # or it would go on with this text in the middle of the next one
        raise TimeoutError from error
    walk = _Walk(grammar, source, tree.walk(), late)
    found = tuple(walk.run())
    if language == "python" and tree.root_node.has_error:
        return _with_lines(found, source)
    return found


def _with_lines(found: tuple[Symbol, ...], source: bytes) -> tuple[Symbol, ...]:
    """With those that an error hides, as an open bracket does all below it."""
    known = {(symbol.name, symbol.line) for symbol in found}
    lines = _definition_lines(source.decode("utf-8", "replace"))
    hidden = [symbol for symbol in lines if (symbol.name, symbol.line) not in known]
    return tuple(sorted((*found, *hidden), key=lambda symbol: symbol.line))[:SYMBOLS_MAX]


@cache
def _load(language: str) -> Any:
    grammar = GRAMMARS[language]
    module = import_module("tree_sitter")
    made = getattr(import_module(grammar.module), grammar.maker)
    return module.Parser(module.Language(made()))


class _Walk:
    """One walk over a tree: by a cursor, so that no depth of nesting costs a stack."""

    def __init__(
        self, grammar: Grammar, source: bytes, cursor: Any, late: Callable[[], bool]
    ) -> None:
        self._grammar = grammar
        self._source = source
        self._cursor = cursor
        self._late = late
        self._within: list[tuple[int, str, str]] = []  # depth, names with dots, kind

    def run(self) -> Iterator[Symbol]:
        depth = steps = found = 0
        cursor = self._cursor
        while True:
            steps += 1
            if steps % _STEPS == 0 and self._late():
                raise TimeoutError
            for symbol in self._visit(cursor.node, depth):
                found += 1
                yield symbol
            if found >= SYMBOLS_MAX:
                return
            kind = cursor.node.type
            if (
                kind in self._grammar.through or kind == "ERROR" or not depth
            ) and cursor.goto_first_child():
                depth += 1
                continue
            while not cursor.goto_next_sibling():
                if not cursor.goto_parent():
                    return
                depth -= 1
            while self._within and self._within[-1][0] >= depth:
                self._within.pop()

    def _visit(self, node: Any, depth: int) -> Iterator[Symbol]:
        """What a node defines; what stands in it is told of it as its container."""
        if node.type == "impl_item":
            self._within.append((depth, self._type_name(node), "struct"))  # it names no new thing
            return
        kind = self._grammar.kinds.get(node.type)
        if kind is None:
            return
        inside = self._within[-1][2] if self._within else ""
        kind = self._kind(node, kind, inside)
        names = [name for name in self._names(node) if name] if kind else []
        container = self._receiver(node) or (self._within[-1][1] if self._within else "")
        line, end_line = node.start_point[0] + 1, node.end_point[0] + 1
        for name in names:
            yield Symbol(name, kind, line, end_line, container)
        if names:
            self._within.append((depth, _join(container, names[0]), kind))

    def _kind(self, node: Any, kind: str, inside: str) -> str:
        """The kind of what a node defines where it stands; empty for nothing of interest."""
        if kind == "function":
            of_type = inside in ("class", "struct", "trait", "interface", "enum")
            return "method" if of_type else kind
        if node.type == "type_spec":
            shape = node.child_by_field_name("type")
            return {"struct_type": "struct", "interface_type": "interface"}.get(
                "" if shape is None else shape.type, kind
            )
        if kind not in ("", "variable", "field"):
            return kind
        value = node.child_by_field_name("value") or node.child_by_field_name("right")
        made = _VALUES.get(value.type, "") if value is not None else ""
        if made:
            return "method" if made == "function" and kind == "field" else made
        if inside in _CALLABLE:
            return ""  # a local name
        return "field" if kind == "variable" and inside == "class" else kind

    def _names(self, node: Any) -> Iterator[str]:
        for field in ("name", "property", "key", "left"):
            nodes = node.children_by_field_name(field)
            if nodes:
                # `a.b = function` is known by its last part, and a pattern has no name of its own
                yield from (self._name(found) for found in nodes if found.type != ",")
                return

    def _name(self, node: Any) -> str:
        if node.type == "member_expression":
            node = node.child_by_field_name("property") or node
        if node.type == "type":  # the left side of Python's `type`
            node = node.named_children[0] if node.named_children else node
        if node.type == "generic_type" and node.named_children:
            node = node.named_children[0]
        return self._text(node).lstrip("#") if node.type.endswith("identifier") else ""

    def _receiver(self, node: Any) -> str:
        """The type that a method of Go is one of."""
        if node.type != "method_declaration":
            return ""
        found = node.child_by_field_name("receiver")
        words = [] if found is None else re.findall(rb"\w+", self._bytes(found).partition(b"[")[0])
        return words[-1].decode("utf-8", "replace") if words else ""

    def _type_name(self, node: Any) -> str:
        """The type of an `impl`, without what it is generic over."""
        found = node.child_by_field_name("type")
        while found is not None and found.type == "generic_type":
            found = found.child_by_field_name("type")
        return "" if found is None else self._text(found)

    def _text(self, node: Any) -> str:
        return self._bytes(node).decode("utf-8", "replace")

    def _bytes(self, node: Any) -> bytes:
        return self._source[node.start_byte : min(node.end_byte, node.start_byte + NAME_CHARS)]


def _join(container: str, name: str) -> str:
    """What stands in `name`, as its container: bounded, since nesting may have no end."""
    return f"{container}.{name}".lstrip(".")[:NAME_CHARS]


def python_symbols(source: bytes) -> tuple[Symbol, ...]:
    """The symbols of a Python text without tree-sitter; of broken code the lines that define."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return _with_lines((), source)
    found: list[Symbol] = []
    left: list[tuple[ast.AST, str, str]] = [(tree, "", "")]
    while left and len(found) < SYMBOLS_MAX:
        node, container, inside = left.pop()
        symbol = _python_symbol(node, container, inside)
        if symbol is not None:
            found.append(symbol)
            if symbol.kind in ("class", *_CALLABLE):
                container = _join(container, symbol.name)
                inside = symbol.kind
        if not isinstance(node, ast.expr):
            left.extend((child, container, inside) for child in ast.iter_child_nodes(node))
    return tuple(sorted(found, key=lambda symbol: (symbol.line, -symbol.end_line)))


def _python_symbol(node: ast.AST, container: str, inside: str) -> Symbol | None:
    match node:
        case ast.ClassDef(name=name):
            kind = "class"
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            kind = "method" if inside == "class" else "function"
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            if inside in _CALLABLE:
                return None
            kind = "field" if inside == "class" else "variable"
        case _:
            return None
    return Symbol(name, kind, node.lineno, node.end_lineno or node.lineno, container)


def _definition_lines(text: str) -> Iterator[Symbol]:
    line = at = 0
    for found in _DEFINITION.finditer(text):
        line += text.count("\n", at, found.start())
        at = found.start()
        kind = "class" if found[2] == "class" else "method" if found[1] else "function"
        yield Symbol(found[3][:NAME_CHARS], kind, line + 1, line + 1, "")
