"""One request on its way to its handler, and the checks that handlers share."""

import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from starlette.requests import Request

from towline_protocol import Block, Limits, SessionId, Text, UsageError, block_text, encode
from towline_server.api.access import Access, Caller
from towline_server.api.remember import Remember, Repeats
from towline_server.errors import Stale
from towline_server.sessions.registry import Sessions

__all__ = [
    "MAX_NOTE",
    "MAX_PATH",
    "MAX_WORD",
    "Call",
    "Handler",
    "Service",
    "Tagged",
    "check_content",
    "check_length",
    "check_limits",
    "read_number",
]

MAX_WORD: Final = 200
"""Characters of a title, a model's name, a key."""
MAX_PATH: Final = 4096
"""Characters of a path: what systems take."""
MAX_NOTE: Final = 4000
"""Characters of what a person says to a decision or a stop."""

_MAX_BLOCKS: Final = 64  # of a prompt (C6)
_MAX_PROMPT_BYTES: Final = 1_000_000  # as JSON: its event stays below the largest one (C6)


@dataclass(frozen=True, kw_only=True)
class Service:
    """What handlers work with."""

    sessions: Sessions
    """The sessions."""
    access: Access
    """Who is asking."""
    repeats: Repeats
    """Answers to requests that come again."""
    log: str
    """The lineage of the log."""
    version: str
    """The server's version."""
    server_name: str
    """What it calls itself."""
    address: Callable[[], str]
    """The address it is reached at, such as `http://127.0.0.1:4747`."""


class Tagged(NamedTuple):
    """An answer with the `ETag` that a later change is held against (C2.6)."""

    body: Any
    """The answer's body."""
    etag: str
    """The tag, in its quotes."""


@dataclass(frozen=True)
class Call:
    """One request, checked: its body has the operation's type."""

    request: Request
    """The raw request."""
    service: Service
    """What to work with."""
    caller: Caller
    """Who asks; `NOBODY` for open operations."""
    body: Any
    """The decoded body; `None` when the operation has none."""
    remember: Remember | None = None
    """How to keep the answer to a request that may come again."""

    @property
    def user(self) -> str:
        """The name of who asks."""
        return self.caller.user

    def check_match(self, etag: str) -> None:
        """Hold the request's `If-Match`, if it has one, against what counts now (C2.6).

        Raises:
            Stale: Somebody changed it since the caller read it.
        """
        asked = self.request.headers.get("if-match")
        if asked is not None and asked.strip() not in ("*", etag):
            raise Stale(
                "This has changed since you read it; read it again, then send your change.",
                details={"etag": etag},
            )

    @property
    def session(self) -> SessionId:
        """The session in the path."""
        return SessionId(self.request.path_params["session"])


Handler = Callable[[Call], Awaitable[Any]]
"""From a call to its answer: a body, or a whole `Response`."""


def check_limits(limits: Limits | None) -> None:
    """Refuse bounds in which nothing can run."""
    if limits is None:
        return
    for name in limits.__struct_fields__:
        bound: float | None = getattr(limits, name)
        if bound is not None and not 0 < bound < math.inf:
            raise UsageError(f"limits.{name} is {bound!r}; it must be more than 0.")


def check_content(content: tuple[Block, ...]) -> None:
    """Refuse a prompt that says nothing, or too much (C6)."""
    if not content or len(content) > _MAX_BLOCKS:
        raise UsageError(f"A prompt has 1 to {_MAX_BLOCKS} blocks; this one has {len(content)}.")
    if not all(isinstance(block, Text) for block in content):
        raise UsageError("This server takes text blocks only; leave images and files out.")
    size = len(encode(content))
    if size > _MAX_PROMPT_BYTES:
        raise UsageError(
            f"A prompt has at most {_MAX_PROMPT_BYTES} bytes; this one has {size}. Put long text "
            "into a file that the agent can read."
        )
    if not block_text(content).strip():
        raise UsageError("The prompt is empty; say something.")


def check_length(most: int, **values: str | None) -> None:
    """Refuse text that is longer than its use needs: all of it is kept for ever."""
    for name, value in values.items():
        if value is not None and len(value) > most:
            raise UsageError(f"{name} has at most {most} characters; this one has {len(value)}.")


def read_number(text: str | None, usual: int, most: int) -> int:
    """A number out of a query; `usual` when it is left out."""
    if text is None:
        return usual
    if not text.isascii() or not text.isdigit() or len(text) > 9 or not 1 <= int(text) <= most:
        raise UsageError(f"limit={text[:20]!r} is no number from 1 to {most}.")
    return int(text)
