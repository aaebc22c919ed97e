"""The tools `get_diagnostics` and `project_diagnostics`."""

import sys
from pathlib import Path
from typing import Any

import pytest

from towline_agent.errors import ToolDenied, ToolError
from towline_agent.tools.builtin import diagnostics
from towline_agent.tools.builtin.diagnostics import get_diagnostics, project_diagnostics
from towline_agent.tools.code import checkers
from towline_agent.tools.code.checkers import CHECK_BYTES, find_checker

BAD = "import os\n\n\ndef f():\n    return missing\n"

TY = """\
import json, sys
place = {"path": sys.argv[-1], "positions": {"begin": {"line": 5, "column": 12}}}
row = {"check_name": "bad-type", "description": "bad-type: no", "severity": "major"}
print(json.dumps([{**row, "location": place}]))
"""


def _names(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*"))


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes checkers absent, or others than they are."""

    def change(**programs: str | None) -> None:
        async def find(name: str) -> str | None:
            return programs[name] if name in programs else await find_checker(name)

        monkeypatch.setattr(checkers, "find_checker", find)

    change(ty=None)  # whether it is installed on this machine is another matter
    return change


@pytest.mark.rules("A5.T4")
@pytest.mark.usefixtures("without")
async def test_a_file_is_checked_by_ruff_with_errors_first(make_context: Any, ask: Any) -> None:
    text = await ask(make_context({"src/a.py": BAD}), get_diagnostics, path="src/a.py")
    head, *lines = text.splitlines()
    assert head == "src/a.py: 1 error, 1 warning (F821 1, F401 1) (by ruff)"
    assert lines[0].startswith("5:12 error F821 Undefined name")
    assert lines[1].startswith("1:8 warning F401")
    assert lines[1].endswith("[fixable]")


@pytest.mark.usefixtures("without")
async def test_a_file_by_its_absolute_path_is_told_relative(make_disk: Any, ask: Any) -> None:
    context = make_disk({"src/a.py": "x = 1\n"})
    path = f"{context.workspace.root}/src/a.py"
    text = await ask(context, get_diagnostics, path=path)
    assert text == "src/a.py: no findings (by ruff)"


@pytest.mark.rules("A5.T4")
async def test_what_ty_finds_is_told_where_it_is_installed(
    make_disk: Any, ask: Any, without: Any, tmp_path: Path
) -> None:
    fake = tmp_path / "bin" / "ty"
    fake.parent.mkdir()
    fake.write_text(f"#!{sys.executable}\n{TY}")
    fake.chmod(0o755)
    without(ty=str(fake))
    text = await ask(make_disk({"a.py": BAD}), get_diagnostics, path="a.py")
    assert text.startswith("a.py: 2 errors, 1 warning")
    assert "(by ruff and ty)" in text
    assert "5:12 error bad-type no" in text


@pytest.mark.rules("A5.T4")
async def test_without_ruff_the_syntax_of_python_is_checked(
    make_context: Any, ask: Any, without: Any
) -> None:
    without(ruff=None, ty=None)
    context = make_context({"a.py": "def f(:\n", "b.py": "\0", "c.py": "-" * 100_000 + "1"})
    text = await ask(context, get_diagnostics, path="a.py")
    assert text == (
        "a.py: 1 error (invalid-syntax 1) (by syntax)\n1:7 error invalid-syntax invalid syntax"
    )
    with pytest.raises(ToolError, match="binary"):
        await ask(context, get_diagnostics, path="b.py")
    assert "1 error" in await ask(context, get_diagnostics, path="c.py")


@pytest.mark.usefixtures("without")
async def test_data_files_are_checked_and_others_are_refused(make_context: Any, ask: Any) -> None:
    context = make_context({"a.json": "{,", "a.js": "{", "big.py": "#" * (CHECK_BYTES + 1)})
    assert "1 error" in await ask(context, get_diagnostics, path="a.json")
    with pytest.raises(ToolError, match=r"no checker for '\.js' files"):
        await ask(context, get_diagnostics, path="a.js")
    with pytest.raises(ToolError, match="too large to check"):
        await ask(context, get_diagnostics, path="big.py")


@pytest.mark.usefixtures("without")
async def test_a_path_outside_is_refused(make_disk: Any, ask: Any, tmp_path: Path) -> None:
    context = make_disk({})
    with pytest.raises(ToolDenied):
        await ask(context, get_diagnostics, path=str(tmp_path.parent / "x.py"))
    with pytest.raises(ToolDenied):
        await ask(context, project_diagnostics, path="..")


@pytest.mark.rules("A5.T4")
@pytest.mark.usefixtures("without")
async def test_the_projects_settings_count_but_write_nothing(
    make_disk: Any, ask: Any, tmp_path: Path
) -> None:
    settings = '[lint]\nselect = ["F821"]\n'
    context = make_disk({"a.py": BAD, "ruff.toml": f"fix = true\nunsafe-fixes = true\n{settings}"})
    before = _names(tmp_path)
    text = await ask(context, project_diagnostics)
    assert "1 error (F821 1)" in text
    assert "1 error (F821 1)" in await ask(context, get_diagnostics, path="a.py")
    assert (tmp_path / "a.py").read_text() == BAD
    assert _names(tmp_path) == before


@pytest.mark.usefixtures("without")
async def test_broken_settings_are_told_and_the_syntax_is_still_checked(
    make_disk: Any, ask: Any
) -> None:
    context = make_disk({"a.py": "def f(:\n", "ruff.toml": "secret = = 1\n"})
    text = await ask(context, get_diagnostics, path="a.py")
    assert "1 error (invalid-syntax 1) (by syntax)" in text
    assert "[ruff can't do this:" in text
    assert "secret" not in text


@pytest.mark.rules("A5.T4")
@pytest.mark.usefixtures("without")
async def test_a_project_is_checked_whole_with_counts_and_errors_first(
    make_disk: Any, ask: Any
) -> None:
    files = {"a.py": "import os\n", "src/b.py": "x = missing\n", "c.json": "{,", "d.toml": "a = 1"}
    text = await ask(make_disk(files), project_diagnostics)
    head, *lines = text.splitlines()
    assert head.startswith("2 errors, 1 warning (")
    assert head.endswith("(by ruff and syntax)")
    places = [line.partition(" ")[0] for line in lines]
    assert places == ["c.json:1:2", "src/b.py:1:5", "a.py:1:8"]
    only = await ask(make_disk(files), project_diagnostics, severity="error", path="src")
    assert only.splitlines()[0].startswith("1 error (F821 1)")
    assert "src/b.py:1:5" in only


@pytest.mark.usefixtures("without")
async def test_a_project_in_memory_is_checked_file_by_file(ask: Any, make_context: Any) -> None:
    context = make_context({"a.py": BAD, "b/c.toml": "a ="})
    text = await ask(context, project_diagnostics)
    assert text.startswith("2 errors, 1 warning")
    assert "a.py:5:12 error F821" in text
    assert "b/c.toml:1:1 error invalid-syntax" in text


@pytest.mark.usefixtures("without")
async def test_more_findings_than_a_page_are_counted(
    make_disk: Any, ask: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(diagnostics, "FILES_CHECKED", 1)
    files = {"a.py": "".join(f"x = missing{n}\n" for n in range(300)), "b.json": "{", "c.json": "{"}
    text = await ask(make_disk(files), project_diagnostics)
    assert text.startswith("301 errors")
    assert "[201 more; mend these first" in text
    assert "[1 of 2 data files were checked" in text


@pytest.mark.usefixtures("without")
async def test_a_link_that_leads_outside_is_not_read(
    make_disk: Any, ask: Any, tmp_path: Path
) -> None:
    (tmp_path.parent / f"{tmp_path.name}.json").write_text("{,")
    context = make_disk({"sub/a.py": "x = 1\n"})
    (tmp_path / "sub" / "out.json").symlink_to(tmp_path.parent / f"{tmp_path.name}.json")
    assert (await ask(context, project_diagnostics, path="sub")).startswith("no findings")


def _absent(_: object) -> str:
    return "/absent"


@pytest.mark.rules("A5.T4")
async def test_no_program_of_the_project_is_taken_for_a_checker(
    make_disk: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_disk({"ruff.py": "raise SystemExit", "ty": "#!/bin/sh\nexit 3\n"})
    (tmp_path / "ty").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    monkeypatch.setenv("PATH", ".:")
    monkeypatch.setattr(f"{checkers.__name__}.sysconfig.get_path", _absent)
    monkeypatch.setattr(sys, "executable", "/absent/bin/python")
    assert await find_checker("ty") is None
    assert await find_checker("ruff") is None


async def test_a_list_that_is_cut_is_told(
    make_disk: Any, ask: Any, without: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    without(ty=None)
    monkeypatch.setattr(checkers, "OUTPUT_BYTES", 10)
    text = await ask(make_disk({"a.py": BAD}), project_diagnostics)
    assert "[ruff found more than is counted here; narrow with path.]" in text
