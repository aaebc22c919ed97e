"""What keeping files for an undo costs an edit, and that it holds no memory."""

import asyncio
import resource
import sys
import tempfile
import time
from pathlib import Path

from figure import Goal, compare, show, show_note

from towline_agent.workspaces.base import Keeper, Put
from towline_agent.workspaces.checkpoints import Checkpoints
from towline_agent.workspaces.local import LocalWorkspace

__all__ = ["show_checkpoints"]

_FILES = 200
_LINES = 400  # of 40 bytes: a usual source file


def show_checkpoints(*, quick: bool) -> None:
    """Edit files with a keeper and without, then many times over."""
    turns = 5 if quick else 15
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "root")
        root.mkdir()
        _write(root)
        checkpoints = Checkpoints(Path(folder, "data"), now_ms=lambda: 0)
        numbers = iter(range(10_000_000))

        def first() -> float:
            """A turn of its own each time: every file is touched for the first time."""
            turn = f"trn_{next(numbers)}"
            return _edit(root, checkpoints.keeper("ses_1", turn, str(root)), next(numbers))

        def again() -> float:
            return _edit(root, checkpoints.keeper("ses_2", "trn_1", str(root)), next(numbers))

        def bare() -> float:
            return _edit(root, None, next(numbers))

        again()
        for label, work, goal in (
            ("an edit, first touch in a turn / no keeper", first, Goal(2.5)),
            ("an edit, touched before / no keeper", again, Goal(2)),
        ):
            ours, floor, ratio = compare(turns, work, bare)
            show(label, "ms", ours, floor=floor, ratio=ratio, goal=goal)
        _show_memory(root, checkpoints, 1000 if quick else 10_000)
        checkpoints.close()


def _show_memory(root: Path, checkpoints: Checkpoints, edits: int) -> None:
    keeper = checkpoints.keeper("ses_3", "trn_1", str(root))
    for number in range(2):
        _edit(root, keeper, -1 - number)  # what is made once is made
    before = _peak_kib()
    for number in range(edits // _FILES):
        _edit(root, keeper, -10 - number)
    size = sum(path.stat().st_size for path in checkpoints.vault.folder.iterdir())
    grown = (_peak_kib() - before) / 1024
    show_note(f"{edits} edits: peak memory +{grown:.1f} MiB, {size / 2**20:.1f} MiB kept on disk")


def _edit(root: Path, keeper: Keeper | None, number: int) -> float:
    """Milliseconds of one edit, as the mean of one of each file."""
    workspace = LocalWorkspace(root, keeper=keeper)

    async def run() -> float:
        begin = time.perf_counter()
        for place in range(_FILES):
            data = f"# {number}\n".encode() + b"value = compute(other, thing)  # words\n" * _LINES
            await workspace.apply((Put(path=f"f{place}.py", data=data),))
        return (time.perf_counter() - begin) * 1000 / _FILES

    return asyncio.run(run())


def _write(root: Path) -> None:
    for place in range(_FILES):
        (root / f"f{place}.py").write_bytes(b"value = 1\n" * _LINES)


def _peak_kib() -> float:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1024 if sys.platform == "darwin" else peak
