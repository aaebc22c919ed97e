"""The sentences under the fields of the words, for the documents that are made from them."""

import ast
import inspect
import itertools
import sys
from collections.abc import Iterator
from functools import cache

import msgspec

__all__ = ["field_docs"]


def field_docs(cls: type[msgspec.Struct]) -> dict[str, str]:
    """Field to the string under it, for a struct and what it is made from."""
    docs: dict[str, str] = {}
    for part in reversed(cls.__mro__):
        if part.__module__.startswith("towline_protocol."):
            docs |= _module_docs(part.__module__)[part.__name__]
    return docs


@cache
def _module_docs(module: str) -> dict[str, dict[str, str]]:
    """Class to field to the string under it, out of a module's source."""
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    return {
        node.name: dict(_under_fields(node)) for node in tree.body if isinstance(node, ast.ClassDef)
    }


def _under_fields(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for field, under in itertools.pairwise(node.body):
        match field, under:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                yield name, inspect.cleandoc(text)
            case _:
                pass
