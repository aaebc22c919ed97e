"""The words as TypeScript: the types and the tables that the web app is built on (D14).

Two files are made from the Python types, and a test holds that they are fresh: the types, with the
sentences that document them, and the shapes, by which a reader checks what came over the wire.
"""

import inspect
import re
import textwrap
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, Final, cast

import msgspec
from msgspec import inspect as types

from towline_protocol.artifacts import Artifact
from towline_protocol.commands import ClientBlock, Problem, PromptBlock
from towline_protocol.content import Block, ResultBlock
from towline_protocol.docstrings import field_docs
from towline_protocol.events import Delta, Envelope, Event, StoredEvent
from towline_protocol.faults import FAULT_CODES
from towline_protocol.frames import CONTROL_FRAMES, Control, Frame
from towline_protocol.operations import (
    CONTRACT_HEADER,
    CONTRACT_VERSION,
    OPERATIONS,
)
from towline_protocol.view import REDUCER_VERSION, SessionView

__all__ = ["typescript_shapes", "typescript_types"]

_UNIONS: Final[dict[str, Any]] = {
    "Artifact": Artifact,
    "Block": Block,
    "ClientBlock": ClientBlock,
    "Control": Control,
    "Delta": Delta,
    "Event": Event,
    "Frame": Frame,
    "PromptBlock": PromptBlock,
    "ResultBlock": ResultBlock,
    "StoredEvent": StoredEvent,
}
"""The unions that have a name; each is written once and used by it."""

_HEAD: Final = "// Made from the Python types by `make types`; do not edit.\n"
_WIDTH: Final = 100


def typescript_types() -> str:
    """Every type that a client meets, as the text of a TypeScript module.

    A field that may stay off the wire is optional; `unknown` is what is not described further.
    """
    structs = _structs()
    parts = [
        _HEAD,
        f'export const CONTRACT_HEADER = "{CONTRACT_HEADER}";',
        f'export const CONTRACT_VERSION = "{CONTRACT_VERSION}";',
        f"export const REDUCER_VERSION = {REDUCER_VERSION};\n",
        _union("FaultCode", [_flat(code) for code in FAULT_CODES]),
    ]
    parts += [_union(name, _names(union)) for name, union in _UNIONS.items()]
    parts += [_interface(info) for info in structs]
    parts.append(_operations())
    return "\n".join(parts)


def typescript_shapes() -> str:
    """What each value must look like, as the text of a TypeScript module with two tables.

    A reader checks a value against them to tell a known kind in a known shape from `Unknown`
    (C1.11).
    """
    structs = {info.cls.__name__: _shape_row(info) for info in _structs()}
    unions = {
        name: {str(info.tag): info.cls.__name__ for info in _members(union)}
        for name, union in _UNIONS.items()
        if all(info.tag is not None for info in _members(union))
    }
    return "\n".join(
        [
            _HEAD,
            "/** What a value must look like. */",
            "export type Shape =",
            '  | "any"',
            '  | "boolean"',
            '  | "integer"',
            '  | "number"',
            '  | "string"',
            "  | { list: Shape }",
            "  | { map: Shape }",
            "  | { nullable: Shape }",
            "  | { struct: string }",
            "  | { union: string };\n",
            "/** A struct: its tag, the fields that must be there, and those that may. */",
            "export interface StructShape {",
            "  tag?: [field: string, value: string];",
            "  required: Record<string, Shape>;",
            "  optional: Record<string, Shape>;",
            "}\n",
            f"export const STRUCTS: Record<string, StructShape> = {_literal(structs)};\n",
            "/** Union to tag to struct. */",
            f"export const UNIONS: Record<string, Record<string, string>> = {_literal(unions)};\n",
        ]
    )


def _structs() -> list[types.StructType]:
    """All structs that clients meet, by name."""
    roots: set[Any] = {Envelope, SessionView, Problem, *CONTROL_FRAMES.values()}
    for operation in OPERATIONS.values():
        roots |= {body for body in (operation.request, operation.answer) if body is not None}
    found: dict[str, types.StructType] = {}
    for root in roots:
        _walk(types.type_info(root), found)
    return [found[name] for name in sorted(found)]


def _walk(info: types.Type, found: dict[str, types.StructType]) -> None:
    if isinstance(info, types.StructType):
        if info.cls.__name__ not in found:
            found[info.cls.__name__] = info
            for field in info.fields:
                _walk(field.type, found)
        return
    for inner in _inner(info):
        _walk(inner, found)


def _inner(info: types.Type) -> Iterator[types.Type]:
    if isinstance(info, types.UnionType):
        yield from info.types
    elif isinstance(info, types.VarTupleType):
        yield info.item_type
    elif isinstance(info, types.DictType):
        yield info.value_type


@cache
def _members(union: Any) -> list[types.StructType]:
    infos = types.multi_type_info(union.__args__)
    return [info for info in infos if isinstance(info, types.StructType)]


def _names(union: Any) -> list[str]:
    return [info.cls.__name__ for info in _members(union)]


def _optional(info: types.StructType, field: types.Field) -> bool:
    return info.cls.__struct_config__.omit_defaults and not field.required


