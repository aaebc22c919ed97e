import asyncio
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import aiohttp
import pytest

from towline.local import server as server_module
from towline.local.errors import (
    EngineMissing,
    LibraryMissing,
    ModelServerFailed,
    ModelUnreadable,
)
from towline.local.server import TEMPLATE, LocalModel, Work, check_engine, serve_model
from towline.local.testing import small_model

BOUND_S = 20.0

FACTS = small_model(b"GGUF")

PARENT = """
import asyncio, sys
from pathlib import Path
from towline.local.server import serve_model

async def main():
    async with serve_model(Path(sys.argv[1])) as model:
        print(model.pid, flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


@pytest.fixture
def model(tmp_path: Path, fake_engine: None) -> Path:
    path = tmp_path / "small.gguf"
    path.write_bytes(b"GGUF")
    return path


def engine_that(raises: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Children find an engine whose import fails."""
    (tmp_path / "xllamacpp.py").write_text(f"raise {raises}\n", encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))


def write_steering(model: Path, word: str) -> None:
    """Tell the fake engine what to do with `model`."""
    model.write_bytes(b"GGUF " + word.encode())


def stop_process(pid: int) -> None:
    """Stop our child `pid` and wait until it stands still: before that SIGTERM would end it."""
    os.kill(pid, signal.SIGSTOP)
    os.waitid(os.P_PID, pid, os.WSTOPPED | os.WNOWAIT)


async def ask(model: LocalModel, key: str) -> tuple[int, dict[str, object]]:
    headers = {"Authorization": f"Bearer {key}"}
    async with (
        aiohttp.ClientSession(headers=headers) as http,
        http.post(
            f"{model.base_url}/chat/completions", json={"messages": [{"content": "hi"}]}
        ) as got,
    ):
        return got.status, await got.json()


async def test_the_server_gets_its_settings_and_its_key_stands_in_no_argument(
    model: Path,
) -> None:
    async with asyncio.timeout(BOUND_S), serve_model(model, FACTS) as running:
        status, got = await ask(running, running.key)
    assert status == 200
    assert got["context"] == 8192
    assert got["slots"] == 1
    assert got["hosts"] == ["127.0.0.1"]
    assert got["no_extra_bufts"] is True
    assert got["template"] == TEMPLATE.read_text(encoding="utf-8")
    environ = str(got["environ"])
    assert "'OMP_WAIT_POLICY': 'passive'" in environ
    assert running.key not in environ
    assert running.key not in str(got["argv"])
    assert running.key not in repr(running)


async def test_another_key_is_refused_and_each_start_has_its_own(model: Path) -> None:
    async with (
        asyncio.timeout(BOUND_S),
        serve_model(model, FACTS) as first,
        serve_model(model, FACTS, template=None) as second,
    ):
        assert first.base_url != second.base_url
        assert (await ask(first, second.key))[0] == 401
        assert (await ask(second, second.key))[1]["template"] == ""


@pytest.mark.rules("A2.92")
async def test_warming_sends_prompt_and_tools_and_returns_the_speed(model: Path) -> None:
    tool = {"type": "function", "function": {"name": "now", "parameters": {"type": "object"}}}
    async with asyncio.timeout(BOUND_S), serve_model(model, FACTS) as running:
        speed = await running.warm("Be brief.", [tool])
    assert (speed.read_tokens, speed.read_per_s, speed.write_per_s) == (400, 80.0, 17.0)
    assert 0 < speed.took_s < BOUND_S


async def test_a_prompt_that_does_not_fit_is_told_by_the_warming(model: Path) -> None:
    async with asyncio.timeout(BOUND_S), serve_model(model, FACTS) as running:
        with pytest.raises(ModelServerFailed, match="answered 400: the request exceeds"):
            await running.warm("x" * 9000)


async def test_the_end_of_the_block_ends_the_server(model: Path) -> None:
    async with asyncio.timeout(BOUND_S):
        async with serve_model(model, FACTS) as running:
            assert running.alive
        assert not running.alive
        with pytest.raises(ModelServerFailed, match=r"did not answer.*ANTHROPIC_API_KEY"):
            await running.warm("hi")


async def test_a_server_that_dies_is_noticed_with_its_status(model: Path) -> None:
    async with asyncio.timeout(BOUND_S), serve_model(model, FACTS) as running:
        os.kill(running.pid, signal.SIGKILL)
        ended = await running.wait_ended()
        assert "ended with status -9" in ended.message
        assert not running.alive


