import asyncio
import errno
import importlib.util
import os
import sys
import zipfile
from pathlib import Path

import pytest

from towline.local import part_runner
from towline.local.errors import SourceFailed
from towline.local.part_runner import (
    CommandRunner,
    installed_runner,
    make_runner,
    pip_runner,
    uv_runner,
)


def program(text: str) -> CommandRunner:
    """A runner on a Python program in place of pip; the folder and the requirement follow."""
    return CommandRunner("pip", (sys.executable, "-c", f"import os, sys\n{text}"), os.environ)


def make_wheel(folder: Path) -> None:
    """A whole wheel of a part, as an index would serve it from a folder."""
    info = "small_part1-1.0.dist-info"
    with zipfile.ZipFile(folder / "small_part1-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("small_part1/__init__.py", "raise SystemExit('imported')\n")
        wheel.writestr("small_part1/data/part01.bin", b"bytes")
        wheel.writestr(
            f"{info}/METADATA", "Metadata-Version: 2.1\nName: small-part1\nVersion: 1.0\n"
        )
        wheel.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{info}/RECORD", "")


def offline(folder: Path) -> dict[str, str]:
    """The environment with an index that is a folder and nothing else."""
    return {
        **os.environ,
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(folder),
        "UV_NO_INDEX": "1",
        "UV_FIND_LINKS": str(folder),
        "UV_OFFLINE": "1",
    }


def find_nothing(_asked: object) -> None:
    return None


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    """A folder with the wheel, and an empty one to fetch it to."""
    index, target = tmp_path / "index", tmp_path / "target"
    index.mkdir()
    target.mkdir()
    make_wheel(index)
    return index, target


@pytest.mark.slow
async def test_pip_leaves_the_wheel_packed(folders: tuple[Path, Path]) -> None:
    index, target = folders
    await pip_runner(Path(sys.executable), offline(index))("small-part1==1.0", target)
    [wheel] = target.glob("*.whl")
    assert zipfile.ZipFile(wheel).read("small_part1/data/part01.bin") == b"bytes"


async def test_uv_leaves_the_wheel_unpacked_and_installs_nothing(
    folders: tuple[Path, Path],
) -> None:
    index, target = folders
    found = part_runner.find_uv(os.environ)
    assert found is not None, "the development environment holds uv"
    await uv_runner(found, offline(index))("small-part1==1.0", target)
    assert (target / "small_part1/data/part01.bin").read_bytes() == b"bytes"
    assert "small-part1" not in sys.modules


@pytest.mark.slow
@pytest.mark.parametrize("name", ["pip", "uv"])
async def test_a_part_that_the_index_lacks_is_told_by_its_requirement(
    folders: tuple[Path, Path], name: str
) -> None:
    index, target = folders
    uv = part_runner.find_uv(os.environ)
    assert uv is not None
    environ = offline(index)
    runner = pip_runner(Path(sys.executable), environ) if name == "pip" else uv_runner(uv, environ)
    with pytest.raises(SourceFailed, match=f"{name} could not fetch small-part2==1.0 "):
        await runner("small-part2==1.0", target)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["pip", "uv"])
