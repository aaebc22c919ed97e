"""What the files say that describe a project: its names, what it needs, what it can do."""

import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath
from typing import Any, Final, cast

import msgspec

__all__ = ["MANIFESTS", "read_manifest"]

_LIST_CHARS: Final = 400
"""Characters of one list."""
_TARGET: Final = re.compile(
    r"^([A-Za-z0-9][\w.-]*(?:[ \t]+[A-Za-z0-9][\w.-]*)*)[ \t]*:(?![=])", re.MULTILINE
)
_RECIPE: Final = re.compile(r"^@?([A-Za-z_][\w-]*)(?:[ \t]+[^:=\n]*)?:(?!=)", re.MULTILINE)
_GO_LINE: Final = re.compile(
    r"^\s*(?:require[ \t]+)?([\w.-]+\.[\w.-]+/\S+)[ \t]+v\S+(.*)$", re.MULTILINE
)


def read_manifest(path: str, text: str) -> tuple[str, ...]:
    """What a manifest says, a line for each kind of thing; one that is broken says only that.

    Args:
        path: The file; its name says what it is.
        text: Its text.
    """
    read = MANIFESTS[PurePosixPath(path).name]
    try:
        return tuple(line for line in read(text) if line)
    except (ValueError, RecursionError, AttributeError, TypeError):
        return ("it can't be read: its syntax is broken",)


def _pyproject(text: str) -> Iterable[str]:
    data = tomllib.loads(text)
    project = _table(data.get("project"))
    poetry = _table(_table(data.get("tool")).get("poetry"))
    yield _head("Python", project or poetry)
    yield _list("requires Python", [project.get("requires-python", "")])
    scripts = {**_table(project.get("scripts")), **_table(poetry.get("scripts"))}
    yield _list("entry points", [f"{name} = {target}" for name, target in scripts.items()])
    needs = [*project.get("dependencies", ()), *_table(poetry.get("dependencies"))]
    yield _list("dependencies", needs)
    extras = _table(project.get("optional-dependencies"))
    yield _list("extras", extras)
    for name, group in _table(data.get("dependency-groups")).items():
        yield _list(f"group {name}", [item for item in group if isinstance(item, str)])
    yield _list("tools set up", _table(data.get("tool")))
    members = _table(_table(_table(data.get("tool")).get("uv")).get("workspace"))
    yield _list("workspace members", members.get("members", ()))


def _package_json(text: str) -> Iterable[str]:
    data: dict[str, Any] = msgspec.json.decode(text, type=dict[str, Any])
    yield _head("JavaScript", data)
    entries = [data.get("main"), data.get("module"), *_names(data.get("bin"))]
    yield _list("entry points", [entry for entry in entries if entry])
    yield _list("scripts", [f"{name}: {run}" for name, run in _table(data.get("scripts")).items()])
    yield _list("dependencies", _table(data.get("dependencies")))
    yield _list("dev dependencies", _table(data.get("devDependencies")))
    yield _list("workspaces", _names(data.get("workspaces")))


def _cargo(text: str) -> Iterable[str]:
    data = tomllib.loads(text)
    yield _head("Rust", _table(data.get("package")))
    yield _list("binaries", [_table(one).get("name", "") for one in data.get("bin", ())])
    yield _list("dependencies", _table(data.get("dependencies")))
    yield _list("dev dependencies", _table(data.get("dev-dependencies")))
    yield _list("workspace members", _table(data.get("workspace")).get("members", ()))


def _go_mod(text: str) -> Iterable[str]:
    module = re.search(r"^module[ \t]+(\S+)", text, re.MULTILINE)
    version = re.search(r"^go[ \t]+(\S+)", text, re.MULTILINE)
    yield f"Go module {module[1] if module else '?'}{f', go {version[1]}' if version else ''}"
    yield _list(
        "dependencies", [line[1] for line in _GO_LINE.finditer(text) if "indirect" not in line[2]]
    )


def _makefile(text: str) -> Iterable[str]:
    found = (name for line in _TARGET.finditer(text) for name in line[1].split())
    yield _list("make targets", dict.fromkeys(found))


def _justfile(text: str) -> Iterable[str]:
    found = (line[1] for line in _RECIPE.finditer(text) if line[1] not in ("set", "alias"))
    yield _list("just recipes", dict.fromkeys(found))


def _requirements(text: str) -> Iterable[str]:
    lines = (line.partition("#")[0].strip() for line in text.splitlines())
    yield _list("requirements", [line for line in lines if line and not line.startswith("-")])


MANIFESTS: Final = {
    "pyproject.toml": _pyproject,
    "package.json": _package_json,
    "Cargo.toml": _cargo,
    "go.mod": _go_mod,
    "Makefile": _makefile,
    "makefile": _makefile,
    "GNUmakefile": _makefile,
    "justfile": _justfile,
    "Justfile": _justfile,
    ".justfile": _justfile,
    "requirements.txt": _requirements,
}
"""The files that are read, by name."""


def _table(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}


def _names(value: object) -> list[str]:
    """The strings of a list, the values of a table, or the string itself."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        value = list(cast("dict[str, object]", value).values())
    found = cast("list[object]", value) if isinstance(value, list) else []
    return [item for item in found if isinstance(item, str)]


def _head(kind: str, data: Mapping[str, Any]) -> str:
    """What it is called, and in its own words what it is."""
    name, version = data.get("name"), data.get("version")
    if not isinstance(name, str):
        return kind
    words = data.get("description")
    told = f": {_one_line(words, 160)}" if isinstance(words, str) and words.strip() else ""
    number = f" {version}" if isinstance(version, str) else ""
    return f"{kind} package {_one_line(name, 80)}{number}{told}"


def _list(title: str, items: Iterable[object]) -> str:
    """A list in one line; nothing for an empty one."""
    found = [_one_line(str(item), 80) for item in items if item]
    shown: list[str] = []
    room = _LIST_CHARS
    for item in found:
        room -= len(item) + 2
        if shown and room < 0:
            break
        shown.append(item)
    more = f", ... {len(found) - len(shown)} more" if len(found) > len(shown) else ""
    return f"{title}: {', '.join(shown)}{more}" if shown else ""


def _one_line(text: str, chars: int) -> str:
    words = " ".join(text.split())
    return words if len(words) <= chars else f"{words[:chars]}…"
