"""The tasks that a project names itself: of make, just, npm and its kin, and `pyproject.toml`."""

import difflib
import json
import re
import tomllib
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from typing import Any, Final, cast

import msgspec

from towline_agent.errors import ToolInputInvalid

__all__ = ["TASK_FILES", "ProjectTask", "choose_task", "find_tasks"]

TASK_FILES: Final = (
    *("Makefile", "makefile", "GNUmakefile"),
    *("justfile", "Justfile", ".justfile"),
    *("package.json", "pyproject.toml"),
)
"""The files that name tasks; those of the folder itself count, not those below it."""

_TASKS_MAX: Final = 200
"""Of one file; generated ones name thousands, and nobody would look for one here."""
_NAMED_IN_ERROR: Final = 30
_ABOUT_CHARS: Final = 120

_TARGET: Final = re.compile(r"^([^\s:#=.%$][^:#=%$]*?)\s*::?(?![=:])[^#\n]*(?:##\s*(.*))?$", re.M)
_RECIPE: Final = re.compile(
    r"^(?P<hidden>\[.*private.*\]\n)?@?(?P<name>[A-Za-z][\w-]*)(?:[ \t][^:\n]*)?:(?!=)", re.M
)
_JS_LOCKS: Final = {
    "pnpm-lock.yaml": "pnpm",
    "yarn.lock": "yarn",
    "bun.lockb": "bun",
    "bun.lock": "bun",
}
_PYTHON_LOCKS: Final = {"uv.lock": "uv", "poetry.lock": "poetry", "pdm.lock": "pdm"}


class ProjectTask(msgspec.Struct, frozen=True, kw_only=True):
    """One task of a project."""

    name: str
    """What it is called where it is named."""
    source: str
    """By what it is run: `make`, `just`, `npm`, `poe`, `scripts` and so on."""
    argv: tuple[str, ...]
    """The program that runs it and its arguments."""
    about: str = ""
    """What it does, in the words of the file, if it says."""
    dashes: bool = False
    """Whether `--` stands before arguments of the task's own."""

    @property
    def full_name(self) -> str:
        """`source:name`, which no other task has."""
        return f"{self.source}:{self.name}"


def find_tasks(files: Mapping[str, str], names: Collection[str] = ()) -> tuple[ProjectTask, ...]:
    """The tasks that a project's files name, in the order of `TASK_FILES`. Pure.

    A file that cannot be read as what it is names none.

    Args:
        files: Name to text, of those of `TASK_FILES` that are there.
        names: All names of the project's folder: lock files tell which program runs scripts.
    """
    found: list[ProjectTask] = []
    for name in TASK_FILES:
        if name in files:
            found += list(_tasks_of(name, files[name], names))[:_TASKS_MAX]
    return tuple({task.full_name: task for task in found}.values())


def _tasks_of(file: str, text: str, names: Collection[str]) -> Iterable[ProjectTask]:
    if file.lower().endswith("makefile"):
        return _make_tasks(text)
    if file.lower().endswith("justfile"):
        return _just_tasks(text)
    try:
        found: Any = json.loads(text) if file.endswith(".json") else tomllib.loads(text)
    except (ValueError, RecursionError):
        return ()
    if not isinstance(found, dict):
        return ()
    read = _js_tasks if file.endswith(".json") else _python_tasks
    return read(cast("dict[str, Any]", found), names)


def choose_task(tasks: Iterable[ProjectTask], name: str) -> ProjectTask:
    """The task of a name, or of a full name.

    Raises:
        ToolInputInvalid: There is none, or there are several.
    """
    known = {task.full_name: task for task in tasks}
    if name in known:
        return known[name]
    matching = [task for task in known.values() if task.name == name]
    if len(matching) == 1:
        return matching[0]
    if matching:
        told = ", ".join(task.full_name for task in matching)
        raise ToolInputInvalid(f"Several tasks are called {name!r}; name one of: {told}.")
    if not known:
        raise ToolInputInvalid(
            f"There is no task {name!r}: the project names none in {', '.join(TASK_FILES)}. Use "
            "`run_program`."
        )
    near = difflib.get_close_matches(name, [task.name for task in known.values()], n=3)
    told = ", ".join(near or list(known)[:_NAMED_IN_ERROR])
    raise ToolInputInvalid(f"There is no task {name!r}; there are: {told}.")


def _make_tasks(text: str) -> Iterable[ProjectTask]:
    text = text.replace("\\\n", " ")
    for match in _TARGET.finditer(text):
        for name in match[1].split():
            if "/" not in name and name.isprintable():
                about = (match[2] or "").strip()[:_ABOUT_CHARS]
                yield ProjectTask(name=name, source="make", argv=("make", name), about=about)


def _just_tasks(text: str) -> Iterable[ProjectTask]:
    for match in _RECIPE.finditer(text):
        if match["hidden"] is None:
            before = text[: match.start()].rstrip("\n").rpartition("\n")[2]
            about = before.lstrip("# ")[:_ABOUT_CHARS] if before.startswith("#") else ""
            name = match["name"]
            yield ProjectTask(name=name, source="just", argv=("just", name), about=about)


def _js_tasks(package: dict[str, Any], names: Collection[str]) -> Iterable[ProjectTask]:
    runner = next((r for lock, r in _JS_LOCKS.items() if lock in names), "")
    named = str(package.get("packageManager", "")).partition("@")[0]
    runner = runner or (named if named in _JS_LOCKS.values() else "npm")
    for name, script in _table(package, "scripts").items():
        yield ProjectTask(
            name=name,
            source=runner,
            argv=(runner, "run", name),
            about=str(script)[:_ABOUT_CHARS],
            dashes=runner == "npm",
        )


def _python_tasks(project: dict[str, Any], names: Collection[str]) -> Iterable[ProjectTask]:
    tool = _table(project, "tool")
    runner = next((r for lock, r in _PYTHON_LOCKS.items() if lock in names), "")
    runner = runner or next((r for r in _PYTHON_LOCKS.values() if r in tool), "")
    first = (runner, "run") if runner else ()
    for name, target in _table(project, "project", "scripts").items():
        yield ProjectTask(name=name, source="scripts", argv=(*first, name), about=_words(target))
    for name, body in _table(tool, "poe", "tasks").items():
        yield ProjectTask(name=name, source="poe", argv=(*first, "poe", name), about=_words(body))
    for name, body in _table(tool, "pdm", "scripts").items():
        if name != "_":
            yield ProjectTask(
                name=name, source="pdm", argv=("pdm", "run", name), about=_words(body)
            )
    for env in _table(tool, "hatch", "envs"):
        for name, body in _table(tool, "hatch", "envs", env, "scripts").items():
            full = name if env == "default" else f"{env}:{name}"
            yield ProjectTask(
                name=full, source="hatch", argv=("hatch", "run", full), about=_words(body)
            )


def _table(found: Mapping[str, Any], *path: str) -> dict[str, Any]:
    """A table below others; empty where there is none."""
    inner: Any = found
    for key in path:
        inner = cast("dict[str, Any]", inner).get(key) if isinstance(inner, dict) else None
    if not isinstance(inner, dict):
        return {}
    named = cast("dict[str, Any]", inner)
    return {name: body for name, body in named.items() if _is_name(name)}


def _is_name(name: str) -> bool:
    """Whether a task's name is plain enough to be shown and passed on: no option, no control."""
    return name.isprintable() and not name.startswith("-") and bool(name.strip())


def _words(body: Any) -> str:
    with suppress(TypeError, ValueError):
        return (body if isinstance(body, str) else json.dumps(body))[:_ABOUT_CHARS]
    return ""
