"""Reading pages and making requests (A5.T15, A5.29 to A5.35).

A redirect is followed within its host alone. One that leads to another host is told to the model
with its address: it calls again, and so the rules judge that host like any other (A5.30).
"""

import re
from typing import Annotated, Any, Final, Literal

import msgspec

from towline_agent.errors import ToolInputInvalid
from towline_agent.tools.external import fence_external
from towline_agent.tools.function import tool
from towline_agent.tools.tool import Look, Part, Tool, ToolContext, ToolOutput
from towline_agent.tools.web.client import WebAnswer, WebClient
from towline_agent.tools.web.document import Document, media_type, read_body, read_document
from towline_agent.tools.web.url import WebUrl, read_url
from towline_agent.workspaces.threads import FILES
from towline_protocol import HttpArtifact, PageArtifact, Preview, Text

__all__ = ["PAGE_CHARS", "find_page", "host_part", "make_web_tools", "tell_redirect"]

PAGE_CHARS: Final = 20_000
"""Characters of one page or body that a model is shown at once (A5.34)."""
MAX_HOPS: Final = 5
"""Redirects within a host that are followed."""
MAX_SEEK: Final = 2_000_000
"""Characters that a page can be read on from."""

_OVERHEAD: Final = 700
"""Room for what stands round a page's text."""
_HEADER_CHARS: Final = 4_000
_PREVIEW_CHARS: Final = 60_000
_BODY_CHARS: Final = 100_000
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}")
_OURS: Final = frozenset(
    {"accept-encoding", "connection", "content-length", "expect", "host", "keep-alive",
     "proxy-authorization", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade"}
)  # fmt: skip
"""Headers that belong to the connection, not to the request."""
_PRIVATE: Final = "{} is an address of this machine or of a private network."

_Method = Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
_Body = Annotated[str, msgspec.Meta(max_length=_BODY_CHARS)]
_Start = Annotated[int, msgspec.Meta(ge=0, le=MAX_SEEK)]


def make_web_tools(client: WebClient | None = None) -> tuple[Tool, ...]:
    """The tools `web_fetch` and `http_request`.

    Args:
        client: Makes the requests; `None` for one that reaches the public internet.
    """
    web = client or WebClient()
    return (_make_fetch(web), _make_request(web))


def host_part(url: WebUrl) -> Part:
    """What a request to an address does, for the gate: rules name its host."""
    caution = _PRIVATE.format(url.place) if url.private else None
    return Part(subject=url.place, kind="host", effect="network", caution=caution)


async def _look_at_fetch(context: ToolContext, arguments: dict[str, Any]) -> Look:
    del context
    url = read_url(arguments["url"])
    return Look(parts=(host_part(url),), preview=Preview(kind="url", text=url.text))


async def _look_at_request(context: ToolContext, arguments: dict[str, Any]) -> Look:
    del context
    url = read_url(arguments["url"])
    shown = [f"{arguments['method']} {url.text}"]
    shown += [f"{name}: {value}" for name, value in _headers_of(arguments).items()]
    text = "\n".join((*shown, "", arguments.get("body") or "")).strip()
    preview = Preview(
        kind="url", text=text[:_PREVIEW_CHARS], truncated=len(text) > _PREVIEW_CHARS
    )
    return Look(parts=(host_part(url),), preview=preview)


def _place_of(arguments: dict[str, Any]) -> str:
    return read_url(arguments["url"]).place


def _make_fetch(web: WebClient) -> Tool:
    @tool(
        effect="network",
        idempotent=True,
        timeout_s=web.timeout_s + 20.0,
        title=lambda arguments: f"Read {arguments['url']}",
        subject=_place_of,
        preview=lambda arguments: Preview(kind="url", text=read_url(arguments["url"]).text),
        verify=lambda arguments: read_url(arguments["url"]),
    )
    async def web_fetch(context: ToolContext, url: str, start: _Start = 0) -> ToolOutput:
        """Read a web page as text.

        Args:
            context: The call.
            url: http or https address.
            start: Character to go on from, for a long page.
        """
        first = read_url(url)
        found, answer = await find_page(web, first)
        elsewhere = tell_redirect(found, answer)
        if elsewhere is not None:
            return elsewhere
        page = min(PAGE_CHARS, max(1000, context.result_limit - _OVERHEAD))
        kind = answer.header("content-type")
        document = await FILES.run(
            lambda: read_document(answer.body, kind, found.text, start + page)
        )
        return _tell_page(found, answer, document, start, page)

    return msgspec.structs.replace(web_fetch, look=_look_at_fetch, rooted=False)


async def find_page(web: WebClient, url: WebUrl) -> tuple[WebUrl, WebAnswer]:
    """The answer at the end of the redirects within a host, and its address.

    Raises:
        ToolError: There is no answer.
    """
    for _ in range(MAX_HOPS):
        answer = await web.ask(url)
        target = _redirect(url, answer)
        if not isinstance(target, WebUrl) or not _same_place(url, target):
            return url, answer
        url = target
    return url, await web.ask(url)


def _redirect(url: WebUrl, answer: WebAnswer) -> WebUrl | str | None:
    """Where an answer leads; a sentence when that is no address, `None` when it is no redirect."""
    place = answer.header("location")
    if answer.status not in _REDIRECTS or not place:
        return None
    try:
        return read_url(place, url)
    except ToolInputInvalid as error:
        return error.message


def _same_place(url: WebUrl, target: WebUrl) -> bool:
    """Whether a redirect stays with the host that was allowed, and does not give up TLS."""
    if url.host != target.host:
        return False
    if url.url.scheme == target.url.scheme:
        return url.port == target.port
    return (url.url.scheme, url.port, target.port) == ("http", 80, 443)


def tell_redirect(url: WebUrl, answer: WebAnswer) -> ToolOutput | None:
    """What the model is told of an answer that leads elsewhere; `None` for any other (A5.30)."""
    target = _redirect(url, answer)
    if target is None:
        return None
    if isinstance(target, WebUrl):
        why = "again to itself" if _same_place(url, target) else "to another address"
        told = f"{url.place} redirects {why}, which was not followed. To go on, read:\n{target.text}"
    else:
        told = f"{url.place} redirects to what can't be read: {target}"
    text = f"{_status(answer)}\n{fence_external(told, url.place)}"
    return ToolOutput(
        content=(Text(text=text),),
        artifacts=(PageArtifact(url=url.text, status=answer.status),),
    )


def _tell_page(
    url: WebUrl, answer: WebAnswer, document: Document, start: int, page: int
) -> ToolOutput:
    shown = document.text[start : start + page]
    more = document.more or len(document.text) > start + page
    kind = media_type(answer.header("content-type"))
    lines = [f"{_status(answer)} {url.text}{f' ({kind})' if _is_plain(kind) else ''}"]
    lines += _notes(answer, more=more, end=start + len(shown), start=start)
    if shown:
        title = f"Title: {document.title}\n\n" if document.title and not start else ""
        lines.append(fence_external(title + shown, url.place))
    elif start:
        lines.append(f"[nothing stands at start={start}; use a smaller one]")
    else:
        lines.append("[no text]")
    artifact = PageArtifact(
        url=url.text, status=answer.status, truncated=more or answer.cut is not None
    )
    return ToolOutput(content=(Text(text="\n".join(lines)),), artifacts=(artifact,))


def _make_request(web: WebClient) -> Tool:
    @tool(
        effect="network",
        timeout_s=web.timeout_s + 20.0,
        title=lambda arguments: f"{arguments['method']} {arguments['url']}",
        subject=_place_of,
        verify=_verify_request,
    )
    async def http_request(
        context: ToolContext,
        method: _Method,
        url: str,
        headers: dict[str, str] | None = None,
        body: _Body | None = None,
    ) -> ToolOutput:
        """Make one HTTP request, such as to an API; redirects are not followed.

        Args:
            context: The call.
            method: The method.
            url: http or https address.
            headers: Header names and values.
            body: Text to send.
        """
        found = read_url(url)
        answer = await web.ask(found, method=method, headers=headers, body=body)
        page = min(PAGE_CHARS, max(1000, context.result_limit - _OVERHEAD - _HEADER_CHARS))
        kind = answer.header("content-type")
        document = await FILES.run(lambda: read_body(answer.body, kind, page))
        return _tell_answer(found, answer, document, page)

    return msgspec.structs.replace(http_request, look=_look_at_request, rooted=False)


def _verify_request(arguments: dict[str, Any]) -> None:
    read_url(arguments["url"])
    if arguments["method"] in ("GET", "HEAD") and arguments.get("body"):
        raise ToolInputInvalid(
            f"{arguments['method']} sends no body; leave 'body' out or take another method."
        )
    for name, value in _headers_of(arguments).items():
        if not _TOKEN.fullmatch(name) or re.search(r"[\x00-\x08\x0a-\x1f\x7f]", value):
            raise ToolInputInvalid(
                f"The header {name[:100]!r} can't be sent: its name or value holds signs that no "
                "header may have."
            )
        if name.lower() in _OURS:
            raise ToolInputInvalid(f"The header {name!r} is set here; leave it out.")
        if not value.isascii():
            raise ToolInputInvalid(f"The header {name!r} has letters beyond ASCII; encode them.")


def _headers_of(arguments: dict[str, Any]) -> dict[str, str]:
    return arguments.get("headers") or {}


def _tell_answer(url: WebUrl, answer: WebAnswer, document: Document, page: int) -> ToolOutput:
    more = document.more or len(document.text) > page
    headers = "\n".join(f"{name}: {value}" for name, value in answer.headers)
    if len(headers) > _HEADER_CHARS:
        headers = f"{headers[:_HEADER_CHARS]}\n[more headers are left out]"
    lines = [f"{_status(answer)} {url.text}"]
    lines += _notes(answer, more=more, end=page, start=None)
    lines.append(fence_external(f"{headers}\n\n{document.text[:page]}".rstrip(), url.place))
    artifact = HttpArtifact(
        url=url.text, status=answer.status, truncated=more or answer.cut is not None
    )
    return ToolOutput(content=(Text(text="\n".join(lines)),), artifacts=(artifact,))


def _status(answer: WebAnswer) -> str:
    """The status; the server's words for it are left out, since they are its own."""
    return f"HTTP {answer.status}"


def _notes(answer: WebAnswer, *, more: bool, end: int, start: int | None) -> list[str]:
    notes: list[str] = []
    if answer.cut is not None:
        notes.append(f"[the body is not whole: {answer.cut}]")
    if more and start is not None:
        notes.append(f"[characters {start} to {end}; go on with start={end}]")
    elif more:
        notes.append(f"[only its first {end} characters are shown]")
    return notes


def _is_plain(kind: str) -> bool:
    return re.fullmatch(r"[\w.+-]{1,60}/[\w.+-]{1,60}", kind) is not None
