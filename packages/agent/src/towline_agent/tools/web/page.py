"""A web page as text that a model reads well (A5.33)."""

import re
from itertools import islice
from typing import Final
from urllib.parse import urljoin, urlsplit

from towline_agent.tools.web.markup import Tag, read_markup

__all__ = ["MAX_TOKENS", "page_text"]

MAX_TOKENS: Final = 200_000
"""Tags and pieces of text that are looked at: far more than people read, and some seconds' work."""

_SKIPPED: Final = frozenset(
    {"applet", "audio", "canvas", "datalist", "dialog", "embed", "frameset", "head", "iframe",
     "map", "math", "noembed", "noframes", "object", "script", "select", "style", "svg",
     "template", "textarea", "title", "video", "xmp"}
)  # fmt: skip
"""Elements of which nothing is read."""
_VOID: Final = frozenset(
    {"area", "base", "br", "col", "embed", "frame", "hr", "img", "input", "link", "meta", "param",
     "source", "track", "wbr"}
)  # fmt: skip
"""Elements without an end tag."""
_BLOCKS: Final = frozenset(
    {"address", "article", "aside", "blockquote", "body", "center", "dd", "details", "div", "dl",
     "dt", "fieldset", "figcaption", "figure", "footer", "form", "header", "hgroup", "html",
     "legend", "li", "main", "menu", "nav", "ol", "p", "pre", "search", "section", "summary",
     "table", "tbody", "tfoot", "thead", "tr", "ul"}
)  # fmt: skip
_PARAGRAPHS: Final = frozenset({"blockquote", "dl", "figure", "ol", "p", "pre", "table", "ul"})
"""Blocks with an empty line round them."""
_HEADINGS: Final = {f"h{level}": level for level in range(1, 7)}
_MARKS: Final = {"b": "**", "strong": "**", "code": "`", "kbd": "`", "samp": "`"}
_HIDING: Final = re.compile(r"(?i)display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*0(?!\.?[1-9])")
_SPACES: Final = re.compile(r"[ \t\r\n\f\v]+")
_LINK_CHARS: Final = 500
"""Of a link's address; a longer one holds state of the page rather than a place."""
_DEPTH: Final = 8
"""Lists in lists that are indented further."""


def page_text(text: str, url: str, limit: int) -> tuple[str, str, bool]:
    """A page's title and its text, as Markdown without frills.

    What people do not see is left out: scripts, styles, hidden parts.

    Args:
        text: The HTML.
        url: Where it stands; links are made whole with it.
        limit: Characters after which it stops.

    Returns:
        The title, the text, and whether the page goes on behind it.
    """
    reader = _Reader(url, limit)
    tokens = read_markup(text)
    for token in islice(tokens, MAX_TOKENS):
        if isinstance(token, str):
            reader.say(token)
        elif token.end:
            reader.leave(token.name)
        else:
            reader.enter(token)
        if reader.full:
            break
    return reader.title, reader.text, reader.full or next(tokens, None) is not None


