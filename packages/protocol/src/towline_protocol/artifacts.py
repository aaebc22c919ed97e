"""Artifacts: what a tool made or found, as data that a screen can show."""

from typing import Any

import msgspec

__all__ = [
    "Artifact",
    "AudioArtifact",
    "CommandArtifact",
    "HttpArtifact",
    "ImageArtifact",
    "PageArtifact",
    "SearchArtifact",
    "SearchItem",
    "TranscriptArtifact",
    "UnknownArtifact",
]


class _Artifact(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind"):
    error_code: str | None = None
    """Why there is no result; with it the other fields mean nothing."""


class ImageArtifact(_Artifact, frozen=True, kw_only=True, tag="image"):
    """A picture."""

    file: str
    """The content hash of its bytes."""
    media_type: str
    """Such as `image/png`."""


class SearchItem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One hit of a search."""

    title: str
    """The page's title."""
    url: str
    """Where it stands."""
    snippet: str = ""
    """The words round the hit."""


class SearchArtifact(_Artifact, frozen=True, kw_only=True, tag="search"):
    """What a search found."""

    query: str
    """What was searched for."""
    items: tuple[SearchItem, ...] = ()
    """The hits, best first; none means no match, not a failure (A5.27)."""
    truncated: bool = False
    """Whether there were more."""


class PageArtifact(_Artifact, frozen=True, kw_only=True, tag="page"):
    """A web page that was read."""

    url: str
    """Where it came from at last."""
    status: int
    """The HTTP status."""
    truncated: bool = False
    """Whether its text was cut."""


class HttpArtifact(_Artifact, frozen=True, kw_only=True, tag="http"):
    """An HTTP answer."""

    url: str
    """Where it came from at last."""
    status: int
    """The HTTP status."""
    truncated: bool = False
    """Whether its body was cut."""


class CommandArtifact(_Artifact, frozen=True, kw_only=True, tag="command"):
    """A program that ran."""

    command: str
    """Its command line."""
    exit_code: int | None = None
    """What it ended with; `None` when it was ended by a limit or a cancel, or still runs."""
    output: str = ""
    """The tail of its output."""
    job: str | None = None
    """The background job as which it runs on when the call ends; `None` when it has ended."""


class AudioArtifact(_Artifact, frozen=True, kw_only=True, tag="audio"):
    """A sound."""

    file: str
    """The content hash of its bytes."""
    duration_ms: int
    """Its length in milliseconds."""


class TranscriptArtifact(_Artifact, frozen=True, kw_only=True, tag="transcript"):
    """Speech as text."""

    text: str
    """The words."""
    language: str | None = None
    """Such as `en`."""


class UnknownArtifact(_Artifact, frozen=True, kw_only=True, tag="unknown"):
    """An artifact of a kind this reader does not know; shown as JSON."""

    name: str
    """The kind as it came."""
    raw: dict[str, Any]
    """The whole value as it came."""


Artifact = (
    ImageArtifact
    | SearchArtifact
    | PageArtifact
    | HttpArtifact
    | CommandArtifact
    | AudioArtifact
    | TranscriptArtifact
    | UnknownArtifact
)
"""What a tool made or found; a union by `kind`."""
