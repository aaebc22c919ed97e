"""One request on its way to its handler, and the checks that handlers share."""

import math
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from starlette.requests import Request

from towline_protocol import (
    Limits,
    PromptBlock,
    SessionId,
    Text,
    UsageError,
    block_text,
    encode,
)
from towline_server.api.access import Access, Caller
from towline_server.api.query import QueryValue
from towline_server.api.readiness import Readiness
from towline_server.api.remember import Remember, Repeats
from towline_server.errors import Stale
from towline_server.models.providers import Providers
from towline_server.push.wake_ups import WakeUps
from towline_server.sessions.agents import Agents
from towline_server.sessions.budget import Budget
from towline_server.sessions.files import Files
from towline_server.sessions.project import Mentioned, Projects
from towline_server.sessions.registry import Sessions

__all__ = [
    "MAX_BLOCKS",
    "MAX_NOTE",
    "MAX_PATH",
    "MAX_PROMPT_BYTES",
    "MAX_WORD",
    "Call",
    "Handler",
    "Service",
    "Tagged",
    "check_length",
    "check_limits",
    "take_content",
]

MAX_WORD: Final = 200
"""Characters of a title, a model's name, a key."""
MAX_PATH: Final = 4096
"""Characters of a path: what systems take."""
MAX_NOTE: Final = 4000
"""Characters of what a person says to a decision or a stop."""

MAX_BLOCKS: Final = 64
"""Blocks of a prompt (C6)."""
MAX_PROMPT_BYTES: Final = 1_000_000
"""Bytes of a prompt as JSON: its event stays below the largest one (C6)."""


@dataclass(frozen=True, kw_only=True)
class Service:
    """What handlers work with."""

    sessions: Sessions
    """The sessions."""
    access: Access
    """Who is asking."""
    repeats: Repeats
    """Answers to requests that come again."""
    agents: Agents
    """The agents that sessions can have."""
    providers: Providers | None
    """Who knows models and keeps keys; `None` when nobody does."""
    budget: Budget
    """What users have used, and may."""
    files: Files
    """What users have uploaded."""
    projects: Projects
    """What the folders of sessions bring along."""
    readiness: Readiness
    """Whether the server takes work."""
    wake_ups: WakeUps
    """What calls people who do not look, and knows who does."""
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
    query: Mapping[str, QueryValue] = field(default_factory=dict[str, QueryValue])
    """The query parameters that the operation reads and that came, checked against `QUERIES`."""

    @property
    def user(self) -> str:
        """The name of who asks."""
        return self.caller.user

    @property
    def key(self) -> str | None:
        """The request's `Idempotency-Key`: the client's own name for what it sends."""
        return self.request.headers.get("idempotency-key")

    def text(self, name: str) -> str | None:
        """A text of the query; `None` when it did not come."""
        found = self.query.get(name)
        return found if isinstance(found, str) else None

    def number(self, name: str, usual: int) -> int:
        """An integer of the query; `usual` when it did not come."""
        found = self.query.get(name, usual)
        return found if isinstance(found, int) else usual

    def flag(self, name: str, *, usual: bool = False) -> bool:
        """A flag of the query; `usual` when it did not come."""
        return self.query.get(name, usual) is True

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


async def take_content(
    call: Call, content: tuple[PromptBlock, ...], *, cwd: str | None
) -> Mentioned:
    """What a prompt says, its bytes in files (C1.10), and the files that it mentions (A5.79).

    Refuses one that says nothing, or too much.

    Args:
        call: The request.
        content: What came.
        cwd: The folder in which mentions are looked for.

    Raises:
        UsageError: It is empty, or has too many blocks or too much text (C6).
        Rejected: It names a file that is not the caller's, or that no model reads.
        BodyTooLarge: Its files are too large.
        StoreError: A file could not be kept.
    """
    if not content or len(content) > MAX_BLOCKS:
        raise UsageError(f"A prompt has 1 to {MAX_BLOCKS} blocks; this one has {len(content)}.")
    words = tuple(block for block in content if isinstance(block, Text))
    if len(words) == len(content) and not block_text(words).strip():
        raise UsageError("The prompt is empty; say something.")
    taken = await call.service.files.take_in(call.user, content)
    size = len(encode(taken))
    if size > MAX_PROMPT_BYTES:
        raise UsageError(
            f"A prompt has at most {MAX_PROMPT_BYTES} bytes; this one has {size}. Put long text "
            "into a file that the agent can read."
        )
    return await call.service.projects.attach(call.user, cwd or ".", taken, call.service.files)


def check_length(most: int, **values: str | None) -> None:
    """Refuse text that is longer than its use needs: all of it is kept for ever."""
    for name, value in values.items():
        if value is not None and len(value) > most:
            raise UsageError(f"{name} has at most {most} characters; this one has {len(value)}.")
