"""Findings: read from checkers, compared, told."""

import json
from typing import Any

import pytest

from towline_agent.tools.code.findings import (
    Finding,
    check_syntax,
    new_findings,
    read_ruff,
    read_syntax,
    read_ty,
    show_counts,
    show_finding,
)


def _finding(line: int, code: str = "F401", message: str = "unused", **more: Any) -> Finding:
    return Finding("a.py", line, 1, code, message, more.pop("severity", "warning"), **more)


def _row(**more: Any) -> bytes:
    row: dict[str, Any] = {
        "code": "F401",
        "message": "`os` is\n unused",
        "filename": "/p/a.py",
        "location": {"row": 2, "column": 8},
        "end_location": {"row": 2, "column": 10},
        "fix": {"applicability": "safe", "edits": []},
    }
    return json.dumps({**row, **more}).encode()


def test_what_ruff_says_is_read_line_by_line() -> None:
    output = b"\n".join(
        [_row(), _row(code=None, fix=None), _row(code="F821", fix={"applicability": "unsafe"})]
    )
    assert read_ruff(output, "a.py") == (
        Finding("a.py", 2, 8, "F401", "`os` is unused", "warning", True),
        Finding("a.py", 2, 8, "invalid-syntax", "`os` is unused", "error"),
        Finding("a.py", 2, 8, "F821", "`os` is unused", "error"),
    )
    assert read_ruff(_row())[0].path == "/p/a.py"


def test_a_line_of_ruff_that_is_cut_off_is_left_out() -> None:
    assert len(read_ruff(_row() + b"\n" + _row()[:40] + b"\nnot json\n[]")) == 1


def test_what_ty_says_is_read() -> None:
    row = {
        "check_name": "unresolved-reference",
        "description": "unresolved-reference: Name `y` used",
        "severity": "major",
        "fingerprint": "1",
        "location": {"path": "a.py", "positions": {"begin": {"line": 4, "column": 12}, "end": {}}},
    }
    found = read_ty(json.dumps([row, {**row, "severity": "minor"}]).encode())
    assert found[0] == Finding("a.py", 4, 12, "unresolved-reference", "Name `y` used", "error")
    assert found[1].severity == "warning"


@pytest.mark.parametrize("output", [b"", b"ty failed", b"[{}]", b"{}", b'[{"location": 3}]'])
def test_what_is_no_answer_of_ty_is_nothing(output: bytes) -> None:
    assert read_ty(output) == ()


@pytest.mark.parametrize(
    ("path", "text", "place"),
    [
        ("a.json", '{"a": 1,\n "b": }', (2, 7)),
        ("a.toml", "a = 1\nb = = 2\n", (2, 5)),
        ("a.yaml", "a: 1\nb: [1\n", (3, 1)),
        ("a.json", "[" * 100_000, (1, 1)),
        ("a.toml", "a = " + "[" * 100_000, (1, 1)),
    ],
)
@pytest.mark.rules("A5.T4")
def test_the_syntax_of_data_files_is_checked(path: str, text: str, place: tuple[int, int]) -> None:
    found = check_syntax(path, text)
    assert found is not None
    assert [(one.line, one.column) for one in found] == [place]
    assert found[0].severity == "error"


@pytest.mark.parametrize(
    ("path", "text", "found"),
    [
        ("a.json", "{}", ()),
        ("tsconfig.json", '{\n  // why\n  "a": 1,\n}', None),
        ("a.toml", "a = 1", ()),
        ("a.yml", "a: !!python/object/apply:os.abort []", ()),
        ("a.txt", "{", None),
    ],
)
def test_a_sound_file_and_one_of_no_known_kind_are_told_apart(
    path: str, text: str, found: tuple[()] | None
) -> None:
    assert check_syntax(path, text) == found


def test_an_answer_of_python_about_syntax_is_read() -> None:
    assert read_syntax("a.py", b'[3, 4, "invalid syntax"]\n')[0][1:3] == (3, 4)
    assert read_syntax("a.py", b"") == ()


@pytest.mark.rules("A5.11")
def test_what_only_moved_is_not_new() -> None:
    before = "import os\nx = 1\n"
    after = "# why\n\nimport os\nx = 1\n"
    assert new_findings([_finding(1)], before, [_finding(3)], after) == ()


@pytest.mark.rules("A5.11")
def test_one_more_of_the_same_is_new_and_told_where_it_was_added() -> None:
    before = "import os\nx = 1\n"
    after = "import os\nx = 1\ny = 2\nimport os\n"
    new = new_findings([_finding(1)], before, [_finding(1), _finding(4)], after)
    assert [finding.line for finding in new] == [4]


@pytest.mark.rules("A5.11")
def test_a_finding_whose_line_was_edited_is_not_new() -> None:
    new = new_findings([_finding(1)], "import os, re\n", [_finding(1)], "import os\n")
    assert new == ()


@pytest.mark.rules("A5.11")
def test_mending_the_syntax_makes_no_old_warning_new() -> None:
    broken = [_finding(3, "invalid-syntax", "expected", severity="error")]
    after = [_finding(1), _finding(4, "F821", "undefined", severity="error")]
    new = new_findings(broken, "import os\n\ndef (\n", after, "import os\n\n\nx\n")
    assert [finding.code for finding in new] == ["F821"]


def test_a_finding_is_told_in_a_line_and_many_are_counted() -> None:
    found = [_finding(3, fixable=True), _finding(4, "F821", "undefined", severity="error")]
    assert show_finding(found[0]) == "a.py:3:1 warning F401 unused [fixable]"
    assert show_finding(found[1], with_path=False) == "4:1 error F821 undefined"
    assert show_counts(found) == "1 error, 1 warning (F401 1, F821 1)"
    assert show_counts([]) == "no findings"
