"""What a provider's own search found, as an artifact (A2.62, A2.63)."""

from typing import Any, Final
from urllib.parse import urlsplit

from towline_agent.providers.json_value import as_list, as_object, as_objects, as_text
from towline_agent.providers.surrogates import mend
from towline_protocol import SearchArtifact, SearchItem

__all__ = ["SEARCH_CALL", "Citations", "found_searches"]

_Json = dict[str, Any]

SEARCH_CALL: Final = "web_search_call"
"""The item that says what was searched for."""
_HITS_MAX: Final = 50
"""Hits that are kept of one search; more than people look at."""


class Citations:
    """The pages that an answer names, each once."""

    def __init__(self) -> None:
        self.titles: dict[str, str] = {}
        """Titles by address, in the order in which they were named; empty for none."""
        self.more = False
        """Whether there were too many."""

    def add(self, mark: Any) -> None:
        """Take in a mark on a text; only those that cite a page count."""
        found = as_object(mark)
        url = mend(as_text(found.get("url")))
        if found.get("type") != "url_citation" or not url:
            return
        title = mend(as_text(found.get("title"))).strip()
        if title.isdigit():  # some gateways number them instead
            title = ""
        if url in self.titles or len(self.titles) < _HITS_MAX:
            self.titles[url] = self.titles.get(url) or title
        else:
            self.more = True


def found_searches(calls: list[_Json], cited: Citations) -> tuple[SearchArtifact, ...]:
    """One artifact for each search whose pages are known.

    Args:
        calls: The items of searches, in their order.
        cited: The pages that the answer cites. Those that no search lists count for the last one.
    """
    queries: list[str] = []
    pages: list[list[str]] = []
    for call in calls:
        action = as_object(call.get("action"))
        if action.get("type") == "search":
            queries.append(_query(action))
            urls = (
                mend(as_text(source.get("url"))) for source in as_objects(action.get("sources"))
            )
            pages.append(list(dict.fromkeys(url for url in urls if url)))
    listed = {url for urls in pages for url in urls}
    loose = [url for url in cited.titles if url not in listed]
    if loose and not queries:
        queries.append("")
        pages.append([])
    if loose:
        pages[-1].extend(loose)
    return tuple(
        SearchArtifact(
            query=query,
            items=tuple(_hit(url, cited) for url in urls[:_HITS_MAX]),
            truncated=len(urls) > _HITS_MAX or cited.more,
        )
        for query, urls in zip(queries, pages, strict=True)
        if urls
    )


def _query(action: _Json) -> str:
    query = as_text(action.get("query"))
    if not query:
        listed: Any = action.get("queries")
        texts = map(as_text, as_list(listed))
        query = "; ".join(text for text in texts if text)
    return mend(query)


def _hit(url: str, cited: Citations) -> SearchItem:
    title = cited.titles.get(url)
    if not title:
        try:
            title = urlsplit(url).hostname
        except ValueError:
            title = None
    return SearchItem(title=title or url, url=url)
