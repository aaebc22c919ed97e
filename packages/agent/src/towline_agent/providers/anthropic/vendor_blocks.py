"""Blocks of the vendor's own: kept as they came, to be sent back in their place (A2.38)."""

from typing import Any, Final, cast

from towline_agent.providers.anthropic.blocks import CITATIONS, DIALECT
from towline_agent.providers.anthropic.values import is_shallow, read_object
from towline_agent.providers.json_value import to_text
from towline_agent.providers.surrogates import mend, mend_all
from towline_protocol import Opaque, SearchArtifact, SearchItem

__all__ = ["VENDOR_MAX_CHARS", "VendorBlock", "VendorLog"]

_Json = dict[str, Any]

VENDOR_MAX_CHARS: Final = 2_097_152
"""Characters of all vendor blocks of one answer. They are not told to anybody, so they do not count
as its words; a search brings up to 50,000 of them, and an answer some ten searches."""

_BLOCK_COST: Final = 64
"""What a block counts for besides its characters."""
_USES: Final = frozenset({"server_tool_use", "mcp_tool_use"})
_SEARCH_RESULT: Final = "web_search_tool_result"
_QUERY_MAX: Final = 400
_SNIPPET_MAX: Final = 400


class VendorBlock:
    """One block; its value is filled in while it comes."""

    __slots__ = ("parts", "raw")

    def __init__(self, raw: _Json) -> None:
        self.raw = raw
        """The block so far; the one that stands in the answer."""
        self.parts: list[str] = []
        """The pieces of its input."""


class VendorLog:
    """The vendor blocks of one answer, over all responses that it is made of."""

    def __init__(self) -> None:
        self.room = VENDOR_MAX_CHARS
        """Characters that may still come; below 0 the answer is too long."""
        self._blocks: list[_Json] = []
        self._snippets: dict[str, str] = {}

    def open(self, block: _Json) -> VendorBlock | None:
        """Begin a block; `None` for one that nobody could keep."""
        if not is_shallow(block):
            return None
        self.room -= len(to_text(block)) + _BLOCK_COST
        if self.room < 0:
            return None
        made = VendorBlock(dict(block))
        self._blocks.append(made.raw)
        return made

    def add_input(self, block: VendorBlock, piece: str) -> None:
        """Add to the JSON text of a block's input."""
        self.room -= len(piece)
        if piece and self.room >= 0:
            block.parts.append(piece)

    def merge(self, block: VendorBlock, delta: _Json) -> None:
        """Add a piece of a kind that is not known: texts grow, all else is replaced."""
        if not is_shallow(delta):
            return
        self.room -= len(to_text(delta)) + _BLOCK_COST
        if self.room < 0:
            return
        for key, value in delta.items():
            before: Any = block.raw.get(key)
            if key == "type" or value is None:
                continue
            grows = isinstance(before, str) and isinstance(value, str)
            block.raw[key] = before + value if grows else value

    def close(self, block: VendorBlock) -> None:
        """End a block. One whose input is broken cannot be sent back and loses its value."""
        if block.parts:
            found = read_object("".join(block.parts))
            if found is None:
                block.raw.clear()
            else:
                block.raw["input"] = found
        mended = mend_all(block.raw)
        block.raw.clear()
        block.raw.update(mended)

    def cite(self, citations: list[Any]) -> Opaque | None:
        """The block that keeps the citations of a text; `None` when there is no room for it."""
        kept = [mend_all(item) for item in citations if isinstance(item, dict) and is_shallow(item)]
        self.room -= len(to_text(kept)) + _BLOCK_COST
        if self.room < 0 or not kept:
            return None
        for item in kept:
            url, words = item.get("url"), item.get("cited_text")
            if isinstance(url, str) and isinstance(words, str):
                self._snippets.setdefault(url, words.strip()[:_SNIPPET_MAX])
        return Opaque(dialect=DIALECT, raw={CITATIONS: kept})

    def drop_unanswered(self) -> None:
        """Take the value of calls that the vendor never answered: alone the API refuses them."""
        answered = {str(block.get("tool_use_id")) for block in self._blocks}
        for block in self._blocks:
            if block.get("type") in _USES and str(block.get("id")) not in answered:
                block.clear()

    def searches(self) -> tuple[SearchArtifact, ...]:
        """What the vendor's search found (A2.63)."""
        queries = {
            str(block.get("id")): _query(block.get("input"))
            for block in self._blocks
            if block.get("type") in _USES
        }
        return tuple(
            self._search(queries.get(str(block.get("tool_use_id")), ""), block.get("content"))
            for block in self._blocks
            if block.get("type") == _SEARCH_RESULT
        )

    def _search(self, query: str, content: Any) -> SearchArtifact:
        if isinstance(content, dict):
            code: Any = cast("_Json", content).get("error_code")
            return SearchArtifact(query=query, error_code=mend(str(code or "unavailable")))
        found = cast("list[Any]", content) if isinstance(content, list) else []
        items = [self._item(cast("_Json", item)) for item in found if isinstance(item, dict)]
        return SearchArtifact(query=query, items=tuple(item for item in items if item.url))

    def _item(self, item: _Json) -> SearchItem:
        url, title = item.get("url"), item.get("title")
        url = url if isinstance(url, str) else ""
        title = title if isinstance(title, str) else url
        return SearchItem(title=title, url=url, snippet=self._snippets.get(url, ""))


def _query(value: Any) -> str:
    query: Any = cast("_Json", value).get("query") if isinstance(value, dict) else None
    return query[:_QUERY_MAX] if isinstance(query, str) else ""
