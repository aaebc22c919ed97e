"""A workspace in memory, for tests: no disk, no processes, the same sentences."""

import errno
import posixpath
from collections.abc import Awaitable, Callable, Mapping

from towline_agent.workspaces.base import DirEntry, ProgramResult
from towline_agent.workspaces.paths import denied_outside, failed_path, failed_program
from towline_protocol import Process

__all__ = ["MemoryProgram", "MemoryWorkspace"]

MemoryProgram = ProgramResult | Callable[[tuple[str, ...]], Awaitable[ProgramResult]]
"""How a program of a `MemoryWorkspace` ends: always the same, or by a function of its command."""


class MemoryWorkspace:
    """Files as a mapping, programs as functions.

    ```python
    made = ProgramResult(exit_code=0, output="ok")
    workspace = MemoryWorkspace({"src/a.py": "print(1)"}, {"make": made})
    ```

    Args:
        files: Contents by path relative to `root`; folders are there as far as files need them.
        programs: What can be run, by name.
        root: The folder's name.
    """

    def __init__(
        self,
        files: Mapping[str, str | bytes] | None = None,
        programs: Mapping[str, MemoryProgram] | None = None,
        *,
        root: str = "/memory",
    ) -> None:
        self.root = root
        """The folder, as the model is told it."""
        self.files = {
            self._place(path): data.encode() if isinstance(data, str) else data
            for path, data in (files or {}).items()
        }
        """The files as they are now."""
        self.programs = dict(programs or {})
        """What can be run."""
        self.ran: list[tuple[str, ...]] = []
        """Each command whose program began, in order."""

    async def read_bytes(self, path: str) -> bytes:
        """A file's bytes."""
        place = self._place(path)
        if place in self.files:
            return self.files[place]
        raise self._missing(path, errno.EISDIR)

    async def list_dir(self, path: str) -> tuple[DirEntry, ...]:
        """A folder's names: folders first, then by name."""
        place = self._place(path)
        prefix = "" if place == "." else f"{place}/"
        found: dict[str, DirEntry] = {}
        for name, data in self.files.items():
            if name.startswith(prefix):
                first, *rest = name.removeprefix(prefix).split("/")
                kind, size = ("dir", 0) if rest else ("file", len(data))
                found[first] = DirEntry(name=first, kind=kind, size=size)
        if not found and place != ".":
            raise self._missing(path, errno.ENOTDIR)
        return tuple(sorted(found.values(), key=lambda entry: (entry.kind != "dir", entry.name)))

    async def run(
        self,
        argv: tuple[str, ...],
        *,
        timeout_s: float,
        on_start: Callable[[Process], Awaitable[None]],
        on_output: Callable[[str], None],
    ) -> ProgramResult:
        """Run one of `programs`; `timeout_s` is left to its function."""
        name = argv[0] if argv else ""
        if name not in self.programs:
            raise failed_program(name, errno.ENOENT, "")
        number = 1000 + len(self.ran)
        await on_start(Process(pid=number, group=number, started="memory"))
        self.ran.append(argv)
        program = self.programs[name]
        result = program if isinstance(program, ProgramResult) else await program(argv)
        if result.output:
            on_output(result.output)
        return result

    def _place(self, path: str) -> str:
        place = posixpath.normpath(posixpath.join(self.root, path))
        if place == self.root:
            return "."
        if not place.startswith(self.root.rstrip("/") + "/"):
            raise denied_outside(path, self.root)
        return place[len(self.root.rstrip("/")) + 1 :]

    def _missing(self, path: str, other: int) -> Exception:
        place = self._place(path)
        is_other = (
            place == "."
            or place in self.files
            or any(n.startswith(f"{place}/") for n in self.files)
        )
        return failed_path(path, OSError(other if is_other else errno.ENOENT, ""))
