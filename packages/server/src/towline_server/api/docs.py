"""The contract as a page: static HTML, without a script, for any width (D15)."""

import base64
import hashlib
from collections.abc import Iterator, Mapping
from functools import cache
from html import escape
from typing import Any, Final, cast

from towline_protocol import (
    AREAS,
    FAULT_CODES,
    OPERATIONS,
    QUERIES,
    Operation,
    fault_codes,
    openapi_document,
)

__all__ = ["DOCS_HEADERS", "docs_page"]

_STYLE: Final = """
:root { color-scheme: light dark; font: 1rem/1.5 system-ui, sans-serif; }
body { max-width: 44rem; margin: 0 auto; padding: 1rem; overflow-wrap: anywhere; }
code { font-family: ui-monospace, monospace; font-size: 0.95em; }
h2 { margin-top: 3rem; border-top: 1px solid; padding-top: 1rem; }
h3 { margin-top: 2rem; }
dt { margin-top: 0.5rem; }
dd { margin-left: 1rem; }
nav ul { columns: 14rem; padding-left: 1.2rem; }
"""

_CSP: Final = "; ".join(
    [
        "default-src 'none'",
        f"style-src 'sha256-{base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()}'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    ]
)

DOCS_HEADERS: Final = {
    "content-type": "text/html; charset=utf-8",
    "content-security-policy": _CSP,
    "cache-control": "no-cache",
}
"""The head of the page: it may load nothing and run nothing; its one style is named by its hash."""

_INTRO: Final = """\
<p>JSON over HTTP. Every answer carries <code>towline-contract: 1</code>; take a success without it
for none. The credential goes into <code>Authorization: Bearer …</code>, or into the cookie that
<code>claim</code> and <code>login</code> set for browsers. Fields of a body that a server does not
know are passed over: look twice at their names.</p>
<p>The same as data: <a href="openapi.json">OpenAPI</a>,
<a href="api/manifest">the table of operations</a>.</p>"""

_Schema = Mapping[str, Any]


@cache
def docs_page() -> bytes:
    """The whole page, made from the table and the sentences of the words."""
    parts = [
        "<!doctype html>",
        '<html lang="en">',
        '<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width">',
        "<title>towline: the contract</title>",
        f"<style>{_STYLE}</style>",
        "<h1>The contract</h1>",
        _INTRO,
        *_contents(),
        *_areas(),
        *_schemas(openapi_document()["components"]["schemas"]),
        *_faults(),
        "</html>\n",
    ]
    return "\n".join(parts).encode()


def _contents() -> Iterator[str]:
    yield '<nav aria-label="Operations"><ul>'
    for name in OPERATIONS:
        yield f'<li><a href="#{name}">{name}</a></li>'
    yield "</ul></nav>"


def _areas() -> Iterator[str]:
    for area in dict.fromkeys(AREAS.values()):
        yield f"<h2>{area.replace('_', ' ').capitalize()}</h2>"
        for name, row in OPERATIONS.items():
            if AREAS[name] == area:
                yield from _operation(row)


def _operation(row: Operation) -> Iterator[str]:
    yield f'<h3 id="{row.name}">{row.name}</h3>'
    yield f"<p><code>{row.method} {escape(row.path)}</code></p>"
    yield f"<p>{_prose(row.summary)} {' '.join(_flags(row))}</p>"
    yield "<dl>"
    if row.request is not None:
        yield _entry("Body", _link(row.request.__name__))
    for name in row.query:
        yield _entry(f"<code>?{name}=</code>", _prose(QUERIES[name].about))
    yield _entry("Answer", _answer(row))
    yield _entry("Refusals", ", ".join(f'<a href="#fault-{c}">{c}</a>' for c in fault_codes(row)))
    yield "</dl>"


def _flags(row: Operation) -> Iterator[str]:
    if row.open:
        yield "Needs no credential."
    if row.admin:
        yield "For admins."
    if row.idempotent:
        yield "Takes an <code>Idempotency-Key</code>."


def _answer(row: Operation) -> str:
    if row.stream:
        return f"{row.status}, server-sent events: {_link('Envelope')}"
    if row.answer is not None:
        return f"{row.status}, {_link(row.answer.__name__)}"
    return f"{row.status}" if row.media is None else f"{row.status}, <code>{row.media}</code>"


def _schemas(schemas: _Schema) -> Iterator[str]:
    yield "<h2>Words</h2>"
    for name, schema in schemas.items():
        yield f'<h3 id="word-{name}">{name}</h3>'
        yield f"<p>{_prose(schema.get('description', ''))}</p>"
        fields = cast("_Schema", schema.get("properties", {}))
        needed = cast("list[str]", schema.get("required", []))
        yield "<dl>"
        for field, about in fields.items():
            mark = "" if field in needed else ", may be left out"
            head = f"<code>{escape(field)}</code>: {_kind(about)}{mark}"
            yield _entry(head, _prose(about.get("description", "")))
        yield "</dl>"


def _faults() -> Iterator[str]:
    yield "<h2>Faults</h2>"
    yield f"<p>An error answer is <code>application/problem+json</code>: {_link('Problem')}.</p>"
    yield "<dl>"
    for code, row in FAULT_CODES.items():
        head = f'<code id="fault-{code}">{code}</code>'
        yield _entry(head, f"{row.status}, retry: {row.retry.replace('_', ' ')}")
    yield "</dl>"


def _kind(schema: _Schema) -> str:
    """What a field holds, in a few words."""
    if "$ref" in schema:
        return _link(str(schema["$ref"]).rpartition("/")[2])
    if "anyOf" in schema:
        return " or ".join(_kind(part) for part in schema["anyOf"])
    if "enum" in schema:
        return " or ".join(f"<code>{escape(str(word))}</code>" for word in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {_kind(schema.get('items', {}))}"
    return escape(str(schema.get("type", "any value")))


def _link(name: str) -> str:
    return f'<a href="#word-{name}">{name}</a>'


def _entry(term: str, text: str) -> str:
    return f"<dt>{term}</dt><dd>{text}</dd>" if text else f"<dt>{term}</dt>"


def _prose(text: str) -> str:
    """A sentence whose `words` are code."""
    parts = escape(text, quote=False).split("`")
    return "".join(f"<code>{part}</code>" if at % 2 else part for at, part in enumerate(parts))
