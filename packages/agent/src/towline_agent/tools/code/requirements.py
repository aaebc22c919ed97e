"""Adding a requirement to a `pyproject.toml`, its layout kept."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

from towline_agent.errors import ToolError
from towline_agent.tools.code.needed import import_needed
from towline_agent.tools.code.package_index import Project, Release, normalize

__all__ = [
    "add_requirement",
    "choose_release",
    "find_requirement",
    "lower_bound",
    "requires_python",
]

_NAME: Final = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)")
_LOWEST: Final = re.compile(r"(?:>=|==|~=|\^)\s*(\d+(?:\.\d+)*)")


def choose_release(project: Project, pythons: str, wanted: str = "") -> Release:
    """The newest release that a project may use.

    Pre-releases and those taken back are passed over, and those that are not for the oldest Python
    that the project is for.

    Args:
        project: What the index has.
        pythons: What the project's own file says of its Pythons; may be empty.
        wanted: Which versions are meant, such as `>=2,<3`; empty for any.

    Raises:
        ToolError: There is none, or `wanted` is no specifier.
    """
    versions, specifiers = import_needed("packaging.version"), import_needed("packaging.specifiers")
    try:
        specifier = specifiers.SpecifierSet(wanted)
    except specifiers.InvalidSpecifier as error:
        raise ToolError(
            f"{wanted!r} says no versions; write one such as '>=2.1', '>=2,<3' or '==2.1.0'."
        ) from error
    python = _LOWEST.search(pythons)
    usable = [release for release in project.releases if not release.yanked]
    fitting = [release for release in usable if not versions.Version(release.version).is_prerelease]
    for release in fitting or usable:
        fits = specifier.contains(release.version, prereleases=True)
        if fits and (python is None or _is_for(release, python[1])):
            return release
    raise ToolError(_tell_none(project, wanted, python[1] if python else ""))


def _tell_none(project: Project, wanted: str, python: str) -> str:
    newest = project.releases[0].version if project.releases else "none at all"
    among = f" among {wanted!r}" if wanted else ""
    place = f" for Python {python}" if python else ""
    return (
        f"There is no release of {project.name}{among}{place}; the newest is {newest}. Ask for "
        "other versions, or see what there is with search_dependency."
    )


def _is_for(release: Release, python: str) -> bool:
    specifiers = import_needed("packaging.specifiers")
    try:
        return specifiers.SpecifierSet(release.requires_python).contains(python, prereleases=True)
    except specifiers.InvalidSpecifier:  # of an old release
        return True


def lower_bound(name: str, release: Release) -> str:
    """The requirement for a release or a later one."""
    public = release.version.partition("+")[0]
    return f"{name}>={public}"


def requires_python(text: str) -> str:
    """The Pythons that a `pyproject.toml` is for, as it is written; empty when it does not say."""
    document = _parse(text)
    return str(_table(document, "project").get("requires-python", ""))


def find_requirement(text: str, name: str, group: str | None) -> str | None:
    """The requirement of a package that stands in a `pyproject.toml` already, as it is written."""
    document = _parse(text)
    found = _names(_requirements(document, group))
    return found.get(normalize(name))


def add_requirement(text: str, requirement: str, group: str | None) -> str:
    """The text of a `pyproject.toml` with one requirement more; all else stays as it is.

    In a list that is in order the place is kept in order, else it comes last.

    Args:
        text: The file's text.
        requirement: Such as `rich>=13`.
        group: A dependency group such as `dev`; `None` for what the project runs on.

    Raises:
        ToolError: The text is broken, or has no place for it.
    """
    tomlkit = import_needed("tomlkit")
    document = _parse(text)
    poetry = _poetry(document, group, make=True)
    if poetry is not None:
        name, _, bound = requirement.partition(">=")
        poetry[name] = f">={bound}" if bound else requirement[len(name) :] or "*"
        return str(tomlkit.dumps(document))
    table, key = _place(document, group)
    if key not in table:
        table.add(key, tomlkit.array())
    known = _list(table, key)
    known.insert(_order(known, requirement), requirement)
    return str(tomlkit.dumps(document))


def _place(document: Any, group: str | None) -> tuple[Any, str]:
    if group is not None:
        if "dependency-groups" not in document:
            document.add("dependency-groups", import_needed("tomlkit").table())
        return _table(document, "dependency-groups"), group
    if "project" not in document:
        raise ToolError(
            "pyproject.toml has no [project] table, so it lists no dependencies; add one with "
            "edit_file, or the requirement to the file that this project uses."
        )
    project = _table(document, "project")
    if "dependencies" in project.get("dynamic", ()):
        raise ToolError(
            "The dependencies of this project are made at build time (dynamic in pyproject.toml); "
            "add the requirement to the file that they come from."
        )
    return project, "dependencies"


def _table(parent: Any, name: str) -> Any:
    """A table of a document; an empty one where there is none."""
    found = parent.get(name, {})
    if not isinstance(found, Mapping):
        raise ToolError(f"{name!r} in pyproject.toml is no table; mend it with edit_file.")
    return cast("Any", found)


def _list(parent: Any, name: str) -> Any:
    """A list of a document; an empty one where there is none."""
    found = parent.get(name, [])
    if not isinstance(found, list):
        raise ToolError(f"{name!r} in pyproject.toml is no list; mend it with edit_file.")
    return cast("Any", found)


def _order(known: Iterable[Any], requirement: str) -> int:
    """Where it goes."""
    names = [_name_of(str(item)) if isinstance(item, str) else "" for item in known]
    if len(names) < 2 or names != sorted(names):
        return len(names)
    own = _name_of(requirement)
    return next((place for place, name in enumerate(names) if name > own), len(names))


def _requirements(document: Any, group: str | None) -> list[str]:
    poetry = _poetry(document, group, make=False)
    if poetry is not None:
        return [str(name) for name in poetry]
    parent = _table(document, "dependency-groups" if group else "project")
    found = _list(parent, group or "dependencies")
    return [str(item) for item in found if isinstance(item, str)]


def _poetry(document: Any, group: str | None, *, make: bool) -> Any | None:
    """The table of a Poetry project without a `[project]` that lists dependencies."""
    tool = _table(_table(document, "tool"), "poetry")
    if "dependencies" in _table(document, "project") or "dependencies" not in tool:
        return None
    if group is None:
        return _table(tool, "dependencies")
    tomlkit = import_needed("tomlkit")
    for name in ("group", group, "dependencies"):
        if name not in tool:
            if not make:
                return {}
            tool.add(name, tomlkit.table(is_super_table=name != "dependencies"))
        tool = _table(tool, name)
    return tool


def _names(requirements: Iterable[str]) -> dict[str, str]:
    return {_name_of(text): text for text in requirements}


def _name_of(requirement: str) -> str:
    found = _NAME.match(requirement)
    return normalize(found[1]) if found else ""


def _parse(text: str) -> Any:
    tomlkit = import_needed("tomlkit")
    try:
        return tomlkit.parse(text)
    except tomlkit.exceptions.TOMLKitError as error:
        raise ToolError(f"pyproject.toml is no TOML: {error}. Mend that first.") from error
