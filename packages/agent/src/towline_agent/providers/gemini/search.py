"""What the provider's own search found, as an artifact (A2.63)."""

from typing import Any, Final, cast

from towline_agent.providers.surrogates import mend
from towline_protocol import SearchArtifact, SearchItem

__all__ = ["read_search"]

_MAX_ITEMS: Final = 64
"""Sources of one answer; real ones have a dozen."""
_MAX_CHARS: Final = 2000
"""Characters of one text of a source."""
_SCHEMES: Final = ("https://", "http://")
_KINDS: Final = ("web", "retrievedContext", "maps", "image")


def read_search(metadata: Any, before: SearchArtifact | None = None) -> SearchArtifact | None:
    """The sources in `groundingMetadata`; `None` when it names neither a source nor a query.

    Args:
        metadata: The object as it came.
        before: What earlier chunks of the same answer named.
    """
    if not isinstance(metadata, dict):
        return before
    found = cast("dict[str, Any]", metadata)
    queries: list[str] = []
    for key in ("webSearchQueries", "imageSearchQueries", "retrievalQueries"):
        queries.extend(_text(query) for query in _items(found, key) if isinstance(query, str))
    chunks = _items(found, "groundingChunks")
    items = [item for chunk in chunks[:_MAX_ITEMS] if (item := _item(chunk)) is not None]
    if not items and not queries:
        return before
    known = before or SearchArtifact(query="")
    return SearchArtifact(
        query=_text("; ".join(queries[:_MAX_ITEMS])) or known.query,
        items=tuple(items) or known.items,
        truncated=len(chunks) > _MAX_ITEMS or (not items and known.truncated),
    )


def _item(chunk: Any) -> SearchItem | None:
    if not isinstance(chunk, dict):
        return None
    fields = cast("dict[str, Any]", chunk)
    kind: Any = next((fields[key] for key in _KINDS if isinstance(fields.get(key), dict)), None)
    if kind is None:
        return None
    source = cast("dict[str, Any]", kind)
    url = _first(source, "uri", "sourceUri", "imageUri")
    url = url if url.startswith(_SCHEMES) else ""
    title = _first(source, "title", "domain", "documentName", "fileSearchStore") or url
    if not title:
        return None
    return SearchItem(title=title, url=url, snippet=_first(source, "text"))


def _first(source: dict[str, Any], *keys: str) -> str:
    for key in keys:
        value = source.get(key)
        if isinstance(value, str) and value:
            return _text(value)
    return ""


def _text(text: str) -> str:
    return mend(text if len(text) <= _MAX_CHARS else text[: _MAX_CHARS - 1] + "…")


def _items(found: dict[str, Any], key: str) -> list[Any]:
    value = found.get(key)
    return cast("list[Any]", value) if isinstance(value, list) else []
