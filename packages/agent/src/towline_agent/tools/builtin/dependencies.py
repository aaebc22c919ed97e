"""Looking a package up, and making a project depend on it (A5.T9, A5.T10)."""

import os
import posixpath
from collections.abc import Awaitable, Callable
from typing import Any, Final

from towline_agent.errors import ToolError
from towline_agent.permissions.part import Part
from towline_agent.tools.builtin.change import Plan, carry_out, to_look
from towline_agent.tools.builtin.rewriting import Original, plan_rewrite, read_original
from towline_agent.tools.code.index_url import find_index_url
from towline_agent.tools.code.package_index import (
    PackageIndex,
    Project,
    check_package_name,
)
from towline_agent.tools.code.requirements import (
    add_requirement,
    choose_release,
    find_requirement,
    lower_bound,
    requires_python,
)
from towline_agent.tools.function import tool
from towline_agent.tools.tool import Look, Tool, ToolContext, ToolOutput

__all__ = ["IndexFinder", "make_dependency_tools"]

IndexFinder = Callable[[], Awaitable[PackageIndex]]
"""Tells which index is asked."""

_RELEASES_SHOWN: Final = 15
_MANIFEST: Final = "pyproject.toml"


async def _find_index() -> PackageIndex:
    """The machine's own index, through the transport that this process has anyway."""
    from towline_agent.providers.http import shared_transport  # it takes time to import

    return PackageIndex(await find_index_url(os.environ), shared_transport())


class _Index:
    """A conversation's index: found once, each project asked for once."""

    def __init__(self) -> None:
        self._index: PackageIndex | None = None
        self._projects: dict[str, Project] = {}

    async def find(self, finder: IndexFinder) -> PackageIndex:
        if self._index is None:
            self._index = await finder()
        return self._index

    async def project(self, finder: IndexFinder, name: str) -> Project:
        index = await self.find(finder)
        if name not in self._projects:
            self._projects[name] = await index.project(name)
        return self._projects[name]


def _check_name(arguments: dict[str, Any]) -> None:
    check_package_name(arguments["name"])


def make_dependency_tools(find_index: IndexFinder = _find_index) -> tuple[Tool, Tool]:
    """The tools `search_dependency` and `add_dependency`.

    Args:
        find_index: Tells which index is asked; without it the one of the machine's pip and uv.
    """

    async def host_part(context: ToolContext) -> Part:
        index = await context.state.get(_Index).find(find_index)
        return Part(subject=index.host, kind="host", effect="read")

    async def look_at_search(context: ToolContext, _: dict[str, Any]) -> Look:
        return Look(parts=(await host_part(context),))

    @tool(
        name="search_dependency",
        effect="read",
        idempotent=True,
        title=lambda arguments: f"Look up the package {arguments['name']}",
        look=look_at_search,
        verify=_check_name,
    )
    async def search_dependency(context: ToolContext, name: str) -> str:
        """Look up one Python package by exact name on the package index: versions, summary.

        Args:
            context: The call.
            name: Name alone.
        """
        state = context.state.get(_Index)
        project = await state.project(find_index, name)
        index = await state.find(find_index)
        return await _tell(index, project)

    async def plan_add(
        context: ToolContext, name: str, version: str, group: str | None, path: str
    ) -> Plan:
        original = await _read_manifest(context, path)
        known = find_requirement(original.text, name, group)
        if known is not None:
            raise ToolError(f"{name} is there already, as {known!r}; edit {path} to change it.")
        project = await context.state.get(_Index).project(find_index, name)
        release = choose_release(project, requires_python(original.text), version)
        requirement = f"{project.name}{version}" if version else lower_bound(project.name, release)
        text = add_requirement(original.text, requirement, group)
        step = await _next_step(context, original.spot.path)
        return await plan_rewrite(original, text, f"Added {requirement!r}. {step}")

    async def look_at_add(context: ToolContext, arguments: dict[str, Any]) -> Look:
        look = to_look(await plan_add(context, **arguments))
        return Look(
            parts=(*look.parts, await host_part(context)), preview=look.preview, bases=look.bases
        )

    @tool(
        name="add_dependency",
        effect="write",
        title=lambda arguments: f"Add the dependency {arguments['name']}",
        look=look_at_add,
        verify=_check_name,
    )
    async def add_dependency(
        context: ToolContext,
        name: str,
        version: str = "",
        group: str | None = None,
        path: str = _MANIFEST,
    ) -> ToolOutput:
        """Add a Python package to pyproject.toml, if the index has it. Nothing is installed.

        Args:
            context: The call.
            name: Name alone.
            version: Such as >=2,<3; without it the newest or later.
            group: Dependency group such as dev.
            path: Another pyproject.toml.
        """
        return await carry_out(context, await plan_add(context, name, version, group, path))

    return search_dependency, add_dependency


async def _read_manifest(context: ToolContext, path: str) -> Original:
    if posixpath.basename(path) != _MANIFEST:
        raise ToolError(
            f"{path!r} is no {_MANIFEST}; other files are edited with edit_file: look the version "
            "up with search_dependency."
        )
    return await read_original(context, path)


async def _next_step(context: ToolContext, path: str) -> str:
    """What installs it."""
    folder = posixpath.dirname(path) or "."
    names = {entry.name for entry in (await context.workspace.walk(folder, deep=False)).entries}
    for lock, command in (
        ("uv.lock", "uv sync"),
        ("poetry.lock", "poetry lock"),
        ("pdm.lock", "pdm lock"),
    ):
        if lock in names:
            return f"Nothing is installed yet: run {command!r}, which also renews {lock}."
    return "Nothing is installed yet: run 'pip install -e .' or what this project uses."


async def _tell(index: PackageIndex, project: Project) -> str:
    releases = project.releases
    if not releases:
        return f"{project.name} is on {index.host}, but has no release that can be installed."
    newest = choose_release(project, "")
    lines = [f"{project.name} {newest.version}{_day(newest.uploaded)} on {index.host}"]
    summary = await index.summary(newest)
    if summary:
        lines.append(f"Summary, by its authors: {summary}")
    if newest.requires_python:
        lines.append(f"Requires Python {newest.requires_python}")
    lines.append(
        f"{len(releases)} releases, the first {releases[-1].version}{_day(releases[-1].uploaded)}"
    )
    shown = [
        f"{one.version}{' (yanked)' if one.yanked else ''}" for one in releases[:_RELEASES_SHOWN]
    ]
    more = ", ..." if len(releases) > _RELEASES_SHOWN else ""
    lines.append(f"Versions: {', '.join(shown)}{more}")
    return "\n".join(lines)


def _day(day: str) -> str:
    return f" ({day})" if day else ""
