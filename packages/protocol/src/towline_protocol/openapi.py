"""The contract as an OpenAPI 3.1 document and as a short table, made from its rows."""

import hashlib
import re
from collections.abc import Iterable
from typing import Any, Final

import msgspec
from msgspec import inspect as types

from towline_protocol.commands import Manifest, ManifestRow, Problem
from towline_protocol.docstrings import field_docs
from towline_protocol.events import Envelope
from towline_protocol.faults import FAULT_CODES
from towline_protocol.frames import CONTROL_FRAMES
from towline_protocol.operations import (
    AREAS,
    CONTRACT_HEADER,
    CONTRACT_VERSION,
    OPERATIONS,
    QUERIES,
    Operation,
    Query,
    fault_codes,
    takes_match,
)

__all__ = ["contract_manifest", "openapi_document", "schema_hash"]

_PLACE: Final = "#/components/schemas/{name}"
_COOKIE: Final = "towline"
_KEY_CHARS: Final = 200  # of an Idempotency-Key

_ABOUT: Final = (
    "Durable agent sessions: an event log, a live stream, recovery. Every answer carries "
    f"`{CONTRACT_HEADER}: {CONTRACT_VERSION}`; a client takes a success without it for none. "
    "Readers ignore fields that they do not know and treat every enumeration as open."
)

_STREAM: Final = (
    "Server-sent events: first `hello`, then every stored event after the cursor, then what is "
    "open, then what is live. The `data` of an event without a name is an `Envelope`; control "
    f"frames go by their names: {', '.join(f'`{name}`' for name in CONTROL_FRAMES)}."
)


def openapi_document(cookie: str = _COOKIE, *, root: str = "/") -> dict[str, Any]:
    """The document, as a value to encode.

    Args:
        cookie: The name of the cookie that holds a page's token; it is another one on each server.
        root: The path that all others lie below.
    """
    paths: dict[str, dict[str, Any]] = {}
    for operation in OPERATIONS.values():
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation)
    return {
        "openapi": "3.1.0",
        "info": {"title": "towline", "version": CONTRACT_VERSION, "description": _ABOUT},
        "jsonSchemaDialect": "https://json-schema.org/draft/2020-12/schema",
        "servers": [{"url": root}],
        "tags": [{"name": name} for name in dict.fromkeys(AREAS.values())],
        "security": [{"bearer": []}, {"cookie": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "cookie": {"type": "apiKey", "in": "cookie", "name": cookie},
            },
            "headers": _HEADERS,
            "parameters": _PARAMETERS,
            "responses": _problems(),
            "schemas": _schemas(),
        },
    }


def schema_hash() -> str:
    """The SHA-256 of the document, in hex: two servers with the same one speak the same."""
    return hashlib.sha256(msgspec.json.encode(openapi_document(), order="sorted")).hexdigest()


def contract_manifest() -> Manifest:
    """Every operation in a line, for clients that would rather not read an OpenAPI document."""
    rows = tuple(map(_row, OPERATIONS.values()))
    return Manifest(contract=CONTRACT_VERSION, schema_sha256=schema_hash(), operations=rows)


def _row(operation: Operation) -> ManifestRow:
    return ManifestRow(
        name=operation.name,
        area=AREAS[operation.name],
        method=operation.method,
        path=operation.path,
        summary=operation.summary,
        request=None if operation.request is None else operation.request.__name__,
        answer=None if operation.answer is None else operation.answer.__name__,
        status=operation.status,
        query=operation.query,
        faults=fault_codes(operation),
        idempotent=operation.idempotent,
        stream=operation.stream,
        open=operation.open,
        admin=operation.admin,
        large=operation.large,
        media=operation.media,
    )


def _operation(operation: Operation) -> dict[str, Any]:
    found: dict[str, Any] = {
        "operationId": operation.name,
        "tags": [AREAS[operation.name]],
        "summary": operation.summary,
        "parameters": [*_path_parameters(operation.path), *_query_parameters(operation)],
        "responses": {str(operation.status): _success(operation), **_refusals(operation)},
    }
    found["parameters"] += [{"$ref": f"#/components/parameters/{n}"} for n in _headers(operation)]
    if operation.request is not None:
        content = {"application/json": {"schema": _reference(operation.request)}}
        found["requestBody"] = {"required": True, "content": content}
    if operation.raw:
        found["requestBody"] = {"required": True, "content": {"*/*": {}}}
    if operation.open:
        found["security"] = []
    if operation.admin:
        found["description"] = "For admins alone."
    return found


def _path_parameters(path: str) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "in": "path",
            "required": True,
            "description": f"The id of the {name.replace('_', ' ')}.",
            "schema": {"type": "string", "minLength": 1},
        }
        for name in re.findall(r"\{(\w+)", path)
    ]


def _query_parameters(operation: Operation) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "query", "description": row.about, "schema": _query_schema(row)}
        for name in operation.query
        for row in (QUERIES[name],)
    ]


def _query_schema(row: Query) -> dict[str, Any]:
    if row.kind == "flag":
        return {"type": "boolean"}
    if row.kind == "integer":
        bounds = {"minimum": row.least, "maximum": row.most}
        return {"type": "integer"} | {k: v for k, v in bounds.items() if v is not None}
    return {"type": "string"} | ({} if row.most is None else {"maxLength": row.most})


def _headers(operation: Operation) -> list[str]:
    """The headers that an operation reads, by their names in the components."""
    found = {
        "idempotency-key": operation.idempotent,
        "if-match": takes_match(operation),
        "last-event-id": operation.stream,
        CONTRACT_HEADER: True,
        "towline-timeout": not operation.stream,
        "traceparent": True,
        "x-request-id": True,
    }
    return [name for name, read in found.items() if read]


