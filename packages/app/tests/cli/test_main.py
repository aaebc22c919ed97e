"""The command line as a program: what it says of errors, and what it does without its streams."""

import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from towline.cli import main as command
from towline_protocol import UsageError

END_S = 60
_HIDDEN = "no [bold]\u202e\x1b]0;owned\x07\x9b2J :bug: [/]"
_SHOWN = "no [bold]<U+202E>␛]0;owned␇<U+009B>2J :bug: [/]"


def _shell(environ: dict[str, str], line: str) -> "subprocess.CompletedProcess[str]":
    """Run `towline` with what a shell does to its streams."""
    return subprocess.run(
        ["sh", "-c", f'exec "$0" -m towline {line}', sys.executable],
        env=environ,
        capture_output=True,
        text=True,
        timeout=END_S,
        check=False,
    )


def test_an_error_shows_what_hides_in_it_and_steers_no_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> None:
        raise UsageError(_HIDDEN)

    monkeypatch.setattr(command, "app", fail)
    with pytest.raises(SystemExit) as ended:
        command.main()
    assert ended.value.code == 1
    assert capsys.readouterr().err == f"towline: {_SHOWN}\n"


def test_a_log_line_steers_no_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", [])
    monkeypatch.setattr(command, "app", lambda: logging.getLogger("towline").warning(_HIDDEN))
    command.main()
    assert capsys.readouterr().err.endswith(f"WARNING towline: {_SHOWN}\n")


@pytest.mark.parametrize("setting", ["json", "JSON", "warning,json", "json, warning"])
def test_a_log_for_programs_is_json_lines(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], setting: str
) -> None:
    monkeypatch.setenv("TOWLINE_LOG", setting)
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    monkeypatch.setattr(command, "app", lambda: logging.getLogger("towline").warning(_HIDDEN))
    command.main()
    line = capsys.readouterr().err
    assert line.endswith("}\n")
    assert line.isascii()
    assert msgspec.json.decode(line)["message"] == _HIDDEN


@pytest.mark.parametrize("setting", ["loud", "info,debug", "json,loud"])
def test_a_log_setting_that_is_none_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], setting: str
) -> None:
    monkeypatch.setenv("TOWLINE_LOG", setting)
    with pytest.raises(SystemExit):
        command.main()
    assert f"TOWLINE_LOG={setting!r} is no level" in capsys.readouterr().err.replace("\n", " ")


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("keys set openai <&-", "No key came"),
        ("login --token gemini <&-", "No key came"),
        ("login vertex <&-", "'vertex' needs a project"),
        ("keys set nobody <&- >&-", "There is no provider 'nobody'"),
    ],
)
def test_without_standard_input_it_says_what_is_missing_in_one_line(
    headless_environ: dict[str, str], line: str, says: str
) -> None:
    run = _shell(headless_environ, line)
    assert run.returncode == 1
    (said,) = run.stderr.splitlines()
    assert said.startswith(f"towline: {says}")


@pytest.mark.slow
def test_a_run_without_standard_input_asks_nobody(headless_environ: dict[str, str]) -> None:
    run = _shell(headless_environ, "run Hi --model nobody/x <&-")
    assert run.returncode == 2
    (said,) = run.stderr.splitlines()
    assert said.startswith("towline: ")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="NO FULL DEVICE on this system.")
@pytest.mark.slow
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("line", ["keys list", "--help", "--version", "doctor"])
def test_a_full_device_is_told_of_in_one_line(
    headless_environ: dict[str, str], line: str, unbuffered: str
) -> None:
    environ = {**headless_environ, "PYTHONUNBUFFERED": unbuffered}
    run = _shell(environ, f"{line} >/dev/full")
    assert (run.returncode, run.stderr) == (
        1,
        "towline: Standard output cannot be written (No space left on device).\n",
    )


@pytest.mark.slow
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_that_has_gone_is_told_of_in_one_line(
    headless_environ: dict[str, str], unbuffered: str
) -> None:
    environ = {**headless_environ, "PYTHONUNBUFFERED": unbuffered}
    reading, writing = os.pipe()
    os.close(reading)
    run = subprocess.run(
        [sys.executable, "-m", "towline", "keys", "list"],
        env=environ,
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
        timeout=END_S,
        check=False,
    )
    os.close(writing)
    assert (run.returncode, run.stderr) == (
        1,
        "towline: Standard output cannot be written (Broken pipe).\n",
    )


def test_another_error_of_the_system_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> Any:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(command, "app", fail)
    with pytest.raises(OSError, match="Input/output"):
        command.main()


@pytest.mark.parametrize(
    ("typed", "offered"),
    [("towline se", "sessions"), ("towline run --mo", "--model"), ("towline run --mode a", "auto")],
)
def test_a_shell_completes_commands_options_and_modes(typed: str, offered: str) -> None:
    environ = {
        **os.environ,
        "_TOWLINE_COMPLETE": "complete_bash",
        "COMP_WORDS": typed,
        "COMP_CWORD": str(len(typed.split()) - 1),
    }
    towline = Path(sys.executable).with_name("towline")
    told = subprocess.run(
        [towline], env=environ, capture_output=True, text=True, timeout=END_S, check=False
    )
    assert offered in told.stdout.split()
