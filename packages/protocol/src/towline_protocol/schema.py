"""The words as TypeScript: the types and the tables that the web app is built on (D14).

Three files are made from the Python types, and a test holds that they are fresh: the types, with
the sentences that document them, and where each operation stands; the shapes, by which a reader
checks what came over the wire; and of both tables what the first screen does without.
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
from towline_protocol.commands import ClientBlock, Problem
from towline_protocol.content import Block, PromptBlock, ResultBlock
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

__all__ = ["typescript_later", "typescript_shapes", "typescript_types"]

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
    sent = {row.request for row in OPERATIONS.values()} - {None}
    structs = _structs({*_STREAMED, *_read(frozenset(OPERATIONS)), *sent})
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
    """What a value must look like, as the text of a TypeScript module with two tables.

    A reader checks a value against them to tell a known kind in a known shape from `Unknown`
    (C1.11). They are written short, since every page loads them first.
    """
    structs = _first_rows()
    unions = _union_rows(structs)
    return "\n".join(
        [
            _HEAD,
            _comment(_NOTATION, ""),
            f"export const STRUCTS: Record<string, string> = {_literal(structs)};\n",
            "/** Union to its structs, each of which has a tag. */",
            f"export const UNIONS: Record<string, string> = {_literal(unions)};\n",
        ]
    )


def typescript_later() -> str:
    """The rows of both tables that the first screen does without, as a TypeScript module."""
    first = _first_rows()
    structs = _shape_rows(_structs({*_STREAMED, *_read(frozenset(OPERATIONS))}))
    structs = {name: row for name, row in structs.items() if name not in first}
    unions = {
        name: row for name, row in _union_rows(structs).items() if name not in _union_rows(first)
    }
    return "\n".join(
        [
            _HEAD,
            'import type { Places } from "./types.gen.ts";\n',
            "/** More of the table of the same name in `shapes.gen.ts`. */",
            f"export const STRUCTS: Record<string, string> = {_literal(structs)};\n",
            "/** More of the table of the same name in `shapes.gen.ts`. */",
            f"export const UNIONS: Record<string, string> = {_literal(unions)};\n",
            "/** More of the table of the same name in `types.gen.ts`. */",
            f"export const OPERATIONS: Places = {_literal(_places(first=False))};\n",
        ]
    )


_FIRST: Final = frozenset(
    {
        "answer_permission",
        "answer_question",
        "create_session",
        "follow",
        "get_view",
        "interrupt",
        "list_sessions",
        "me",
        "send_prompt",
    }
)
"""What the first screen asks: it loads no table of the other operations."""

_STREAMED: Final = (Envelope, *CONTROL_FRAMES.values())
"""What a stream sends. The first screen shows a stored view before it has one."""

_NOTATION: Final = (
    "Struct to its fields, a word each: `name:shape`, or `name?:shape` for one that may be left "
    "out. The first word of a struct that a tag tells is `field=tag`. A shape is a letter for a "
    "plain kind (`a`nything, `b`oolean, `i`nteger, `n`umber), nothing for a string, or the name of "
    "a struct or of a union; behind it `[]` makes it a list, `{}` a map, and `|` says that it may "
    "be `null`. A `:` with nothing behind it is left out."
)


def _read(names: frozenset[str]) -> set[Any]:
    """What a client reads that asks these operations alone."""
    answers = {row.answer for row in OPERATIONS.values() if row.name in names}
    return {SessionView, Problem, *answers} - {None}


def _first_rows() -> dict[str, str]:
    return _shape_rows(_structs(_read(_FIRST)))


def _union_rows(structs: dict[str, str]) -> dict[str, str]:
    """The unions that stand in these rows, by name."""
    used = {word for row in structs.values() for word in re.findall(_BARE_KEY, row)}
    return {name: " ".join(_names(union)) for name, union in _UNIONS.items() if name in used}


def _structs(roots: set[Any]) -> list[types.StructType]:
    """These structs and all in them, by name."""
    found: dict[str, types.StructType] = {}
    for root in roots:
        _walk(types.type_info(root), found)
    return [found[name] for name in sorted(found)]


def _shape_rows(structs: list[types.StructType]) -> dict[str, str]:
    return {info.cls.__name__: _shape_row(info) for info in structs}


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
    types.AnyType: ("unknown", "a"),
    types.BoolType: ("boolean", "b"),
    types.FloatType: ("number", "n"),
    types.IntType: ("number", "i"),
    types.StrType: ("string", ""),
}
"""Kind to its TypeScript type and its shape."""


def _shape_row(info: types.StructType) -> str:
    tag = [] if info.tag is None else [f"{info.tag_field}={info.tag}"]
    fields = [
        f"{field.encode_name}{'' if field.required else '?'}:{_shape(field.type)}".rstrip(":")
        for field in info.fields
    ]
    return " ".join([*tag, *fields])


def _shape(info: types.Type) -> str:
    match info:
        case types.StructType():
            return info.cls.__name__
        case types.UnionType():
            rest = [part for part in info.types if not isinstance(part, types.NoneType)]
            inner = _union_name(rest) if len(rest) > 1 else _shape(rest[0])
            if inner is None:
                raise TypeError(f"The union {rest!r} has no name; add it to those that have one.")
            return f"{inner}|" if len(rest) < len(info.types) else inner
        case types.VarTupleType():
            return f"{_shape(info.item_type)}[]"
        case types.DictType():
            return f"{_shape(info.value_type)}{{}}"
        case _:
            return _PLAIN[type(info)][1]


def _union(name: str, members: list[str]) -> str:
    line = f"export type {name} = {' | '.join(members)};"
    if len(line) <= _WIDTH:
        return f"{line}\n"
    return f"export type {name} =\n" + "\n".join(f"  | {part}" for part in members) + ";\n"


def _operations() -> str:
    lines = ["/** What each operation takes and gives. */", "export interface Operations {"]
    for row in OPERATIONS.values():
        request = "null" if row.request is None else row.request.__name__
        answer = "null" if row.answer is None else row.answer.__name__
        lines.append(_comment(row.summary, "  "))
        lines.append(f"  {row.name}: {{ request: {request}; answer: {answer} }};")
    lines.append(
        "}\n\n/** Where operations stand, and the struct that each answers with, if any. */"
    )
    lines.append("export type Places = {")
    lines.append(
        "  [Name in keyof Operations]?: readonly [method: string, path: string, answer?: string];"
    )
    lines.append(
        "};\n\n/** The places that the first screen asks; the others are in `later.gen.ts`. */"
    )
    lines.append(f"export const OPERATIONS: Places = {_literal(_places(first=True))};\n")
    return "\n".join(lines)


def _places(*, first: bool) -> dict[str, list[str]]:
    return {
        row.name: [row.method, row.path, *([] if row.answer is None else [row.answer.__name__])]
        for row in OPERATIONS.values()
        if (row.name in _FIRST) == first
    }


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
