"""Where a path leads, as permission rules and edits name it (A5.1 to A5.3)."""

import os
import posixpath
from collections.abc import Awaitable, Callable
from typing import Any, Final, NamedTuple

from towline_agent.errors import ToolDenied, ToolError, ToolInputInvalid
from towline_agent.permissions.part import Part
from towline_agent.permissions.secret import is_secret, path_part
from towline_agent.tools.tool import Look, ToolContext
from towline_agent.workspaces.base import Workspace
from towline_agent.workspaces.fence import PATH_MAX_BYTES
from towline_agent.workspaces.paths import name_in_line
from towline_agent.workspaces.threads import FILES
from towline_agent.workspaces.twin import Twin, Twins
from towline_protocol import Preview

__all__ = ["Spot", "find_kind", "locate", "look_at", "reach"]

_SHOWN: Final = 80
"""Characters of a path that is no path, in a message."""


class Spot(NamedTuple):
    """A path and where it leads."""

    path: str
    """The real path: relative to the root, absolute outside; `.` for the root."""
    real: str
    """The same, absolute."""
    written: str
    """The path as the model wrote it, in one way of writing."""
    twin: Twin | None = None
    """The secret file that it is another name of, by a hard link."""

    linked: bool = False
    """Whether the root itself is reached by a link, so that rules may name it in two ways."""

    @property
    def is_outside(self) -> bool:
        """Whether it leads out of the root."""
        return self.path.startswith("/")

    def part(self, effect: str) -> Part:
        """What a call does there, for the gate.

        Args:
            effect: `read` or `write`.
        """
        also = () if self.written in (self.path, self.real) else (self.written,)
        if self.linked:
            also = (*also, self.real)
        grants = (self.real,) if self.is_outside else ()
        doubt = None
        if self.twin is not None:
            also, doubt = (*also, *self.twin.names), self.twin.doubt(self.path)
        return path_part(self.path, effect=effect, also=also, grants=grants, caution=doubt)


async def locate(context: ToolContext, path: str, *, follow: bool = True) -> Spot:
    """Where a path leads, links followed.

    Args:
        context: The call.
        path: Relative to the root, or absolute.
        follow: Whether a link at its end is followed; else the link itself is meant.

    Raises:
        ToolInputInvalid: It is no path.
    """
    root = context.workspace.root
    return await FILES.run(lambda: _locate(root, path, follow))


def _locate(root: str, path: str, follow: bool) -> Spot:
    try:
        if "\0" in path:
            raise ValueError("a NUL character")
        if len(os.fsencode(path)) >= PATH_MAX_BYTES:
            raise ToolInputInvalid(
                f"The path {path[:_SHOWN]!r}… is longer than a path can be; check it."
            )
        base = os.path.realpath(root)
        real = _real(posixpath.join(base, path), follow)
        os.fsencode(real)
    except ValueError as error:  # a NUL character, or what no file system can name
        raise ToolInputInvalid(f"{path!r} is no path that can be used; check it.") from error
    inside = real == base or real.startswith(base.rstrip("/") + "/")
    shown = os.path.relpath(real, base) if inside else real
    written = posixpath.normpath(path)
    for start in (root, base):
        written = written.removeprefix(start.rstrip("/") + "/")
    twin = Twins(base, is_secret).find(real)
    return Spot(shown, real, written, twin, linked=inside and base != root)


def _real(path: str, follow: bool) -> str:
    above, name = os.path.split(path.rstrip("/") or "/")
    if follow or name in ("", ".", ".."):
        return os.path.realpath(path)
    return posixpath.join(os.path.realpath(above), name)


def look_at(
    effect: str, argument: str = "path"
) -> Callable[[ToolContext, dict[str, Any]], Awaitable[Look]]:
    """The look of a tool that does one thing at one path.

    Args:
        effect: `read` or `write`.
        argument: The name of the argument that holds the path.
    """

    async def look(context: ToolContext, arguments: dict[str, Any]) -> Look:
        spot = await locate(context, arguments[argument])
        preview = Preview(kind="text", text=_describe(spot, effect, argument, arguments))
        return Look(parts=(spot.part(effect),), preview=preview)

    return look


def _describe(spot: Spot, effect: str, argument: str, arguments: dict[str, Any]) -> str:
    """What is touched, and how: where a path leads, then all other arguments."""
    told = [f"{effect.capitalize()} {name_in_line(spot.path)}"]
    if spot.written not in (spot.path, spot.real):
        told.append(f"asked for as {name_in_line(spot.written)}, which leads there")
    rest = {name: value for name, value in arguments.items() if name != argument}
    if {"start", "lines"} <= rest.keys():
        told.append(_tell_lines(rest.pop("start"), rest.pop("lines")))
    given = (f"{name}: {value}" for name, value in rest.items() if value not in (None, "", False))
    return "\n".join((*told, *map(name_in_line, given)))


def _tell_lines(start: int, count: int) -> str:
    if start < 0:
        first = "" if count >= -start else f"the first {count} of "
        return f"{first}the last {-start} lines"
    return f"lines {start} to {start + count - 1}"


def reach(context: ToolContext, *spots: Spot) -> Workspace:
    """The workspace with places outside reachable too: to look at what was read before."""
    outside = frozenset(spot.real for spot in spots if spot.is_outside)
    return context.workspace.grant(outside) if outside else context.workspace


async def find_kind(workspace: Workspace, spot: Spot) -> str | None:
    """What stands at a place: `file`, `dir`, `link`, `other`; `None` for nothing.

    Raises:
        ToolDenied: It can't be reached.
    """
    if spot.path in (".", "/"):
        return "dir"
    if spot.is_outside:
        return await _probe(workspace, spot)
    above, name = posixpath.split(spot.path)
    try:
        found = await workspace.walk(above or ".", deep=False, ignored=True)
    except ToolDenied:
        raise
    except ToolError:  # the folder above is missing, or is none
        return None
    return next((entry.kind for entry in found.entries if entry.name == name), None)


async def _probe(workspace: Workspace, spot: Spot) -> str | None:
    """What stands outside, where the folder above may not be listed."""
    probes: dict[str, Callable[[str], Awaitable[object]]] = {
        "dir": lambda path: workspace.walk(path, deep=False),
        "file": workspace.read,
    }
    for kind, probe in probes.items():
        try:
            await probe(spot.path)
        except ToolDenied:
            raise
        except ToolError:
            continue
        return kind
    return None
