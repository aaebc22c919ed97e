"""What the body of an error says, in whatever shape a vendor sends it (A3.19)."""

import json
import re
from typing import Any, Final, cast

import msgspec

from towline_agent.providers.surrogates import mend

__all__ = ["ErrorBody", "read_error_body", "read_error_value"]

_Json = dict[str, Any]

_KEYS: Final = ("error", "message", "Message", "msg", "detail", "errors", "response")
"""Where errors stand in errors; the first that says something is taken. A failed `response` is what
the Responses API ends its streams with."""
_DEPTH: Final = 6
"""Levels of errors, lists and texts inside each other that are looked into; real ones have five."""
_MAX_TEXT: Final = 4000
"""Characters of a message that are looked at."""
_MAX_PAGE: Final = 65_536
"""Characters of a page in which its title is looked for: it stands in the head."""
_MAX_SIGN: Final = 200
"""Characters of a type or a code; real ones are words."""
_MAX_DETAILS: Final = 32
"""Typed details that are read; real errors have up to five."""
_TITLE: Final = r"(?i)<title[^<>]{0,200}>([^<]{1,400})"
_HIDDEN: Final = r"(?is)<(script|style)\b[^<>]{0,500}>.*?(?:</\1>|\Z)"
_TAG: Final = r"<[^<>]{0,2000}>"
_MAX_NUMBER: Final = 2**63
"""A code that is larger is none."""
_STATUSES: Final = range(100, 600)
_STATUS_DIGITS: Final = 3


class ErrorBody(msgspec.Struct, frozen=True, kw_only=True):
    """An error in a vendor's words."""

    message: str = ""
    """The sentence for people, on one line; empty when there was none."""
    signs: str = ""
    """Type, code and status words, joined by spaces."""
    status: int | None = None
    """The HTTP status that the body itself states."""
    details: tuple[_Json, ...] = ()
    """Google's typed details."""
    page: bool = False
    """The body was no JSON: a web page, or plain text."""


def read_error_body(body: bytes) -> ErrorBody:
    """The error in a body: JSON of any known shape, HTML, plain text or nothing. Never raises."""
    text = body.decode("utf-8", "replace").strip()
    if not text:
        return ErrorBody()
    try:
        value: Any = json.loads(text)
    except (ValueError, RecursionError):
        return ErrorBody(message=_plain(text), page=True)
    return read_error_value(value)


def read_error_value(value: Any) -> ErrorBody:
    """The error in a JSON value, such as an `error` object in a stream. Never raises."""
    return _read(value, _DEPTH)


def _read(value: Any, depth: int) -> ErrorBody:
    if not depth:
        return ErrorBody()
    match value:
        case str():
            return _read_text(value, depth)
        case list():
            found = (_read(item, depth - 1) for item in cast("list[Any]", value))
            return next((body for body in found if body.message or body.signs), ErrorBody())
        case dict():
            return _read_object(cast("_Json", value), depth)
        case _:
            return ErrorBody()


def _read_text(text: str, depth: int) -> ErrorBody:
    """A message; some gateways put a whole error into it, as JSON."""
    if text.lstrip().startswith("{"):
        try:
            inner = _read(json.loads(text), depth - 1)
        except (ValueError, RecursionError):
            inner = ErrorBody()
        if inner.message:
            return inner
    return ErrorBody(message=_line(text))


def _read_object(found: _Json, depth: int) -> ErrorBody:
    inner = ErrorBody()
    for key in _KEYS:
        if found.get(key):
            inner = _read(found[key], depth - 1)
            if inner.message or inner.signs:
                break
    signs = [found.get(key) for key in ("type", "error_type", "code", "status")]
    words = [_sign(sign) for sign in signs if isinstance(sign, str | int) and sign is not True]
    raw = _raw_words(found, depth)
    return ErrorBody(
        message=f"{inner.message} {raw}".strip()[:_MAX_TEXT],
        signs=" ".join([*words, inner.signs]).strip(),
        status=inner.status or _status(found),
        details=inner.details or _details(found),
    )


def _sign(sign: str | int) -> str:
    """A type or a code as a word; a number without end says nothing."""
    if isinstance(sign, int):
        return str(sign) if abs(sign) < _MAX_NUMBER else ""
    return mend(sign[:_MAX_SIGN])


def _raw_words(found: _Json, depth: int) -> str:
    """What a gateway passes on of the vendor behind it."""
    metadata = found.get("metadata")
    if not isinstance(metadata, dict):
        return ""
    return _read(cast("_Json", metadata).get("raw"), depth - 1).message


def _status(found: _Json) -> int | None:
    for key in ("status", "code", "status_code"):
        number = found.get(key)
        if isinstance(number, str) and number.isdecimal() and len(number) == _STATUS_DIGITS:
            number = int(number)
        if isinstance(number, int) and number in _STATUSES:
            return number
    return None


def _details(found: _Json) -> tuple[_Json, ...]:
    details = found.get("details")
    if not isinstance(details, list):
        return ()
    return tuple(
        cast("_Json", item)
        for item in cast("list[Any]", details)[:_MAX_DETAILS]
        if isinstance(item, dict)
    )


def _plain(text: str) -> str:
    """The words of a page, or the text itself."""
    if not text.startswith("<"):
        return _line(text)
    import html  # its table of signs is large, and few programs ever meet a page

    title = re.search(_TITLE, text[:_MAX_PAGE])
    if title:
        return _line(html.unescape(title[1]))
    shown = re.sub(_HIDDEN, " ", text[:_MAX_TEXT])
    return _line(html.unescape(re.sub(_TAG, " ", shown)))


def _line(text: str) -> str:
    return mend(" ".join(text[:_MAX_TEXT].split()))
