"""Workspaces that tools of files are tried in."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from towline_agent.tools.builtin import after_edit
from towline_agent.tools.memory import MemoryContext
from towline_agent.workspaces.local import LocalWorkspace
from towline_agent.workspaces.memory import MemoryWorkspace

Made = Callable[[Mapping[str, str | bytes]], MemoryContext]


@pytest.fixture(params=["local", "memory"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Made:
    """A call's context over files, on disk and in memory."""

    def on_disk(files: Mapping[str, str | bytes]) -> MemoryContext:
        root = tmp_path / "root"
        root.mkdir(exist_ok=True)
        for name, data in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_bytes(data.encode() if isinstance(data, str) else data)
        return MemoryContext(LocalWorkspace(root))

    def in_memory(files: Mapping[str, str | bytes]) -> MemoryContext:
        return MemoryContext(MemoryWorkspace(files, root=str(tmp_path / "root")))

    return on_disk if request.param == "local" else in_memory


@pytest.fixture(autouse=True)
def _no_findings(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    """The tools are looked at alone: what checkers say of made-up files is tested elsewhere."""
    monkeypatch.setattr(after_edit, "AFTER_EDIT", [])
