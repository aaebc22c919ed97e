"""Mentioned files as they go along with a prompt, and what people are told of them (A5.79)."""

from collections.abc import Callable, Iterable
from typing import Final

import msgspec

from towline_agent.errors import ToolError
from towline_agent.permissions.secret import is_secret
from towline_agent.project.mention import Mention, cut_lines
from towline_agent.project.mentioned import SecretFile, read_unasked
from towline_agent.workspaces.base import Workspace

__all__ = ["Attachment", "LeftOut", "read_mention", "tell_attached", "tell_left_out"]

_SECRET: Final = "it may hold secrets; ask the agent to read it, and it asks you first"  # noqa: S105 - words
_TOLD: Final = 8
"""Files that one sentence names; of more it tells how many."""
_WHY_CHARS: Final = 200


class Attachment(msgspec.Struct, frozen=True, kw_only=True):
    """A mentioned file, or those of its lines that were meant."""

    path: str
    """The path, as it was written."""
    lines: str | None = None
    """The lines that were meant, such as `3-9`; `None` for all."""
    data: bytes
    """What stands there."""

    @property
    def about(self) -> str:
        """Name and size for people, such as `src/a.py (12 lines)`."""
        if self.lines is not None:
            word = "lines" if "-" in self.lines else "line"
            return f"{self.path} ({word} {self.lines})"
        if b"\0" in self.data[:8192]:
            return f"{self.path} ({len(self.data):,} bytes)"
        count = self.data.count(b"\n") + (not self.data.endswith(b"\n"))
        return f"{self.path} ({count:,} {'line' if count == 1 else 'lines'})"


class LeftOut(msgspec.Struct, frozen=True):
    """A mention that brings nothing along."""

    path: str
    """The path, as it was written."""
    why: str
    """Why, as a part of a sentence."""


async def read_mention(
    workspace: Workspace, mention: Mention, *, secret: Callable[[str], bool] = is_secret
) -> Attachment | LeftOut:
    """What a mention names: first as it was written, since a file may be called like lines.

    Args:
        workspace: Where it stands.
        mention: The mention.
        secret: Whether a path is a secret one.
    """
    found = await _read(workspace, mention.plain, secret)
    if isinstance(found, bytes):
        return _attach(mention.plain, found)
    if mention.first is None or mention.last is None:
        return found
    found = await _read(workspace, mention.path, secret)
    if isinstance(found, LeftOut):
        return found
    text = cut_lines(found.decode("utf-8-sig", "replace"), mention.first, mention.last)
    if found and not text:
        return LeftOut(mention.path, f"it has no line {mention.first}")
    return _attach(mention.path, text.encode(), mention.lines)


def _attach(path: str, data: bytes, lines: str | None = None) -> Attachment | LeftOut:
    if not data:
        return LeftOut(path, "it is empty")
    return Attachment(path=path, lines=lines, data=data)


async def _read(workspace: Workspace, path: str, secret: Callable[[str], bool]) -> bytes | LeftOut:
    try:
        return (await read_unasked(workspace, path, secret=secret)).data
    except SecretFile:
        return LeftOut(path, _SECRET)
    except ToolError as error:
        return LeftOut(path, _shorten(error, path))


def _shorten(error: ToolError, path: str) -> str:
    """Why, without the advice, which is for the agent, and without the path, which stands ahead."""
    why = error.message.partition("; ")[0].removesuffix(".")
    named = f"{path!r} "
    if why.startswith(named):
        why = f"it {why.removeprefix(named)}"
    return why.replace(f" {path!r}", " of this name")[:_WHY_CHARS]


def tell_attached(attached: Iterable[str]) -> str:
    """A sentence that names what goes along; empty for nothing.

    Args:
        attached: What `Attachment.about` says of each.
    """
    return _tell("Attached", list(attached), ", ")


def tell_left_out(left_out: Iterable[LeftOut]) -> str:
    """A sentence that names what does not go along, and why; empty for nothing."""
    return _tell("Not attached", [f"@{one.path}: {one.why}" for one in left_out], ". ")


def _tell(head: str, told: list[str], between: str) -> str:
    if not told:
        return ""
    more = f"{between}{len(told) - _TOLD} more" if len(told) > _TOLD else ""
    return f"{head}: {between.join(told[:_TOLD])}{more}."
