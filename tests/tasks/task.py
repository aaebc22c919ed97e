"""Tasks on small projects: what is asked, a model's calls that do it, and how it is judged.

Each folder beside this file that holds a `task.toml` is one. Its `project/` is copied, an agent
works in the copy, and then the project's own tests say whether the work was done.
"""

import fnmatch
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any, Final

import msgspec

__all__ = ["HERE", "TASKS", "Call", "Step", "Task", "Verdict", "judge", "read_task"]

HERE: Final = Path(__file__).parent
"""Where the tasks lie."""

_JUDGE_S: Final = 60.0
"""Seconds that a judge may take; each takes less than two on a machine that does nothing else."""
_SAID_CHARS: Final = 600
_NODES: Final = (HERE.parents[1] / ".venv" / "bin",)


class Call(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One call of a tool in a script."""

    tool: str
    """Its name."""
    arguments: dict[str, Any] = {}
    """Its arguments; `{job}` in one stands for the id of the last background job."""
    fails: bool = False
    """Whether the result should be an error."""
    shows: str = ""
    """What the result should hold; a regex."""


class Step(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a scripted model does in one step."""

    call: tuple[Call, ...]
    """The calls, all at once."""


class Task(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One task, as its `task.toml` tells it."""

    prompt: str
    """What is asked."""
    judge: tuple[str, ...]
    """The command that says by its exit code whether it was done, run in the project. `python` and
    `node` are found; `judge.py` is the file beside the task's own."""
    step: tuple[Step, ...]
    """A script that does it."""
    last_words: str
    """What the script says at the end."""
    keep: tuple[str, ...] = ()
    """Patterns of files that must stay as they are."""
    says: tuple[str, ...] = ()
    """What the last words must hold; regexes, upper and lower case the same."""
    environment: dict[str, str] = {}
    """More variables for the judge."""
    needs: tuple[str, ...] = ()
    """Programs that must be there: markers of pytest."""
    max_steps: int = 24
    """Steps that a real model may take."""
    easy: bool = False
    """Whether a model of a few billion parameters should manage it."""
    folder: Path = HERE
    """Where it lies."""

    @property
    def name(self) -> str:
        """What it is called."""
        return self.folder.name

    @property
    def project(self) -> Path:
        """The project as it was."""
        return self.folder / "project"

    def copy(self, target: Path) -> Path:
        """A copy of the project to work in, as new as if it had just been checked out."""
        return Path(shutil.copytree(self.project, target, copy_function=shutil.copy))

    def changed(self, folder: Path) -> tuple[str, ...]:
        """The files that must stay and did not: changed, gone, or new ones among them."""
        before, after = _read_kept(self.project, self.keep), _read_kept(folder, self.keep)
        return tuple(
            sorted(n for n in before.keys() | after.keys() if before.get(n) != after.get(n))
        )


class Verdict(msgspec.Struct, frozen=True):
    """What became of a task."""

    passed: bool
    """Whether it was done."""
    why: str = ""
    """What is wrong; empty when nothing is."""


def read_task(folder: Path) -> Task:
    """The task of a folder.

    Raises:
        msgspec.ValidationError: Its `task.toml` is no task.
    """
    told = tomllib.loads((folder / "task.toml").read_text(encoding="utf-8"))
    task = msgspec.convert(told, Task)
    return msgspec.structs.replace(task, folder=folder)


TASKS: Final = tuple(read_task(path.parent) for path in sorted(HERE.glob("*/task.toml")))
"""All of them, by name."""


def judge(task: Task, folder: Path, words: str) -> Verdict:
    """Whether a task was done. Blocks while the project's tests run.

    Args:
        task: The task.
        folder: The copy that was worked in.
        words: The last words of the model.
    """
    changed = task.changed(folder)
    if changed:
        return Verdict(passed=False, why=f"changed what must stay: {', '.join(changed)}")
    unsaid = [one for one in task.says if re.search(one, words, re.IGNORECASE) is None]
    if unsaid:
        return Verdict(passed=False, why=f"did not say {', '.join(map(repr, unsaid))}")
    # What has been compiled, by the model's runs or the judge's own, may be of a text that was
    # there a moment before: Python tells two of one size and one second not apart.
    with tempfile.TemporaryDirectory(prefix="tasks-") as empty:
        apart = {"PYTHONPYCACHEPREFIX": empty, "PYTHONDONTWRITEBYTECODE": "1"}
        return _run(task, folder, {**os.environ, **task.environment, **apart})


def _run(task: Task, folder: Path, environment: dict[str, str]) -> Verdict:
    try:
        run = subprocess.run(
            [_program(task, word) for word in task.judge],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_JUDGE_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Verdict(passed=False, why=f"its tests did not end within {_JUDGE_S:g} s")
    said = run.stdout.decode("utf-8", "replace").strip()
    if run.returncode != 0:
        return Verdict(passed=False, why=said[-_SAID_CHARS:] or f"exit code {run.returncode}")
    return Verdict(passed=True)


def _program(task: Task, word: str) -> str:
    if word == "python":
        return sys.executable
    if word == "node":
        path = os.pathsep.join([os.environ.get("PATH", ""), *map(str, _NODES)])
        return shutil.which("node", path=path) or word
    return str(task.folder / word) if word == "judge.py" else word


def _read_kept(folder: Path, patterns: tuple[str, ...]) -> dict[str, bytes]:
    """Path below the folder to content, of the files that one of the patterns names."""
    found: dict[str, bytes] = {}
    for path in folder.rglob("*"):
        name = path.relative_to(folder).as_posix()
        counts = path.is_file() and "__pycache__" not in path.parts
        if counts and any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns):
            found[name] = path.read_bytes()
    return found
