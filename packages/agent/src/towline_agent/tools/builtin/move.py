"""Folders made, paths renamed, moved and deleted (A5.T7)."""

import posixpath
from typing import Any, Final

from towline_agent.errors import ToolError, ToolInputInvalid
from towline_agent.permissions.part import Part
from towline_agent.permissions.secret import path_part
from towline_agent.tools.builtin.change import Plan, carry_out, preview_files, to_look
from towline_agent.tools.builtin.place import Spot, find_kind, locate
from towline_agent.tools.function import tool
from towline_agent.tools.tool import Look, ToolContext, ToolOutput
from towline_agent.workspaces.base import MakeDir, Move, Remove, Workspace
from towline_agent.workspaces.paths import name_in_line, whole_root
from towline_protocol import Preview

__all__ = ["create_dir", "delete_path", "move_path", "rename_path"]

_NAMES_SHOWN: Final = 100
"""Names of a folder's files that a preview shows."""
_GRAVE_MAX: Final = 50
"""Files of a folder that are judged by themselves; with more of them the rest adds nothing."""
_BASES_MAX: Final = 50
"""Files of a folder that must stay as they were looked at; of a larger one only the names count."""


async def _look_create(context: ToolContext, arguments: dict[str, Any]) -> Look:
    spot = await locate(context, arguments["path"])
    text = f"Make the folder {name_in_line(spot.path)}"
    return Look(parts=(spot.part("write"),), preview=Preview(kind="text", text=text))


@tool(
    effect="write",
    idempotent=True,
    title=lambda arguments: f"Make folder {arguments['path']}",
    look=_look_create,
)
async def create_dir(context: ToolContext, path: str) -> ToolOutput:
    """Make a folder and those above it.

    Args:
        context: The call.
        path: Path of the folder.
    """
    spot = await locate(context, path)
    plan = Plan(
        parts=(spot.part("write"),),
        edits=(MakeDir(path=spot.path),),
        preview=Preview(kind="text", text=""),
        bases={},
        told=f"The folder {spot.path!r} is there.",
    )
    return await carry_out(context, plan)


async def _plan_move(context: ToolContext, source: Spot, target: Spot, *, looks: bool) -> Plan:
    bases: dict[str, str] = {}
    for spot in (source, target):
        if spot.path == ".":
            raise whole_root(spot.written)
    blind = looks and (source.is_outside or target.is_outside)
    kind = "file"
    if not blind:
        kind = await _check_there(context.workspace, source)
        if await find_kind(context.workspace, target) is not None:
            raise ToolError(
                f"There is something at {target.path!r} already; choose another name, or delete "
                "it first."
            )
        bases = await _base(context.workspace, source, kind)
    expect = bases.get(source.path)
    inner: tuple[Part, ...] = ()
    if kind == "dir":
        inner = await _grave_parts(context.workspace, source, source, target)
    word = {"dir": "folder ", "link": "link "}.get(kind, "")
    shown = [name_in_line(spot.path) for spot in (source, target)]
    return Plan(
        parts=(source.part("write"), target.part("write"), *inner),
        edits=(Move(source=source.path, target=target.path, expect=expect),),
        preview=Preview(kind="text", text=f"Move {word}{shown[0]}\nto {shown[1]}"),
        bases=bases,
        told=f"Moved {word}{source.path!r} to {target.path!r}.",
    )


async def _check_there(workspace: Workspace, spot: Spot) -> str:
    kind = await find_kind(workspace, spot)
    if kind is None:
        raise ToolError(
            f"There is no file or folder {spot.path!r}; list its folder to see what is there."
        )
    return kind


async def _base(workspace: Workspace, spot: Spot, kind: str) -> dict[str, str]:
    """The file's hash; nothing for a link, a folder, or what is too large to read."""
    if kind != "file":
        return {}
    try:
        return {spot.path: (await workspace.read(spot.path)).hash}
    except ToolError:
        return {}


async def _grave_parts(workspace: Workspace, spot: Spot, *roots: Spot) -> tuple[Part, ...]:
    """What in a folder calls for caution by itself, such as secrets, at each place it will be.

    Where not all of it can be looked at, what is not known calls for it too (A5.67, A5.69).

    Args:
        workspace: Where the folder can be reached.
        spot: The folder as it is now.
        roots: What it is called before and after.
    """
    try:
        found = await workspace.walk(spot.path, ignored=True)
    except ToolError:  # told by the change itself
        return ()
    parts: list[Part] = []
    if found.truncated:
        seen = len(found.entries)
        caution = (
            f"{name_in_line(spot.path)} holds more than the {seen:,} names that were looked at; "
            "there may be secrets among the rest."
        )
        parts += [path_part(root.path, effect="write", caution=caution) for root in roots]
    for entry in found.entries:
        paths = [posixpath.join(root.path, entry.name) for root in roots]
        made = [Spot(path, path, path).part("write") for path in paths]
        parts += [part for part in made if part.caution is not None]
        if len(parts) >= _GRAVE_MAX:
            break
    return tuple(parts)