async def test_a_server_that_does_not_listen_to_signals_is_killed_at_the_limit(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_module, "STOP_TIMEOUT_S", 0.2)
    async with asyncio.timeout(BOUND_S):
        async with serve_model(model, FACTS) as running:
            stop_process(running.pid)
        assert (await running.wait_ended()).message.startswith(
            "The local model's server ended with status -9"
        )


async def test_what_the_engine_prints_neither_blocks_it_nor_reaches_us(
    model: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_steering(model, "noisy")
    async with asyncio.timeout(BOUND_S), serve_model(model, FACTS) as running:
        assert running.alive
    assert capfd.readouterr() == ("", "")


async def test_a_file_that_the_engine_refuses_is_told_in_the_engines_words(model: Path) -> None:
    write_steering(model, "refuse")
    with pytest.raises(ModelUnreadable, match=r"small.gguf' cannot be loaded .*bad magic.*--model"):
        async with asyncio.timeout(BOUND_S), serve_model(model, FACTS):
            pass


async def test_a_crash_while_loading_is_told_with_its_status(model: Path) -> None:
    write_steering(model, "crash")
    with pytest.raises(ModelServerFailed, match="status 3 while loading"):
        async with asyncio.timeout(BOUND_S), serve_model(model, FACTS):
            pass


async def test_a_server_that_is_never_ready_is_given_up_and_ended(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_module, "START_TIMEOUT_S", 0.05)
    write_steering(model, "hang")
    with pytest.raises(ModelServerFailed, match="not ready after 0 s"):
        async with asyncio.timeout(BOUND_S), serve_model(model, FACTS):
            pass


async def test_a_missing_extra_is_told_with_the_line_that_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine_that("ModuleNotFoundError('none', name='xllamacpp')", tmp_path, monkeypatch)
    async with asyncio.timeout(BOUND_S):
        with pytest.raises(EngineMissing, match=r"pip install 'towline\[local\]'"):
            await check_engine()


async def test_a_missing_system_library_is_told_with_its_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = "libgomp.so.1: cannot open shared object file: No such file or directory"
    engine_that(f"ImportError({said!r})", tmp_path, monkeypatch)
    async with asyncio.timeout(BOUND_S):
        with pytest.raises(LibraryMissing, match=r"'libgomp.so.1'.*apt-get install libgomp1`"):
            await check_engine()


async def test_an_engine_that_is_there_passes_the_check(fake_engine: None) -> None:
    async with asyncio.timeout(BOUND_S):
        await check_engine()


needs_pidfd = pytest.mark.skipif(
    not hasattr(os, "pidfd_open"), reason="NO PIDFD: watching another's child needs Linux"
)


def ends_with(parent: subprocess.Popen[str], child_pid: int) -> bool:
    """Kill `parent`; whether the process `child_pid` ends after that."""
    child = os.pidfd_open(child_pid)
    try:
        parent.kill()
        return bool(select.select([child], [], [], BOUND_S)[0])
    finally:
        os.close(child)


@pytest.mark.slow
@needs_pidfd
def test_a_parent_that_is_killed_leaves_no_server_behind(model: Path) -> None:
    command = [sys.executable, "-c", PARENT, str(model)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        assert ends_with(parent, int(parent.stdout.readline()))


@pytest.mark.slow
@needs_pidfd
def test_a_parent_that_is_killed_while_the_model_loads_leaves_no_server_behind(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(tmp_path / "hangs")
    monkeypatch.setenv("HANGS_IN", str(tmp_path / "hangs"))
    write_steering(model, "hang")
    command = [sys.executable, "-c", PARENT, str(model)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert ends_with(parent, int((tmp_path / "hangs").read_text(encoding="utf-8")))


async def test_what_the_model_does_now_can_be_asked(model: Path) -> None:
    async with asyncio.timeout(BOUND_S), serve_model(model, FACTS) as running:
        work = await running.look()
    assert work == Work(busy=True, read_tokens=800, prompt_tokens=2000, written_tokens=3)


async def test_an_engine_that_does_not_say_what_it_does_is_no_failure(model: Path) -> None:
    write_steering(model, "odd")
    async with asyncio.timeout(BOUND_S), serve_model(model, FACTS) as running:
        assert await running.look() is None
