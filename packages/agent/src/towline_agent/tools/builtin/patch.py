"""Patches over many files (A5.12)."""

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from towline_agent.errors import ToolDenied, ToolError, ToolInputInvalid
from towline_agent.permissions.part import Part
from towline_agent.tools.builtin.change import (
    Plan,
    carry_out,
    preview_files,
    read_seen,
    read_text,
    to_look,
)
from towline_agent.tools.builtin.place import Spot, find_kind, locate, reach
from towline_agent.tools.edits.hunk import FilePatch, apply_hunks
from towline_agent.tools.edits.patch import parse_patch
from towline_agent.tools.function import tool
from towline_agent.tools.tool import Look, ToolContext, ToolOutput
from towline_agent.workspaces.base import ABSENT, Edit, FileData, Move, Put, Remove, Workspace
from towline_agent.workspaces.threads import FILES

__all__ = ["apply_patch"]

_ERRORS_TOLD: Final = 5
"""Files whose errors are told at once."""
_FILES_TOLD: Final = 20


class _Step(msgspec.Struct, frozen=True, kw_only=True):
    """What a patch comes to at one file."""

    edits: tuple[Edit, ...]
    before: bytes | None
    after: bytes | None
    bases: dict[str, str]
    told: str


class _Piece(msgspec.Struct, frozen=True, kw_only=True):
    """One file of a patch and where its paths lead."""

    patch: FilePatch
    source: Spot
    target: Spot

    @property
    def spots(self) -> tuple[Spot, ...]:
        return (self.source,) if self.source == self.target else (self.source, self.target)


async def _look(context: ToolContext, arguments: dict[str, Any]) -> Look:
    return to_look(await _plan(context, arguments["patch"], looks=True))


async def _plan(context: ToolContext, text: str, *, looks: bool) -> Plan:
    pieces = [await _locate(context, patch) for patch in parse_patch(text)]
    _check_once(pieces)
    steps: list[_Step] = []
    errors: list[str] = []
    for piece in pieces:
        workspace = reach(context, *piece.spots) if looks else context.workspace
        blind = looks and any(spot.is_outside for spot in piece.spots)
        try:
            steps.append(await _step(context, workspace, piece, blind=blind))
        except ToolDenied:
            raise
        except ToolError as error:
            errors.append(f"{piece.patch.path}: {error.message}")
    if errors:
        raise ToolInputInvalid(_tell_errors(errors))
    files = [
        (piece.source.path, piece.target.path, step.before, step.after)
        for piece, step in zip(pieces, steps, strict=True)
    ]
    told = [step.told for step in steps]
    more = f"\n[{len(told) - _FILES_TOLD} more files]" if len(told) > _FILES_TOLD else ""
    return Plan(
        parts=_parts(pieces),
        edits=tuple(edit for step in steps for edit in step.edits),
        preview=await preview_files(files),
        bases={path: base for step in steps for path, base in step.bases.items()},
        told="\n".join(("Applied the patch:", *told[:_FILES_TOLD])) + more,
    )


async def _locate(context: ToolContext, patch: FilePatch) -> _Piece:
    follow = patch.kind != "delete"
    source = await locate(context, patch.path, follow=follow)
    target = source if patch.target is None else await locate(context, patch.target)
    return _Piece(patch=patch, source=source, target=target)


def _check_once(pieces: Sequence[_Piece]) -> None:
    seen: set[str] = set()
    for piece in pieces:
        for spot in piece.spots:
            if spot.path in seen:
                raise ToolInputInvalid(
                    f"Line {piece.patch.number} of the patch: {spot.path!r} stands in it twice; "
                    "put all that happens to it in one place."
                )
            seen.add(spot.path)


def _parts(pieces: Sequence[_Piece]) -> tuple[Part, ...]:
    return tuple(spot.part("write") for piece in pieces for spot in piece.spots)


def _tell_errors(errors: list[str]) -> str:
    more = len(errors) - _ERRORS_TOLD
    tail = [f"[{more} more files do not fit]"] if more > 0 else []
    return "\n".join(("Nothing was changed.", *errors[:_ERRORS_TOLD], *tail))