def _interface(info: types.StructType) -> str:
    docs = field_docs(info.cls)
    lines = [_comment(inspect.cleandoc(info.cls.__doc__ or ""), "")]
    lines.append(f"export interface {info.cls.__name__} {{")
    if info.tag is not None:
        lines.append(f"  readonly {info.tag_field}: {_flat(info.tag)};")
    for field in info.fields:
        lines.append(_comment(docs.get(field.name, ""), "  "))
        mark = "?" if _optional(info, field) else ""
        lines.append(f"  readonly {field.encode_name}{mark}: {_type(field.type)};")
    lines.append("}\n")
    return "\n".join(line for line in lines if line)


def _type(info: types.Type) -> str:
    match info:
        case types.StructType():
            return info.cls.__name__
        case types.UnionType():
            return " | ".join(_union_parts(info))
        case types.VarTupleType():
            item = _type(info.item_type)
            return f"readonly ({item})[]" if "|" in item else f"readonly {item}[]"
        case types.DictType():
            return f"Readonly<Record<string, {_type(info.value_type)}>>"
        case _:
            return _PLAIN[type(info)][0]


def _union_parts(info: types.UnionType) -> list[str]:
    """The members of a union, a named one by its name; `null` stands last."""
    rest = [part for part in info.types if not isinstance(part, types.NoneType)]
    name = _union_name(rest)
    parts = [name] if name else [_type(part) for part in rest]
    return [*parts, "null"] if len(rest) < len(info.types) else parts


def _union_name(parts: Iterable[types.Type]) -> str | None:
    members = {part.cls.__name__ for part in parts if isinstance(part, types.StructType)}
    for name, union in _UNIONS.items():
        if members == set(_names(union)):
            return name
    return None


_PLAIN: Final[dict[type[types.Type], tuple[str, str]]] = {
    types.AnyType: ("unknown", "any"),
    types.BoolType: ("boolean", "boolean"),
    types.FloatType: ("number", "number"),
    types.IntType: ("number", "integer"),
    types.StrType: ("string", "string"),
}
"""Kind to its TypeScript type and its shape."""


def _shape_row(info: types.StructType) -> dict[str, Any]:
    row: dict[str, Any] = {} if info.tag is None else {"tag": [info.tag_field, info.tag]}
    row["required"] = {f.encode_name: _shape(f.type) for f in info.fields if f.required}
    row["optional"] = {f.encode_name: _shape(f.type) for f in info.fields if not f.required}
    return row


def _shape(info: types.Type) -> Any:
    match info:
        case types.StructType():
            return {"struct": info.cls.__name__}
        case types.UnionType():
            rest = [part for part in info.types if not isinstance(part, types.NoneType)]
            inner = {"union": _union_name(rest)} if len(rest) > 1 else _shape(rest[0])
            return {"nullable": inner} if len(rest) < len(info.types) else inner
        case types.VarTupleType():
            return {"list": _shape(info.item_type)}
        case types.DictType():
            return {"map": _shape(info.value_type)}
        case _:
            return _PLAIN[type(info)][1]


def _union(name: str, members: list[str]) -> str:
    line = f"export type {name} = {' | '.join(members)};"
    if len(line) <= _WIDTH:
        return f"{line}\n"
    return f"export type {name} =\n" + "\n".join(f"  | {part}" for part in members) + ";\n"


def _operations() -> str:
    rows = {
        row.name: {"method": row.method, "path": row.path, "idempotent": row.idempotent}
        for row in OPERATIONS.values()
    }
    lines = ["/** What each operation takes and gives. */", "export interface Operations {"]
    for row in OPERATIONS.values():
        request = "null" if row.request is None else row.request.__name__
        answer = "null" if row.answer is None else row.answer.__name__
        lines.append(_comment(row.summary, "  "))
        lines.append(f"  {row.name}: {{ request: {request}; answer: {answer} }};")
    lines.append("}\n\n/** Where each operation stands. */")
    lines.append(f"export const OPERATIONS = {_literal(rows)} as const;\n")
    return "\n".join(lines)


def _comment(text: str, indent: str) -> str:
    if not text:
        return ""
    line = f"{indent}/** {' '.join(text.split())} */"
    if len(line) <= _WIDTH:
        return line
    words = textwrap.wrap(" ".join(text.split()), _WIDTH - len(indent) - 3)
    return "\n".join([f"{indent}/**", *(f"{indent} * {row}" for row in words), f"{indent} */"])


_BARE_KEY: Final = "[A-Za-z_][A-Za-z0-9_]*"


def _literal(value: Any, indent: str = "", used: int = 0) -> str:
    """A value as TypeScript writes it; the outermost table, and what is too long, a row a line."""
    flat = _flat(value)
    fits = len(indent) + used + len(flat) + 1 <= _WIDTH
    if not isinstance(value, dict) or (indent and fits):
        return flat
    inner = f"{indent}  "
    rows: list[str] = []
    for key, part in cast("dict[str, Any]", value).items():
        head = f"{_key(key)}: "
        rows.append(f"{inner}{head}{_literal(part, inner, len(head))}")
    return "{\n" + ",\n".join(rows) + f",\n{indent}}}"


def _flat(value: Any) -> str:
    if isinstance(value, dict):
        found = cast("dict[str, Any]", value)
        rows = ", ".join(f"{_key(key)}: {_flat(part)}" for key, part in found.items())
        return f"{{ {rows} }}" if rows else "{}"
    if isinstance(value, list):
        return f"[{', '.join(_flat(part) for part in cast('list[Any]', value))}]"
    return msgspec.json.encode(value).decode()


def _key(key: str) -> str:
    return key if re.fullmatch(_BARE_KEY, key) else _flat(key)
