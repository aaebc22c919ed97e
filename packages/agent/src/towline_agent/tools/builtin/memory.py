"""What an agent notes down about a project, from one conversation to the next (A5.36).

The notes are a Markdown file outside the project, one for each folder that is worked in.
"""

import hashlib
import os
import re
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec

from towline_agent.errors import ToolError, ToolInputInvalid
from towline_agent.tools.external import fence_external
from towline_agent.tools.function import tool
from towline_agent.tools.tool import Tool, ToolContext
from towline_agent.workspaces.base import ABSENT, hash_bytes
from towline_agent.workspaces.threads import FILES

__all__ = ["MAX_NOTES", "Notes", "make_memory_tools"]

MAX_NOTES: Final = 16_384
"""Bytes of one project's notes: they are sent with every request."""

_SLUG: Final = re.compile(r"[^A-Za-z0-9]+")
_Text = Annotated[str, msgspec.Meta(max_length=MAX_NOTES)]


class Notes:
    """The notes of one user on all projects.

    Args:
        folder: Where the files are kept; it is made when something is written.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def path(self, root: str) -> Path:
        """The file for a project.

        Args:
            root: The folder that is worked in, absolute.
        """
        name = _SLUG.sub("-", root.rstrip("/").rpartition("/")[2]).strip("-")[:40] or "root"
        return self._folder / f"{name}-{hashlib.sha256(root.encode()).hexdigest()[:12]}.md"

    async def read(self, root: str) -> str:
        """The notes on a project; empty for none.

        Raises:
            ToolError: They cannot be read.
        """
        path = self.path(root)
        raw = await FILES.run(lambda: _read(path))
        return raw.decode("utf-8", "replace")

    async def write(self, root: str, text: str, expect: str) -> None:
        """Put the notes on a project in the place of those that there are; empty ones go.

        Args:
            root: The folder that is worked in, absolute.
            text: The notes, whole.
            expect: The hash of what stands there, `ABSENT` for nothing.

        Raises:
            ToolError: Something else stands there, or they cannot be written.
        """
        path, raw = self.path(root), text.encode("utf-8", "replace")
        if len(raw) > MAX_NOTES:
            raise ToolInputInvalid(
                f"The notes would have {len(raw)} bytes, and {MAX_NOTES} is the most; leave out "
                "what no longer counts."
            )
        await FILES.run(lambda: _write(path, raw, expect))


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(MAX_NOTES)
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise ToolError(f"The notes cannot be read: {error.strerror}.") from error


def _hash(raw: bytes) -> str:
    return hash_bytes(raw) if raw else ABSENT


def _write(path: Path, raw: bytes, expect: str) -> None:
    if _hash(_read(path)) != expect:
        raise ToolError(
            "The notes are not as you last saw them; call read_memory, then write them whole."
        )
    try:
        if not raw:
            path.unlink(missing_ok=True)
            return
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        number, name = tempfile.mkstemp(dir=path.parent, prefix=".notes-")  # 0600
        try:
            with os.fdopen(number, "wb") as file:
                file.write(raw)
                file.flush()
                os.fsync(file.fileno())
            Path(name).replace(path)
        except BaseException:
            with suppress(OSError):
                Path(name).unlink()
            raise
    except OSError as error:
        raise ToolError(f"The notes cannot be written: {error.strerror}.") from error


class _Last:
    """The hash of the notes as the conversation last saw them."""

    def __init__(self) -> None:
        self.hash = ABSENT


def make_memory_tools(notes: Notes) -> tuple[Tool, ...]:
    """The tools `read_memory` and `write_memory`.

    Args:
        notes: Where the notes are.
    """

    @tool(effect="own", idempotent=True, title=lambda _: "Read the notes on this project")
    async def read_memory(context: ToolContext) -> str:
        """Read your notes on this project from earlier conversations.

        Args:
            context: The call.
        """
        text = await notes.read(context.workspace.root)
        context.state.get(_Last).hash = _hash(text.encode())
        return fence_external(text, "your notes") if text else "There are no notes yet."

    @tool(
        effect="own",
        title=_title,
    )
    async def write_memory(context: ToolContext, text: _Text) -> str:
        """Replace your notes on this project, once read: what later conversations need, in short.

        Args:
            context: The call.
            text: The notes, whole, in Markdown.
        """
        last = context.state.get(_Last)
        await notes.write(context.workspace.root, text, last.hash)
        last.hash = _hash(text.encode())
        return f"Noted: {len(text.encode())} of {MAX_NOTES} bytes."

    return (read_memory, write_memory)


def _title(arguments: dict[str, Any]) -> str:
    return "Write the notes on this project" if arguments["text"] else "Delete the notes"
