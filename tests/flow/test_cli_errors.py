"""What goes wrong at the command line is one clear sentence with the next step, and exit code 1."""

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Generator
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

TIMEOUT_S = 60


def _environ(home: Path, **more: str) -> dict[str, str]:
    return {
        "HOME": str(home),
        "PATH": os.environ["PATH"],
        "LANG": "C.UTF-8",
        "COLUMNS": "400",
        "TOWLINE_HOME": str(home / "towline"),
        **more,
    }


def _towline(home: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "towline", *arguments],
        cwd=home,
        env=_environ(home, **more),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )


def _check_complaint(done: subprocess.CompletedProcess[str], *words: str, code: int = 1) -> None:
    """It failed with a sentence that holds the words, and no traceback."""
    said = done.stderr + done.stdout
    assert done.returncode == code, said
    assert "Traceback" not in said
    assert "towline:" in done.stderr
    for word in words:
        assert word in said, said


@contextlib.contextmanager
def _server(home: Path) -> Generator[subprocess.Popen[bytes]]:
    """A real server of this home; ended in order with the block."""
    process = subprocess.Popen(
        [sys.executable, "-m", "towline", "up", "--port", "0", "--model", "openai/none"],
        cwd=home,
        env=_environ(home, OPENAI_API_KEY="sk-not-a-key", PYTHONUNBUFFERED="1"),
        stdout=subprocess.PIPE,
    )
    run_file = home / "towline" / "run.json"
    assert process.stdout is not None
    try:
        until = time.monotonic() + TIMEOUT_S
        while not run_file.exists():  # it is there before the link is printed
            heard, _, _ = select.select([process.stdout], [], [], until - time.monotonic())
            assert heard
            assert os.read(process.stdout.fileno(), 65536), "it has ended"
        assert json.loads(run_file.read_text())["pid"] == process.pid
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        assert process.wait(TIMEOUT_S) == 0
        process.stdout.close()
        assert not run_file.exists()


def test_a_port_in_use_is_named_with_the_option_that_takes_another(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = _towline(tmp_path, "up", "--port", str(port), "--model", "openai/none")
    _check_complaint(done, str(port), "--port")


@pytest.mark.rules("C5.3")
def test_a_second_server_on_one_store_names_the_first_and_exits(tmp_path: Path) -> None:
    with _server(tmp_path) as server:
        done = _towline(tmp_path, "up", "--port", "0", "--model", "openai/none")
        _check_complaint(done, str(server.pid))


def test_a_data_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "towline").write_text("a file stands where the folder should be")
    done = _towline(tmp_path, "up", "--port", "0", "--model", "openai/none")
    _check_complaint(done, str(tmp_path / "towline"))


def test_an_unknown_key_in_the_config_file_is_named_with_the_near_one(tmp_path: Path) -> None:
    (tmp_path / "towline").mkdir()
    (tmp_path / "towline" / "config.toml").write_text("prot = 4747\n")
    _check_complaint(_towline(tmp_path, "up"), "'prot'", "'port'", "config.toml")


def test_an_address_that_lets_the_network_in_is_refused(tmp_path: Path) -> None:
    _check_complaint(_towline(tmp_path, "up", "--host", "0.0.0.0"), "0.0.0.0", "127.0.0.1")


def test_a_missing_key_names_the_variable_to_set(tmp_path: Path) -> None:
    done = _towline(tmp_path, "run", "hello", "--model", "openai/gpt-5")
    _check_complaint(done, "OPENAI_API_KEY")


def test_a_dead_provider_is_named_with_its_address(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    done = _towline(
        tmp_path,
        "run",
        "hello",
        "--model",
        "openai/gpt-5",
        OPENAI_API_KEY="sk-not-a-key",
        OPENAI_BASE_URL=f"http://127.0.0.1:{port}/v1",
    )
    _check_complaint(done, f"127.0.0.1:{port}")
    assert "sk-not-a-key" not in done.stderr + done.stdout


def test_an_unknown_provider_is_told_with_those_that_exist(tmp_path: Path) -> None:
    done = _towline(tmp_path, "run", "hello", "--model", "nobody/none")
    _check_complaint(done, "'nobody'", "openai", code=2)  # the command line does not hold


def test_stop_without_a_server_says_so(tmp_path: Path) -> None:
    done = _towline(tmp_path, "stop")
    assert done.returncode == 1
    assert "No server" in done.stderr


def test_stop_ends_a_running_server_and_takes_its_address_away(tmp_path: Path) -> None:
    with _server(tmp_path) as server:
        done = _towline(tmp_path, "stop")
        assert done.returncode == 0
        assert str(server.pid) in done.stdout
        assert server.wait(TIMEOUT_S) == 0