def _target_of(path: str, name: str) -> str:
    if not name or "/" in name or name in (".", ".."):
        raise ToolInputInvalid(f"{name!r} is no plain name; to move it elsewhere use move_path.")
    return posixpath.join(posixpath.dirname(path.rstrip("/")), name)


async def _look_rename(context: ToolContext, arguments: dict[str, Any]) -> Look:
    path = arguments["path"]
    source = await locate(context, path, follow=False)
    target = await locate(context, _target_of(path, arguments["name"]), follow=False)
    return to_look(await _plan_move(context, source, target, looks=True))


@tool(
    effect="write",
    title=lambda arguments: f"Rename {arguments['path']} to {arguments['name']}",
    look=_look_rename,
    verify=lambda arguments: _target_of(arguments["path"], arguments["name"]),
)
async def rename_path(context: ToolContext, path: str, name: str) -> ToolOutput:
    """Give a file or folder another name in its folder.

    Args:
        context: The call.
        path: Its path.
        name: Its new name.
    """
    source = await locate(context, path, follow=False)
    target = await locate(context, _target_of(path, name), follow=False)
    return await carry_out(context, await _plan_move(context, source, target, looks=False))


async def _look_move(context: ToolContext, arguments: dict[str, Any]) -> Look:
    source = await locate(context, arguments["source"], follow=False)
    target = await locate(context, arguments["target"], follow=False)
    return to_look(await _plan_move(context, source, target, looks=True))


@tool(
    effect="write",
    title=lambda arguments: f"Move {arguments['source']} to {arguments['target']}",
    look=_look_move,
)
async def move_path(context: ToolContext, source: str, target: str) -> ToolOutput:
    """Move a file or folder; folders above the target are made. Nothing may stand at the target.

    Args:
        context: The call.
        source: Its path.
        target: Its new path, the name included.
    """
    old = await locate(context, source, follow=False)
    new = await locate(context, target, follow=False)
    return await carry_out(context, await _plan_move(context, old, new, looks=False))


async def _look_delete(context: ToolContext, arguments: dict[str, Any]) -> Look:
    spot = await locate(context, arguments["path"], follow=False)
    return to_look(await _plan_delete(context, spot, arguments["recursive"], looks=True))


async def _plan_delete(context: ToolContext, spot: Spot, recursive: bool, *, looks: bool) -> Plan:
    if spot.path == ".":
        raise whole_root(spot.written)
    parts = (spot.part("write"),)
    if looks and spot.is_outside:
        preview = Preview(
            kind="text", text=f"Delete {name_in_line(spot.path)}, with all in it if it is a folder"
        )
        return Plan(parts=parts, edits=(), preview=preview, bases={}, told="")
    kind = await _check_there(context.workspace, spot)
    if kind == "dir":
        return await _plan_delete_dir(context, spot, recursive)
    bases = await _base(context.workspace, spot, kind)
    preview = Preview(kind="text", text=f"Delete the {kind} {name_in_line(spot.path)}")
    if bases:
        data = (await context.workspace.read(spot.path)).data
        preview = await preview_files([(spot.path, spot.path, data, None)])
    return Plan(
        parts=parts,
        edits=(Remove(path=spot.path, expect=bases.get(spot.path)),),
        preview=preview,
        bases=bases,
        told=f"Deleted {spot.path!r}.",
    )


async def _plan_delete_dir(context: ToolContext, spot: Spot, recursive: bool) -> Plan:
    workspace = context.workspace
    found = await workspace.walk(spot.path, ignored=True)
    files = [entry for entry in found.entries if entry.kind != "dir"]
    if found.entries and not recursive:
        raise ToolError(
            f"The folder {spot.path!r} holds {len(files)} files; set recursive to delete it with "
            "all in it."
        )
    bases: dict[str, str] = {}
    for entry in files if len(files) <= _BASES_MAX else ():
        path = posixpath.join(spot.path, entry.name)
        bases |= await _base(workspace, Spot(path, path, path), entry.kind)
    names = [name_in_line(entry.name) for entry in files[:_NAMES_SHOWN]]
    left = len(files) - len(names)
    some = "or more " if found.truncated else ""
    head = f"Delete the folder {name_in_line(spot.path)} with all in it: {len(files)} {some}files"
    tail = [f"and {left} more"] if left else []
    inner = await _grave_parts(workspace, spot, spot)
    return Plan(
        parts=(spot.part("write"), *inner),
        edits=(Remove(path=spot.path),),
        preview=Preview(kind="text", text="\n".join((head, *names, *tail))),
        bases=bases,
        told=f"Deleted the folder {spot.path!r} with {len(files)} {some}files.",
    )


@tool(
    effect="write",
    title=lambda arguments: f"Delete {arguments['path']}",
    look=_look_delete,
)
async def delete_path(context: ToolContext, path: str, recursive: bool = False) -> ToolOutput:
    """Delete a file, a link or a folder.

    Args:
        context: The call.
        path: Its path.
        recursive: Also a folder that is not empty.
    """
    spot = await locate(context, path, follow=False)
    return await carry_out(context, await _plan_delete(context, spot, recursive, looks=False))
