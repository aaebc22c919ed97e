"""Writing and editing files (A5.T6, A5.12 to A5.15)."""

from typing import Any

from towline_agent.errors import ToolError
from towline_agent.tools.builtin.change import (
    Plan,
    carry_out,
    preview_files,
    read_seen,
    read_text,
    tell_places,
    to_look,
)
from towline_agent.tools.builtin.place import Spot, find_kind, locate, reach
from towline_agent.tools.edits.replacement import TextEdit, replace_texts
from towline_agent.tools.function import tool
from towline_agent.tools.tool import Look, ToolContext, ToolOutput
from towline_agent.workspaces.base import ABSENT, FileData, Put
from towline_agent.workspaces.seen import Seen
from towline_agent.workspaces.text import decode
from towline_agent.workspaces.threads import FILES

__all__ = ["create_file", "edit_file", "write_file"]


async def _look_create(context: ToolContext, arguments: dict[str, Any]) -> Look:
    spot = await locate(context, arguments["path"])
    if not spot.is_outside:  # what is there is nobody's business before it is allowed
        await _check_absent(context, spot)
    return to_look(await _plan_new(spot, arguments["content"]))


async def _check_absent(context: ToolContext, spot: Spot) -> None:
    kind = await find_kind(context.workspace, spot)
    if kind is not None:
        word = {"dir": "a folder", "file": "a file"}.get(kind, "something")
        raise ToolError(
            f"There is {word} at {spot.path!r} already; to change a file, read it and use "
            "edit_file or write_file."
        )


async def _plan_new(spot: Spot, content: str) -> Plan:
    data = content.encode()
    count = content.count("\n") + (not content.endswith("\n") and bool(content))
    return Plan(
        parts=(spot.part("write"),),
        edits=(Put(path=spot.path, data=data, expect=ABSENT),),
        preview=await preview_files([(spot.path, spot.path, None, data)]),
        bases={spot.path: ABSENT},
        told=f"Created {spot.path!r} with {count} lines.",
    )


@tool(
    effect="write",
    title=lambda arguments: f"Create {arguments['path']}",
    look=_look_create,
)
async def create_file(context: ToolContext, path: str, content: str) -> ToolOutput:
    """Make a new text file and the folders above it. Fails if it is there already.

    Args:
        context: The call.
        path: Path of the file.
        content: The whole text.
    """
    spot = await locate(context, path)
    await _check_absent(context, spot)
    return await carry_out(context, await _plan_new(spot, content))


async def _look_write(context: ToolContext, arguments: dict[str, Any]) -> Look:
    spot = await locate(context, arguments["path"])
    if spot.is_outside and context.state.get(Seen).get(spot.path) is None:
        return to_look(await _plan_new(spot, arguments["content"]))
    return to_look(await _plan_write(context, spot, arguments["content"], looks=True))


async def _plan_write(context: ToolContext, spot: Spot, content: str, *, looks: bool) -> Plan:
    workspace = reach(context, spot) if looks else context.workspace
    if await find_kind(workspace, spot) is None:
        return await _plan_new(spot, content)
    before = await read_seen(context, workspace, spot)
    data = await FILES.run(lambda: _in_same_way(before, content))
    return Plan(
        parts=(spot.part("write"),),
        edits=(Put(path=spot.path, data=data, expect=before.hash),),
        preview=await preview_files([(spot.path, spot.path, before.data, data)]),
        bases={spot.path: before.hash},
        told=f"Wrote {spot.path!r}: {len(data)} bytes in place of {len(before.data)}."
        if data != before.data
        else f"{spot.path!r} is as it was: that is what it held.",
    )


def _in_same_way(before: FileData, content: str) -> bytes:
    """A text in the encoding and with the line ends of the file that it replaces (A5.5)."""
    if not before.data:
        return content.encode()
    file = decode(before.data)
    if file is None or not file.exact:  # what was no text is replaced by one
        return content.encode()
    return file.encode(content)


@tool(
    effect="write",
    title=lambda arguments: f"Write {arguments['path']}",
    look=_look_write,
)
async def write_file(context: ToolContext, path: str, content: str) -> ToolOutput:
    """Replace a whole text file, or make a new one.

    Read an existing file first; for small changes use edit_file.

    Args:
        context: The call.
        path: Path of the file.
        content: The whole new text.
    """
    spot = await locate(context, path)
    return await carry_out(context, await _plan_write(context, spot, content, looks=False))


async def _look_edit(context: ToolContext, arguments: dict[str, Any]) -> Look:
    spot = await locate(context, arguments["path"])
    return to_look(await _plan_edit(context, spot, arguments["edits"], looks=True))


async def _plan_edit(
    context: ToolContext, spot: Spot, edits: list[TextEdit], *, looks: bool
) -> Plan:
    workspace = reach(context, spot) if looks else context.workspace
    before = await read_seen(context, workspace, spot)
    data, told = await FILES.run(lambda: _edit(before, edits, spot))
    return Plan(
        parts=(spot.part("write"),),
        edits=(Put(path=spot.path, data=data, expect=before.hash),),
        preview=await preview_files([(spot.path, spot.path, before.data, data)]),
        bases={spot.path: before.hash},
        told=told,
    )


def _edit(before: FileData, edits: list[TextEdit], spot: Spot) -> tuple[bytes, str]:
    file = read_text(before, spot)
    made = replace_texts(file.text, edits)
    count = len(made.places)
    head = f"Edited {spot.path!r} at {count} place{'s' if count > 1 else ''}:"
    return file.encode(made.text), f"{head}\n{tell_places(made.text, made.places)}"


@tool(
    effect="write",
    title=lambda arguments: f"Edit {arguments['path']}",
    look=_look_edit,
)
async def edit_file(context: ToolContext, path: str, edits: list[TextEdit]) -> ToolOutput:
    """Replace exact texts in a file that you have read. All edits are made, in order, or none.

    Args:
        context: The call.
        path: Path of the file.
        edits: Each old_text must stand in the file exactly once, without line numbers, unless
            replace_all is set.
    """
    spot = await locate(context, path)
    return await carry_out(context, await _plan_edit(context, spot, edits, looks=False))