class _Reader:
    """Writes down what a stream of tags and text says."""

    def __init__(self, url: str, limit: int) -> None:
        self.title = ""
        self._base = url
        self._limit = limit
        self._parts: list[str] = []
        self._chars = 0
        self._line_ends = 2  # at the end of what is written; nothing counts as an empty line
        self._space = False
        self._skip = ""  # the element of which nothing is read
        self._skip_depth = 0
        self._pre = 0
        self._lists: list[int] = []  # of each open list the next number; -1 without numbers
        self._links: list[str] = []
        self._cells = 0

    @property
    def full(self) -> bool:
        return self._chars > self._limit

    @property
    def text(self) -> str:
        return "".join(self._parts).strip()

    def say(self, text: str) -> None:
        """Some text."""
        if self._skip:
            if self._skip == "title" and not self.title:
                self.title = _SPACES.sub(" ", text).strip()[:300]
            return
        if self._pre:
            self._write(text)
            return
        words = _SPACES.sub(" ", text)
        if words.startswith(" "):
            self._space = True
        bare = words.strip(" ")
        if bare:
            self._put(bare)
            self._space = words.endswith(" ")

    def enter(self, tag: Tag) -> None:
        """A start tag."""
        name = tag.name
        if self._skip:
            self._enter_skipped(name)
        elif name in _SKIPPED and name not in _VOID or _is_hidden(tag):
            if name not in _VOID:
                self._skip, self._skip_depth = name, 1
        elif name == "base" and "href" in tag.attributes:
            self._base = _join(self._base, tag.attributes["href"]) or self._base
        else:
            self._enter_shown(tag)

    def leave(self, name: str) -> None:
        """An end tag."""
        if self._skip:
            self._skip_depth -= name == self._skip
            if self._skip_depth <= 0:
                self._skip = ""
            return
        if name in _HEADINGS or name in _BLOCKS:
            self._leave_block(name)
        elif name in _MARKS and not self._pre:
            self._write(_MARKS[name])
        elif name == "a" and self._links:
            link = self._links.pop()
            self._write(f"]({link})" if link else "")

    def _enter_skipped(self, name: str) -> None:
        if self._skip == "head" and name == "title" and not self.title:
            self._skip, self._skip_depth = "title", 1
        elif self._skip == "head" and name == "body":
            self._skip = ""  # pages leave end tags out
        else:
            self._skip_depth += name == self._skip

    def _enter_shown(self, tag: Tag) -> None:
        name = tag.name
        if name in _HEADINGS:
            self._break(2)
            self._put("#" * _HEADINGS[name] + " ")
        elif name in _BLOCKS:
            self._enter_block(name)
        elif name in _MARKS and not self._pre:
            self._put(_MARKS[name])
        elif name == "a":
            self._enter_link(tag.attributes.get("href", ""))
        elif name == "br":
            self._write("\n")
        elif name == "hr":
            self._break(2)
            self._put("---")
            self._break(2)
        elif name in ("td", "th"):
            self._put(" | " if self._cells else "")
            self._cells += 1
        elif name == "img" and tag.attributes.get("alt", "").strip():
            self._put(f"![{_SPACES.sub(' ', tag.attributes['alt']).strip()[:300]}]")

    def _enter_link(self, target: str) -> None:
        whole = _join(self._base, target)
        wanted = whole is not None and target[:1] not in ("", "#") and len(whole) <= _LINK_CHARS
        self._links.append(whole if whole is not None and wanted else "")
        if wanted:
            self._put("[")

    def _enter_block(self, name: str) -> None:
        self._break(2 if name in _PARAGRAPHS and not (self._lists and name != "p") else 1)
        if name in ("ul", "ol", "menu"):
            self._lists.append(1 if name == "ol" else -1)
        elif name == "li":
            self._enter_item()
        elif name == "tr":
            self._cells = 0
        elif name == "blockquote":
            self._put("> ")
        elif name == "pre":
            if not self._pre:
                self._write("```\n")
            self._pre += 1

    def _enter_item(self) -> None:
        number = self._lists[-1] if self._lists else -1
        indent = "  " * min(max(0, len(self._lists) - 1), _DEPTH)
        self._write(indent + ("- " if number < 0 else f"{number}. "))
        if number >= 0:
            self._lists[-1] = number + 1

    def _leave_block(self, name: str) -> None:
        if name == "pre" and self._pre:
            self._pre -= 1
            if not self._pre:
                self._break(1)
                self._write("```\n")
        elif name in ("ul", "ol", "menu") and self._lists:
            self._lists.pop()
        paragraph = name in _HEADINGS or (name in _PARAGRAPHS and not self._lists)
        self._break(2 if paragraph else 1)

    def _put(self, text: str) -> None:
        """Words, with a space before them if there was one."""
        if self._space and not self._line_ends and text:
            self._write(" ")
        self._space = False
        self._write(text)

    def _write(self, text: str) -> None:
        if not text:
            return
        self._parts.append(text)
        self._chars += len(text)
        bare = text.rstrip("\n")
        ends = len(text) - len(bare)
        self._line_ends = ends if bare else self._line_ends + ends

    def _break(self, lines: int) -> None:
        """So many line ends at least, but where nothing stands yet."""
        self._space = False
        if self._line_ends < lines:
            self._write("\n" * (lines - self._line_ends))


def _is_hidden(tag: Tag) -> bool:
    if tag.name in _VOID:
        return False
    attributes = tag.attributes
    return (
        "hidden" in attributes
        or attributes.get("aria-hidden", "").lower() == "true"
        or _HIDING.search(attributes.get("style", "")) is not None
    )


def _join(base: str, target: str) -> str | None:
    """A link made whole; `None` for one that does not lead to a page."""
    try:
        whole = urljoin(base, target.strip())
        scheme = urlsplit(whole).scheme
    except ValueError:
        return None
    return whole if scheme in ("http", "https") else None