def _success(operation: Operation) -> dict[str, Any]:
    names = [CONTRACT_HEADER, "x-request-id"]
    if any(takes_match(row) for row in OPERATIONS.values() if row.path == operation.path):
        names.append("etag")
    found: dict[str, Any] = {
        "description": _STREAM if operation.stream else "Done.",
        "headers": {name: {"$ref": f"#/components/headers/{name}"} for name in names},
    }
    if operation.stream:
        found["content"] = {"text/event-stream": {"schema": {"type": "string"}}}
    elif operation.media is not None:
        found["content"] = {operation.media: {"schema": _media_schema(operation.media)}}
    elif operation.answer is not None:
        found["content"] = {"application/json": {"schema": _reference(operation.answer)}}
    return found


def _media_schema(media: str) -> dict[str, Any]:
    if media == "application/json":
        return {"type": "object"}
    return {"type": "string"} if media.startswith("text/") else {}


def _refusals(operation: Operation) -> dict[str, Any]:
    """Status to what an operation may refuse with."""
    statuses = sorted({FAULT_CODES[code].status for code in fault_codes(operation)})
    return {str(status): {"$ref": f"#/components/responses/{status}"} for status in statuses}


def _problems() -> dict[str, Any]:
    """The answers that say no, one for each status."""
    found: dict[str, Any] = {}
    for status in sorted({row.status for row in FAULT_CODES.values()}):
        codes = [code for code, row in FAULT_CODES.items() if row.status == status]
        names = [CONTRACT_HEADER, "x-request-id"]
        names += ["retry-after"] if status in (429, 503) else []
        found[str(status)] = {
            "description": f"Refused: {' or '.join(f'`{code}`' for code in codes)}.",
            "headers": {name: {"$ref": f"#/components/headers/{name}"} for name in names},
            "content": {
                "application/problem+json": {
                    "schema": {
                        "allOf": [
                            _reference(Problem),
                            {"properties": {"code": {"enum": codes}, "status": {"const": status}}},
                        ]
                    }
                }
            },
        }
    return found


def _reference(body: type[msgspec.Struct]) -> dict[str, str]:
    return {"$ref": _PLACE.format(name=body.__name__)}


def _schemas() -> dict[str, Any]:
    """The schema of every body, each field with the sentence that documents it."""
    bodies: dict[type[msgspec.Struct], None] = {Problem: None, Envelope: None}
    bodies |= dict.fromkeys(CONTROL_FRAMES.values())
    for operation in OPERATIONS.values():
        bodies |= {b: None for b in (operation.request, operation.answer) if b is not None}
    _, found = msgspec.json.schema_components(bodies, ref_template=_PLACE)
    for info in _structs(bodies):
        _describe(found[info.cls.__name__], info)
    return dict(sorted(found.items()))


def _describe(schema: dict[str, Any], info: types.StructType) -> None:
    docs = field_docs(info.cls)
    for field in info.fields:
        text = docs.get(field.name)
        if text:
            schema["properties"][field.encode_name]["description"] = " ".join(text.split())


def _structs(bodies: Iterable[type[msgspec.Struct]]) -> Iterable[types.StructType]:
    """The structs of some bodies, and all that stand in them."""
    found: dict[str, types.StructType] = {}
    waiting: list[Any] = list(types.multi_type_info(bodies))
    while waiting:
        info = waiting.pop()
        if isinstance(info, types.StructType):
            if info.cls.__name__ not in found:
                found[info.cls.__name__] = info
                waiting += [field.type for field in info.fields]
        elif isinstance(info, types.UnionType):
            waiting += info.types
        elif isinstance(info, types.VarTupleType):
            waiting.append(info.item_type)
        elif isinstance(info, types.DictType):
            waiting.append(info.value_type)
    return found.values()


def _header_parameter(name: str, about: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "in": "header", "description": about, "schema": schema}


_PARAMETERS: Final[dict[str, Any]] = {
    "idempotency-key": _header_parameter(
        "Idempotency-Key",
        "The same key with the same body is done once and answered the same, for 24 hours.",
        {"type": "string", "minLength": 1, "maxLength": _KEY_CHARS},
    ),
    "if-match": _header_parameter(
        "If-Match",
        "The `ETag` of what was read; when it has changed since, nothing is done (412).",
        {"type": "string"},
    ),
    "last-event-id": _header_parameter(
        "Last-Event-ID", "Go on after the stored event of this number.", {"type": "string"}
    ),
    CONTRACT_HEADER: _header_parameter(
        CONTRACT_HEADER,
        "The contract that the caller speaks; another major version is refused.",
        {"const": CONTRACT_VERSION},
    ),
    "towline-timeout": _header_parameter(
        "towline-timeout",
        "Seconds that this request may take; then it is answered with 504.",
        {"type": "number", "minimum": 0.001, "maximum": 86400},
    ),
    "traceparent": _header_parameter(
        "traceparent", "The caller's trace (W3C); the server's log names it.", {"type": "string"}
    ),
    "x-request-id": _header_parameter(
        "x-request-id",
        "How the caller names this request, in letters, digits, `.`, `_` and `-`; the server's log "
        "and the answer name it so too.",
        {"type": "string"},
    ),
}

_HEADERS: Final[dict[str, Any]] = {
    CONTRACT_HEADER: {
        "description": "The contract's major version.",
        "required": True,
        "schema": {"const": CONTRACT_VERSION},
    },
    "etag": {"description": "For a later `If-Match`.", "schema": {"type": "string"}},
    "retry-after": {
        "description": "Seconds until a retry can help.",
        "required": True,
        "schema": {"type": "integer", "minimum": 1},
    },
    "x-request-id": {
        "description": "How the server's log names this request.",
        "required": True,
        "schema": {"type": "string"},
    },
}