async def _step(context: ToolContext, workspace: Workspace, piece: _Piece, *, blind: bool) -> _Step:
    """Check one file; nothing is written.

    Args:
        context: The call.
        workspace: Where its paths can be reached.
        piece: The file.
        blind: Whether what stands outside may not be looked at yet, unless it was read before.
    """
    match piece.patch.kind:
        case "add":
            return await _add(workspace, piece, blind=blind)
        case "delete":
            return await _delete(workspace, piece, blind=blind)
        case _:
            return await _update(context, workspace, piece, blind=blind)


async def _check_free(workspace: Workspace, spot: Spot) -> None:
    if await find_kind(workspace, spot) is not None:
        raise ToolError(f"There is something at {spot.path!r} already; update it instead.")


async def _add(workspace: Workspace, piece: _Piece, *, blind: bool) -> _Step:
    path = piece.source.path
    if not blind:
        await _check_free(workspace, piece.source)
    data = apply_hunks("", piece.patch.hunks).encode()
    return _Step(
        edits=(Put(path=path, data=data, expect=ABSENT),),
        before=None,
        after=data,
        bases={path: ABSENT},
        told=f"A {path}",
    )


async def _delete(workspace: Workspace, piece: _Piece, *, blind: bool) -> _Step:
    path = piece.source.path
    if blind:
        edits = (Remove(path=path),)
        return _Step(edits=edits, before=b"", after=None, bases={}, told=f"D {path}")
    kind = await find_kind(workspace, piece.source)
    if kind == "dir":
        raise ToolError(f"{path!r} is a folder; a patch deletes files alone, so use delete_path.")
    if kind == "link":
        edits = (Remove(path=path),)
        return _Step(edits=edits, before=b"", after=None, bases={}, told=f"D {path}")
    file = await workspace.read(path)
    if piece.patch.hunks:
        await FILES.run(lambda: _check_all_goes(file, piece))
    return _Step(
        edits=(Remove(path=path, expect=file.hash),),
        before=file.data,
        after=None,
        bases={path: file.hash},
        told=f"D {path}",
    )


def _check_all_goes(file: FileData, piece: _Piece) -> None:
    text = read_text(file, piece.source)
    if apply_hunks(text.text, piece.patch.hunks):
        raise ToolInputInvalid("it deletes the file, and its lines leave some of it.")


async def _update(
    context: ToolContext, workspace: Workspace, piece: _Piece, *, blind: bool
) -> _Step:
    source, target = piece.source.path, piece.target.path
    moves = source != target
    if moves and not (blind and piece.target.is_outside):
        await _check_free(workspace, piece.target)
    file = await read_seen(context, workspace, piece.source)
    data = await FILES.run(lambda: _patched(file, piece))
    bases = {source: file.hash, target: ABSENT} if moves else {source: file.hash}
    edits: tuple[Edit, ...] = (Put(path=source, data=data, expect=file.hash),)
    if moves:
        move = Move(source=source, target=target, expect=file.hash)
        edits = (move, Put(path=target, data=data, expect=file.hash))
        edits = edits if data != file.data else (move,)
    told = f"R {source} -> {target}" if moves else f"M {source}"
    return _Step(edits=edits, before=file.data, after=data, bases=bases, told=told)


def _patched(file: FileData, piece: _Piece) -> bytes:
    if not piece.patch.hunks:
        return file.data
    text = read_text(file, piece.source)
    return text.encode(apply_hunks(text.text, piece.patch.hunks))


@tool(effect="write", title=lambda _: "Apply a patch", look=_look)
async def apply_patch(context: ToolContext, patch: str) -> ToolOutput:
    """Change, make, delete or move several files at once, all or none.

    Context lines must be exact. Read files before you update them.

    Args:
        context: The call.
        patch: '*** Begin Patch' with '*** Update File: p', '*** Add File: p', '*** Delete File: p',
            '*** Move to: p', '@@ line above', lines with ' ', '-' or '+', '*** End Patch'; or a
            unified diff.
    """
    return await carry_out(context, await _plan(context, patch, looks=False))
