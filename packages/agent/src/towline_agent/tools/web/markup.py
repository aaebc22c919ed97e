"""HTML as a stream of tags and text, in one pass.

Pages are hostile: the time this takes grows with their length alone, whatever is nested in what or
left open, which can't be said of parsers that build a tree (nesting) or search for what is not there
(the one that comes with Python).
"""

import html
import re
from collections.abc import Iterator
from typing import Final

import msgspec

__all__ = ["Tag", "read_markup"]

RAW: Final = frozenset({"script", "style", "textarea", "title", "xmp", "iframe", "noembed"})
"""Elements whose content is text up to their own end tag."""

_OPEN: Final = re.compile(r"<(?=[a-zA-Z/!?])")
_NAME: Final = re.compile(r"[a-zA-Z][^\s/>\x00]*+")
_ATTRIBUTE: Final = re.compile(
    r"""[\s/]*+([^\s/>=][^\s/>=]*+)(?:\s*+=\s*+(?:"([^"]*+)"|'([^']*+)'|([^\s>]*+)))?+"""
)
_REST: Final = re.compile(r"[\s/=]*+")
_LONG_NUMBER: Final = re.compile(r"&#(?:[xX][0-9a-fA-F]{9,}|[0-9]{9,});?")
_MAX_ATTRIBUTES: Final = 64
"""Of one tag that are kept."""


class Tag(msgspec.Struct, frozen=True):
    """A start or an end tag."""

    name: str
    """In lower case."""
    attributes: dict[str, str]
    """Of a start tag, names in lower case."""
    end: bool = False
    """Whether it is an end tag."""


def read_markup(text: str) -> Iterator[Tag | str]:
    """The tags and the text between them, entities resolved; comments and the like are left out."""
    at = 0
    while at < len(text):
        found = _OPEN.search(text, at)
        start = len(text) if found is None else found.start()
        if start > at:
            yield _resolve(text[at:start])
        if found is None:
            return
        tag, at = _read_tag(text, start)
        if tag is None:
            continue
        yield tag
        if tag.name in RAW and not tag.end:
            stop = _end_of_raw(text, tag.name, at)
            if stop > at:
                yield text[at:stop] if tag.name in ("script", "style") else _resolve(text[at:stop])
            at = stop


def _read_tag(text: str, start: int) -> tuple[Tag | None, int]:
    """The tag at a `<` and where it ends; no tag for what is passed over."""
    if text.startswith("<!--", start):
        return None, _behind(text, "-->", start + 2)
    if text.startswith(("<!", "<?"), start):
        return None, _behind(text, ">", start)
    end = text.startswith("</", start)
    named = _NAME.match(text, start + 1 + end)
    if named is None:
        return None, _behind(text, ">", start)
    attributes: dict[str, str] = {}
    at = named.end()
    while found := _ATTRIBUTE.match(text, at):
        at = found.end()
        if len(attributes) < _MAX_ATTRIBUTES:
            value = found[2] or found[3] or found[4] or ""
            attributes.setdefault(found[1].lower(), _resolve(value))
    at = _REST.match(text, at).end()  # pyright: ignore[reportOptionalMemberAccess] - always matches
    if at >= len(text):
        return None, len(text)  # never closed: browsers leave it out too
    return Tag(named[0].lower(), {} if end else attributes, end), at + 1


def _behind(text: str, mark: str, at: int) -> int:
    found = text.find(mark, at)
    return len(text) if found < 0 else found + len(mark)


def _end_of_raw(text: str, name: str, at: int) -> int:
    found = re.compile(f"(?i)</{name}(?=[\\s/>])").search(text, at)
    return len(text) if found is None else found.start()


def _resolve(text: str) -> str:
    # A number of a thousand digits is an error in Python's own function.
    return html.unescape(_LONG_NUMBER.sub("\ufffd", text)) if "&" in text else text
