"""What is left after `kill -9`."""

import asyncio
import errno
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from towline_protocol import SessionId
from towline_server.errors import StoreError, StoreFull, StoreLocked
from towline_server.store.lock import LOCK_FILE
from towline_server.store.sqlite_store import STORE_FILE, open_store

Mint = Callable[[str], str]

HERE = Path(__file__).parent
ONE = SessionId("ses_1")
WAIT_S = 30


def _run(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(HERE / script), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=WAIT_S, check=False)


@pytest.mark.slow
@pytest.mark.rules("C1.3", "C1.4")
@pytest.mark.parametrize("number", [1, 2, 5])
@pytest.mark.parametrize(("phase", "kept"), [("before", 0), ("after", 1)])
async def test_a_killed_writer_leaves_whole_commits_and_all_that_it_told(
    tmp_path: Path, mint: Mint, phase: str, kept: int, number: int
) -> None:
    child = _run("crash_child.py", str(tmp_path), phase, str(number))
    assert child.returncode == -signal.SIGKILL, child.stderr
    told = [int(line) for line in child.stdout.split()]
    assert told == [2 * n for n in range(1, number)]

    store = await open_store(tmp_path, mint=mint)  # the dead process holds no lock
    end = 2 * (number - 1 + kept)
    rows = await store.read(ONE, after=0, upto=10**6)
    assert [row.seq for row in rows] == list(range(1, end + 1))
    row = await store.session(ONE)
    assert (0 if row is None else row.last_seq) == end
    await store.close()


@contextmanager
def _owner(folder: Path) -> Generator[subprocess.Popen[str]]:
    """Another process that owns the store."""
    command = [sys.executable, str(HERE / "lock_child.py"), str(folder)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        try:
            assert child.stdout.readline() == "mine\n"
            yield child
        finally:
            child.kill()


@pytest.mark.slow
@pytest.mark.rules("C5.3")
async def test_a_second_process_is_refused_by_name_until_the_first_one_dies(
    tmp_path: Path, mint: Mint
) -> None:
    with _owner(tmp_path) as child:
        with pytest.raises(StoreLocked) as caught:
            await open_store(tmp_path, mint=mint)
        message = caught.value.message
        assert f"process {child.pid} at http://127.0.0.1:4747" in message
        assert repr(str(tmp_path)) in message
        assert "Open http://127.0.0.1:4747, stop that process, or name another folder" in message
        assert caught.value.details == {"pid": child.pid, "url": "http://127.0.0.1:4747"}
        child.send_signal(signal.SIGKILL)
        child.wait(WAIT_S)
        store = await open_store(tmp_path, mint=mint)
        await store.close()


@pytest.mark.rules("C5.3")
async def test_a_folder_is_owned_until_it_is_closed(tmp_path: Path, mint: Mint) -> None:
    first = await open_store(tmp_path, mint=mint)
    with pytest.raises(StoreLocked, match="Stop that process"):
        await open_store(tmp_path, mint=mint)
    await first.close()
    second = await open_store(tmp_path, mint=mint)
    await second.close()


@pytest.mark.parametrize(
    ("call", "number", "kind", "words"),
    [
        ("os.pwrite", errno.ENOSPC, StoreFull, "lies on a full disk: make room"),
        ("fcntl.flock", errno.ENOLCK, StoreError, "cannot lock files: name one on a local disk"),
    ],
)
async def test_a_lock_that_cannot_be_taken_says_why_and_is_not_kept(
    tmp_path: Path,
    mint: Mint,
    monkeypatch: pytest.MonkeyPatch,
    call: str,
    number: int,
    kind: type[StoreError],
    words: str,
) -> None:
    def refuse(*_: object) -> int:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(call, refuse)
        with pytest.raises(kind, match=words):
            await open_store(tmp_path, mint=mint)
    store = await open_store(tmp_path, mint=mint)
    await store.close()


async def test_a_start_that_is_cancelled_lets_the_folder_go(tmp_path: Path, mint: Mint) -> None:
    starting = asyncio.create_task(open_store(tmp_path, mint=mint))
    await asyncio.sleep(0)
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    store = await open_store(tmp_path, mint=mint)
    await store.close()


async def test_a_holder_that_has_not_said_its_name_yet_is_another_process(
    tmp_path: Path, mint: Mint
) -> None:
    first = await open_store(tmp_path, mint=mint)
    (tmp_path / LOCK_FILE).write_bytes(b"")
    with pytest.raises(StoreLocked, match=r"in use by another process\. Stop that process"):
        await open_store(tmp_path, mint=mint)
    await first.close()


@pytest.mark.rules("C3.2")
async def test_a_log_keeps_its_lineage_and_a_new_one_has_another(
    tmp_path: Path, mint: Mint
) -> None:
    logs: list[str] = []
    for folder in ("a", "a", "b"):
        store = await open_store(tmp_path / folder, mint=mint)
        logs.append(store.log)
        await store.close()
    assert logs[0] == logs[1]
    assert logs[0] != logs[2]


async def test_only_this_user_may_read_what_is_stored(tmp_path: Path, mint: Mint) -> None:
    store = await open_store(tmp_path / "data", mint=mint)
    for path in (tmp_path / "data", *(tmp_path / "data").glob(f"{STORE_FILE}*")):
        assert path.stat().st_mode & 0o077 == 0, path
    await store.close()
