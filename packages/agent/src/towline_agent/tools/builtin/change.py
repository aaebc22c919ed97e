"""From planned edits to changed files and the words about them (A5.12, A5.15, A5.63)."""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from towline_agent.errors import ToolError, ToolInputInvalid
from towline_agent.permissions.part import Part
from towline_agent.tools.builtin.after_edit import tell_after_edit
from towline_agent.tools.builtin.place import Spot
from towline_agent.tools.edits.near_miss import show_lines
from towline_agent.tools.edits.replacement import Place
from towline_agent.tools.tool import Look, ToolContext, ToolOutput
from towline_agent.workspaces.base import (
    Edit,
    FileData,
    Move,
    Put,
    Remove,
    Workspace,
    hash_bytes,
)
from towline_agent.workspaces.diff import diff_bytes
from towline_agent.workspaces.paths import changed_since
from towline_agent.workspaces.seen import Seen
from towline_agent.workspaces.text import TextFile, decode
from towline_agent.workspaces.threads import FILES
from towline_protocol import Preview, Text

__all__ = ["Plan", "carry_out", "preview_files", "read_seen", "read_text", "tell_places", "to_look"]

_PREVIEW_CHARS: Final = 60_000
"""Characters of a preview; a person reads no more, and what is cut can't be allowed."""
_PLACES_SHOWN: Final = 3
_AROUND: Final = 1
"""Lines shown before and behind each place."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What a call is about to change."""

    parts: tuple[Part, ...]
    """What it does, for the gate."""
    edits: tuple[Edit, ...]
    """What is to be done, all or none."""
    preview: Preview
    """What a person sees."""
    bases: Mapping[str, str]
    """Path to hash of what the preview rests on."""
    told: str
    """What the model is told when it is done."""


def to_look(plan: Plan) -> Look:
    """A plan as what is judged."""
    return Look(parts=plan.parts, preview=plan.preview, bases=plan.bases)


async def read_seen(context: ToolContext, workspace: Workspace, spot: Spot) -> FileData:
    """A file that the conversation has read, and that is still as it was then (A5.15).

    Args:
        context: The call.
        workspace: Where it can be reached.
        spot: The file.

    Raises:
        ToolError: It was not read, has changed since, or is not there.
    """
    seen = context.state.get(Seen).get(spot.path)
    if seen is None:
        if not spot.is_outside:
            await workspace.read(spot.path)  # a missing file is told as such
        raise ToolError(
            f"{spot.path!r} has not been read in this conversation; read it with read_file before "
            "you change it."
        )
    file = await workspace.read(spot.path)
    if file.hash != seen.hash:
        raise ToolError(
            f"{spot.path!r} has changed since you read it; read it again before you change it."
        )
    return file


def read_text(file: FileData, spot: Spot) -> TextFile:
    """A file's text, if it can be changed and written back without loss (A5.5).

    Raises:
        ToolError: It is binary (A5.7), or holds bytes without a meaning.
    """
    found = decode(file.data)
    if found is None:
        raise ToolInputInvalid(f"{spot.path!r} is a binary file; it can't be edited as text.")
    found.encode()  # raises, where it would lose something
    return found


async def carry_out(context: ToolContext, plan: Plan) -> ToolOutput:
    """Make a plan's changes, if what was looked at is still so (A5.63).

    Raises:
        ToolError: A file is not as it was when it was looked at; nothing has changed.
    """
    _check_bases(context.bases, plan.bases)
    before = await _read_before(context.workspace, plan.edits)
    changes = await context.workspace.apply(plan.edits)
    _note(context.state.get(Seen), plan.edits)
    found = await tell_after_edit(context, before)
    text = f"{plan.told}\n{found}" if found else plan.told
    return ToolOutput(content=(Text(text=text),), changes=changes)


def _check_bases(looked: Mapping[str, str], now: Mapping[str, str]) -> None:
    """Refuse what rests on other files, or on others' content, than what was looked at.

    What lies outside may not have been looked at.
    """
    if not looked:
        return
    for path in {*looked, *now}:
        is_blind = path.startswith("/") and path not in looked
        if not is_blind and looked.get(path) != now.get(path):
            raise changed_since(path)


async def _read_before(workspace: Workspace, edits: Sequence[Edit]) -> dict[str, bytes]:
    """What stands now at each path that is written, nothing for a new file."""
    sources = {edit.target: edit.source for edit in edits if isinstance(edit, Move)}
    found: dict[str, bytes] = {}
    for edit in edits:
        if not isinstance(edit, Put):
            continue
        try:
            found[edit.path] = (await workspace.read(sources.get(edit.path, edit.path))).data
        except ToolError:
            found[edit.path] = b""
    return found


def _note(seen: Seen, edits: Sequence[Edit]) -> None:
    for edit in edits:
        match edit:
            case Put():
                seen.note_written(edit.path, hash_bytes(edit.data))
            case Remove():
                seen.forget(edit.path)
            case Move():
                seen.note_moved(edit.source, edit.target)
            case _:
                pass


async def preview_files(files: Sequence[tuple[str, str, bytes | None, bytes | None]]) -> Preview:
    """The diffs of files as one preview.

    Args:
        files: For each its path before, its path after, its bytes before and after; `None` for a
            file that is not there.
    """
    return await FILES.run(lambda: _preview(files))


def _preview(files: Sequence[tuple[str, str, bytes | None, bytes | None]]) -> Preview:
    pieces: list[str] = []
    is_cut = False
    for source, target, before, after in files:
        moved = f"{source} is moved to {target}.\n" if source != target else ""
        made = diff_bytes(before, after, target, source=source if moved else None)
        if made is None:
            pieces.append(f"{moved}{_tell_binary(source, before, after)}")
        elif made.text or moved:
            pieces.append(moved + made.text)
            is_cut = is_cut or made.truncated
        else:
            word = "An empty file" if after is not None else "The empty file"
            verb = "made" if after is not None else "deleted"
            pieces.append(f"{word} {target} is {verb}.\n")
    text = "".join(pieces)
    return Preview(
        kind="diff", text=text[:_PREVIEW_CHARS], truncated=is_cut or len(text) > _PREVIEW_CHARS
    )


def _tell_binary(path: str, before: bytes | None, after: bytes | None) -> str:
    if after is None:
        return f"The binary file {path} of {len(before or b'')} bytes is deleted.\n"
    return f"The binary file {path} is replaced by {len(after)} bytes.\n"


def tell_places(text: str, places: Sequence[Place]) -> str:
    """The changed places of a text with their line numbers, a few of them.

    Args:
        text: The new text.
        places: Where it differs from the old one.
    """
    lines = text.split("\n")
    shown: list[str] = []
    for place in places[:_PLACES_SHOWN]:
        first = max(place.first - _AROUND, 1)
        last = min(place.last + _AROUND, len(lines))
        shown.append(show_lines(lines[first - 1 : last], first))
    if len(places) > _PLACES_SHOWN:
        shown.append(f"[{len(places) - _PLACES_SHOWN} more places]")
    return "\n…\n".join(shown)
