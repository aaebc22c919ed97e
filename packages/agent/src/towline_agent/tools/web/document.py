"""The body of an HTTP answer as text: charset, HTML, JSON, or a word on what it is (A5.33)."""

import codecs
import json
import re
from typing import Final

import msgspec

from towline_agent.tools.web.page import page_text

__all__ = ["Document", "media_type", "read_body", "read_document"]

_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_CHARSETS: Final = re.compile(
    r"(?:utf[-_](?:8|16|16[-_]le|16[-_]be)|ascii|iso8859-\d+|cp(?:125\d|866|874|932|949)|koi8-[ru]|"
    r"gb2312|gbk|gb18030|big5|big5hkscs|euc_jp|euc_kr|shift_jis|iso2022_jp|mac-roman)"
)
"""Python's names of charsets that pages are in. It knows others that are no charsets at all, and
some that take a long time."""
_WIDER: Final = {"iso8859-1": "cp1252", "ascii": "cp1252", "gb2312": "gb18030", "gbk": "gb18030"}
"""What browsers read in place of others, which pages name by mistake."""
_PARAMETER: Final = re.compile(r"(?i)charset\s*=\s*[\"']?([\w.:+-]{1,40})")
_META: Final = re.compile(
    rb"(?i)<meta\s[^>]{0,200}charset\s*=\s*[\"']?\s*([\w.:+-]{1,40})"
)
_META_BYTES: Final = 1024
"""Browsers look for a page's own word no further."""
_PROBE_BYTES: Final = 8192
_TEXTS: Final = re.compile(
    r"text/.*|application/(?:.*\+)?(?:json|xml|javascript|ecmascript|x-javascript|yaml|x-yaml|toml|"
    r"graphql|sql|x-sh|x-ndjson|x-www-form-urlencoded)|image/svg\+xml|.*\+(?:json|xml|yaml)"
)
_MAX_JSON: Final = 500_000
"""Characters of JSON that is put into lines; a longer one stays as it is."""
_INDENTED: Final = 4
"""Times its length that JSON may grow to by that: nesting is cheap to write and dear to indent."""


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """What an answer's body says."""

    text: str
    """The words."""
    title: str = ""
    """A page's title."""
    more: bool = False
    """Whether it goes on behind them."""
    binary: bool = False
    """Whether it is no text; `text` says what it is."""


def media_type(header: str) -> str:
    """The media type of a `Content-Type`, in lower case; empty for none."""
    return header.partition(";")[0].strip().lower()


def read_document(body: bytes, header: str, url: str, limit: int) -> Document:
    """A body for a reader: pages as text, JSON in lines.

    Args:
        body: Its bytes.
        header: Its `Content-Type`.
        url: Where it stands.
        limit: Characters after which a page may stop.
    """
    kind = media_type(header)
    text = _decode(body, header)
    if text is None:
        return Document(text=_tell_binary(body, kind), binary=True)
    if kind in ("text/html", "application/xhtml+xml") or (not kind and _looks_like_page(text)):
        title, words, more = page_text(text, url, limit)
        return Document(text=words, title=title, more=more)
    if kind.endswith(("/json", "+json")):
        text = _indent(text)
    return Document(text=text[: limit + 1], more=len(text) > limit)


def read_body(body: bytes, header: str, limit: int) -> Document:
    """A body as it came, but JSON in lines.

    Args:
        body: Its bytes.
        header: Its `Content-Type`.
        limit: Characters after which it may stop.
    """
    text = _decode(body, header)
    kind = media_type(header)
    if text is None:
        return Document(text=_tell_binary(body, kind), binary=True)
    if kind.endswith(("/json", "+json")) or (not kind and text[:1] in ("{", "[")):
        text = _indent(text)
    return Document(text=text[: limit + 1], more=len(text) > limit)


def _decode(body: bytes, header: str) -> str | None:
    """The text of a body; `None` for one that is no text (A5.7)."""
    for mark, charset in _MARKS:
        if body.startswith(mark):
            return body[len(mark) :].decode(charset, "replace")
    kind = media_type(header)
    charset = _charset(_PARAMETER.search(header))
    if kind and not _TEXTS.fullmatch(kind) and charset is None:
        return None
    wide = charset is not None and charset.startswith("utf-16")
    if b"\0" in body[:_PROBE_BYTES] and not wide:
        return None
    if charset is None:
        charset = _charset(_META.search(body[:_META_BYTES]))
    if charset is not None:
        return body.decode(charset, "replace")
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.reason == "unexpected end of data":  # only its last letter is cut
            return body.decode("utf-8", "replace")
        return body.decode("cp1252", "replace")


def _charset(found: re.Match[str] | re.Match[bytes] | None) -> str | None:
    """The charset that was found, if it is one that pages are in."""
    if found is None:
        return None
    named = found[1]
    try:
        name = codecs.lookup(named if isinstance(named, str) else named.decode("ascii")).name
    except (LookupError, UnicodeError):
        return None
    return _WIDER.get(name, name) if _CHARSETS.fullmatch(name) else None


def _looks_like_page(text: str) -> bool:
    return re.match(r"(?i)\s*<(?:!doctype\s+html|html|head|body)\b", text[:_META_BYTES]) is not None


def _indent(text: str) -> str:
    if len(text) > _MAX_JSON:
        return text
    try:
        pretty = json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return text
    return pretty if len(pretty) <= _INDENTED * len(text) + 1000 else text


def _tell_binary(body: bytes, kind: str) -> str:
    shown = kind if re.fullmatch(r"[\w.+-]{1,60}/[\w.+-]{1,60}", kind) else "of no stated kind"
    return f"[{len(body)} bytes of binary data, {shown}; not shown]"