async def test_an_index_that_refuses_connections_is_told_as_out_of_reach(
    tmp_path: Path, name: str
) -> None:
    server = await asyncio.start_server(lambda _r, _w: None, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    server.close()
    await server.wait_closed()
    uv = part_runner.find_uv(os.environ)
    assert uv is not None
    address = f"http://127.0.0.1:{port}/simple"
    environ = {
        **os.environ,
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_INDEX_URL": address,
        "UV_NO_CONFIG": "1",
        "UV_DEFAULT_INDEX": address,
        "UV_HTTP_RETRIES": "0",
    }
    runner = pip_runner(Path(sys.executable), environ) if name == "pip" else uv_runner(uv, environ)
    with pytest.raises(SourceFailed, match="it cannot be reached"):
        await runner("small-part1==1.0", tmp_path)


async def test_the_program_gets_the_folder_the_requirement_and_room_for_its_own_files(
    tmp_path: Path,
) -> None:
    runner = program(
        "assert sys.argv[1:] == [os.getcwd(), 'small-part1==1.0'], sys.argv\n"
        "assert os.environ['TMPDIR'] == os.getcwd()\n"
        "assert sys.stdin.read() == ''\n"
        "print('to nobody'); open('made', 'w').close()"
    )
    await runner("small-part1==1.0", tmp_path)
    assert (tmp_path / "made").exists()


async def test_the_last_error_line_is_the_reason_without_credentials(tmp_path: Path) -> None:
    runner = program(
        "sys.exit('ERROR: No wheel at https://me:secret@index.test/simple\\nhint: try harder')"
    )
    with pytest.raises(SourceFailed) as caught:
        await runner("small-part1==1.0", tmp_path)
    assert "ERROR: No wheel at https://index.test/simple" in caught.value.message
    assert "secret" not in caught.value.message


async def test_a_program_without_room_is_told_as_the_systems_own_error(tmp_path: Path) -> None:
    runner = program("sys.exit('ERROR: [Errno 28] No space left on device')")
    with pytest.raises(OSError, match="No space left on device") as caught:
        await runner("small-part1==1.0", tmp_path)
    assert caught.value.errno == errno.ENOSPC


async def test_a_program_that_cannot_be_started_is_told(tmp_path: Path) -> None:
    runner = CommandRunner("uv", (str(tmp_path / "uv"),), os.environ)
    with pytest.raises(SourceFailed, match=r"uv cannot be started \(No such file"):
        await runner("small-part1==1.0", tmp_path)


async def test_a_program_that_hangs_is_ended_at_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(part_runner, "RUN_TIMEOUT_S", 0.3)
    runner = program("import signal; signal.pause()")
    with pytest.raises(SourceFailed, match=r"did not fetch small-part1==1.0 in"):
        await runner("small-part1==1.0", tmp_path)


async def test_a_cancel_ends_the_program_and_what_it_started(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "alive")
    runner = program(
        "import subprocess\n"
        "pipe = open('alive', 'w')\n"
        "child = 'import signal; signal.pause()'\n"
        "subprocess.run([sys.executable, '-c', child], pass_fds=[pipe.fileno()])"
    )
    running = asyncio.create_task(runner("small-part1==1.0", tmp_path))
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(10):
        alive = await loop.run_in_executor(None, (tmp_path / "alive").open, "rb")
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        # Its end is reached only when every process that holds the pipe is gone.
        assert await loop.run_in_executor(None, alive.read) == b""
    alive.close()


def test_the_own_pip_is_preferred_then_the_uv_of_the_caller_then_the_one_beside_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = installed_runner()
    assert own is not None
    assert own.command[:3] == (sys.executable, "-m", "pip")

    monkeypatch.setattr(importlib.util, "find_spec", find_nothing)
    uv = tmp_path / "uv"
    uv.write_text("#!/bin/sh\n", encoding="utf-8")
    uv.chmod(0o755)
    by_variable = installed_runner({"UV": str(uv), "PATH": ""})
    assert by_variable is not None
    assert by_variable.command[0] == str(uv)

    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    by_neighbour = installed_runner({"PATH": ""})
    assert by_neighbour is not None
    assert by_neighbour.command[0] == str(uv)

    uv.unlink()
    assert installed_runner({"PATH": ""}) is None


async def test_a_python_that_brings_no_pip_is_told_with_the_package_that_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    broken.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(broken))
    with pytest.raises(SourceFailed, match=r"neither pip nor uv.*apt-get install python3-venv"):
        await make_runner(tmp_path / "scratch")


@pytest.mark.slow
async def test_without_pip_and_uv_a_pip_is_made_in_the_scratch_folder(
    folders: tuple[Path, Path], tmp_path: Path
) -> None:
    index, target = folders
    runner = await make_runner(tmp_path / "scratch", offline(index))
    assert runner.command[0] == str(tmp_path / "scratch" / "pip" / "bin" / "python")
    await runner("small-part1==1.0", target)
    assert len(list(target.glob("*.whl"))) == 1
