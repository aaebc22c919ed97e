"""`towline stop`: it returns once the server is gone."""

import signal
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from towline.cli import stop as module
from towline.cli.attach import NoServer
from towline.cli.stop import stop
from towline_server import RunFile

_DEAF = """
import signal, sys
if sys.argv[1] == "deaf":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
print(flush=True)
signal.pause()
"""


def _start(kind: str, monkeypatch: pytest.MonkeyPatch) -> "subprocess.Popen[bytes]":
    """A process that stands for a server which is found."""
    process = subprocess.Popen([sys.executable, "-c", _DEAF, kind], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    found = RunFile(url="http://127.0.0.1:1", pid=process.pid, token="t")

    def find(run_file: Path) -> RunFile:
        del run_file
        return found

    monkeypatch.setattr(module, "find_server", find)
    return process


def test_it_waits_until_the_process_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = StringIO()
    with _start("heeding", monkeypatch) as process:
        assert stop(Console(file=screen), {"TOWLINE_HOME": str(tmp_path)}) == 0
        assert process.wait(10) == -signal.SIGTERM
    assert screen.getvalue().splitlines()[-1] == "Stopped."


def test_it_does_not_wait_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = StringIO()
    environ = {"TOWLINE_HOME": str(tmp_path)}
    with _start("deaf", monkeypatch) as process:
        assert stop(Console(file=screen), environ, patience_s=0.2) == 1
        process.kill()
    assert "It has not ended within 0.2 s." in screen.getvalue()


def test_without_a_server_it_says_so(tmp_path: Path) -> None:
    with pytest.raises(NoServer, match="No server of yours runs"):
        stop(Console(), {"TOWLINE_HOME": str(tmp_path)})
