"""What the doctor says of the files that are kept to undo turns."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from towline_agent import Checkpoints, LocalWorkspace, Put, mint_now
from towline_server.doctor.examine import examine_store
from towline_server.doctor.finding import Finding
from towline_server.sessions.kept_files import CHECKPOINTS
from towline_server.store.sqlite_store import open_store


async def _keep(data: Path, root: Path) -> Path:
    """A data folder in which a turn's first touch of a file is kept; gives what keeps it."""
    await (await open_store(data, mint=mint_now)).close()
    made = LocalWorkspace(root)
    root.mkdir()  # noqa: ASYNC240 - a test
    await made.apply((Put(path="a.txt", data=b"before"),))
    kept = Checkpoints(data / CHECKPOINTS, now_ms=lambda: 1)
    workspace = LocalWorkspace(root, keeper=kept.keeper("ses_1", "trn_1", str(root)))
    await workspace.apply((Put(path="a.txt", data=b"after"),))
    kept.close()
    (file,) = (data / CHECKPOINTS).glob("*.db")
    return file


def _said(data: Path) -> list[Finding]:
    found = examine_store(data, now_ms=4_000_000_000_000)
    return [finding for finding in found if finding.check == "checkpoints"]


async def test_nothing_kept_is_nothing_to_say(tmp_path: Path) -> None:
    await (await open_store(tmp_path, mint=mint_now)).close()
    assert _said(tmp_path) == []


@pytest.mark.rules("A5.71")
async def test_what_is_kept_is_told_to_be_whole_or_damaged(tmp_path: Path) -> None:
    data = tmp_path / "data"
    file = await _keep(data, tmp_path / "root")
    assert [finding.level for finding in _said(data)] == ["ok"]
    with closing(sqlite3.connect(file)) as vault, vault:
        vault.execute("UPDATE piece SET data = x'00'")
    (damaged,) = _said(data)
    assert damaged.level == "warning"
    assert "cannot be undone" in damaged.message
    file.write_bytes(b"no database at all" * 100)
    (broken,) = _said(data)
    assert broken.level == "warning"
