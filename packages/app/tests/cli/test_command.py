"""How the hints in messages name this program."""

import sys
from pathlib import Path

import pytest

from towline.cli import command, main
from towline_protocol import UsageError


@pytest.fixture(name="clone")
def clone_fixture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A clone whose `.venv/bin` is not on the path, as the current folder."""
    program = tmp_path / ".venv" / "bin" / "towline"
    program.parent.mkdir(parents=True)
    program.touch()
    monkeypatch.setattr(sys, "executable", str(program.with_name("python")))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_hint_can_be_typed_as_it_stands(clone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hint = "Stop it with `towline stop`, or ask `towline doctor`; towline itself is `towline`."
    assert command.name_command(hint) == (
        "Stop it with `.venv/bin/towline stop`, or ask `.venv/bin/towline doctor`; towline itself "
        "is `towline`."
    )
    elsewhere = clone / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    assert f"`{clone}/.venv/bin/towline stop`" in command.name_command(hint)
    program = clone / ".venv" / "bin"
    (program / "towline").chmod(0o755)
    monkeypatch.setenv("PATH", str(program))
    assert command.name_command(hint) == hint


def test_an_error_s_hint_can_be_typed_as_it_stands(
    clone: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    del clone

    def fail() -> None:
        raise UsageError("Make a link with `towline pair`.")

    monkeypatch.setattr(main, "app", fail)
    with pytest.raises(SystemExit):
        main.main()
    assert capsys.readouterr().err == "towline: Make a link with `.venv/bin/towline pair`.\n"
