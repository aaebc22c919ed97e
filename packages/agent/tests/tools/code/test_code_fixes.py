"""The tools that rewrite a file through ruff."""

from pathlib import Path
from typing import Any

import pytest

from towline_agent.errors import ToolError, ToolInputInvalid
from towline_agent.tools.builtin import after_edit
from towline_agent.tools.builtin.code_fixes import apply_quick_fix, format_file, organize_imports
from towline_agent.tools.code import checkers
from towline_agent.tools.code.fixes import Fix, apply_fixes

UGLY = "x=1\n\n\n\n\ndef f( a ):\n  return  a\n"
NEAT = "x = 1\n\n\ndef f(a):\n    return a\n"
UNSORTED = "import sys\nimport os\n\nprint(os, sys)\n"
SORTED = "import os\nimport sys\n\nprint(os, sys)\n"
UNUSED = "import os\nimport re\n\nx = f'a'\n"


async def _text(context: Any, path: str) -> str:
    return (await context.workspace.read(path)).data.decode()


@pytest.mark.rules("A5.T8")
async def test_a_file_is_formatted_and_the_diff_is_told(
    make_context: Any, ask: Any, run_tool: Any
) -> None:
    context = make_context({"src/a.py": UGLY})
    output = await run_tool(context, format_file, path="src/a.py")
    assert await _text(context, "src/a.py") == NEAT
    assert [change.path for change in output.changes] == ["src/a.py"]
    text = output.content[0].text
    assert text.startswith("Formatted src/a.py.\n--- a/src/a.py\n+++ b/src/a.py\n@@")
    assert "nothing changed" in await ask(context, format_file, path="src/a.py")


@pytest.mark.rules("A5.T8")
async def test_imports_are_organized(make_context: Any, ask: Any) -> None:
    context = make_context({"a.py": UNSORTED})
    await ask(context, organize_imports, path="a.py")
    assert await _text(context, "a.py") == SORTED
    assert "in order already" in await ask(context, organize_imports, path="a.py")


@pytest.mark.rules("A5.T8")
async def test_a_quick_fix_mends_one_line_or_all_of_a_rule(make_context: Any, ask: Any) -> None:
    context = make_context({"a.py": UNUSED})
    text = await ask(context, apply_quick_fix, path="a.py", code="F401", line=2)
    assert text.startswith("Fixed F401 in a.py.")
    assert await _text(context, "a.py") == "import os\n\nx = f'a'\n"
    context = make_context({"b.py": UNUSED})
    text = await ask(context, apply_quick_fix, path="b.py", code="F401")
    assert text.startswith("Fixed F401 2 times in b.py.")
    assert await _text(context, "b.py") == "\nx = f'a'\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"code": "F401", "line": 4}, "There is no F401 in a.py:4"),
        ({"code": "F821"}, "no automatic fix for F821"),
        ({"code": "F841"}, "unsafe=true"),
        ({"code": "ZZ999"}, "Unknown rule selector"),
    ],
)
async def test_a_fix_that_is_not_there_is_told(
    make_context: Any, ask: Any, arguments: dict[str, Any], words: str
) -> None:
    context = make_context({"a.py": f"{UNUSED}\n\ndef f():\n    y = missing\n"})
    with pytest.raises(ToolError, match=words):
        await ask(context, apply_quick_fix, path="a.py", **arguments)


async def test_an_unsafe_fix_is_made_when_it_is_asked_for(make_context: Any, ask: Any) -> None:
    context = make_context({"a.py": "def f(g):\n    y = g()\n"})
    await ask(context, apply_quick_fix, path="a.py", code="F841", unsafe=True)
    assert await _text(context, "a.py") == "def f(g):\n    g()\n"


@pytest.mark.parametrize("code", ["", "f401", "F401,E", "--fix", "I", "F" * 30])
def test_what_is_no_code_of_a_rule_is_refused(code: str) -> None:
    with pytest.raises(ToolInputInvalid, match="no code of a rule"):
        apply_quick_fix.check(f'{{"path": "a.py", "code": "{code}"}}')


@pytest.mark.rules("A5.59", "A5.T8")
async def test_what_would_be_written_is_shown_first(make_context: Any) -> None:
    context = make_context({"a.py": UGLY})
    assert format_file.look is not None
    look = await format_file.look(context, {"path": "./a.py"})
    assert [(part.kind, part.subject, part.effect) for part in look.parts] == [
        ("path", "a.py", "write")
    ]
    assert look.preview is not None
    assert look.preview.kind == "diff"
    assert "-x=1\n+x = 1\n" in look.preview.text
    assert look.bases == {"a.py": (await context.workspace.read("a.py")).hash}
    assert await _text(context, "a.py") == UGLY


async def test_a_file_that_changed_since_it_was_shown_is_left_alone(
    make_disk: Any, tmp_path: Path
) -> None:
    context = make_disk({"a.py": UGLY})
    assert format_file.look is not None
    context.bases = (await format_file.look(context, {"path": "a.py"})).bases
    (tmp_path / "a.py").write_text("y=2\n")
    with pytest.raises(ToolError, match="changed since"):
        await format_file.run(context, {"path": "a.py"})
    assert (tmp_path / "a.py").read_text() == "y=2\n"


@pytest.mark.parametrize("tool", [format_file, organize_imports])
async def test_other_languages_are_refused_with_a_next_step(
    make_context: Any, ask: Any, tool: Any
) -> None:
    with pytest.raises(ToolError, match="run_program"):
        await ask(make_context({"a.js": "x"}), tool, path="a.js")


async def test_broken_code_is_refused_with_ruffs_reason(make_context: Any, ask: Any) -> None:
    with pytest.raises(ToolError, match=r"ruff can't do this: Failed to parse a.py:1:7"):
        await ask(make_context({"a.py": "def f(:\n"}), format_file, path="a.py")


async def test_without_ruff_the_tools_say_what_to_install(
    make_context: Any, ask: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def absent(_: str) -> None:
        return None

    monkeypatch.setattr(checkers, "find_checker", absent)
    with pytest.raises(ToolError, match=r"towline-agent\[coding\]"):
        await ask(make_context({"a.py": "x"}), format_file, path="a.py")


async def test_the_mark_and_line_ends_of_a_file_are_kept(
    make_disk: Any, ask: Any, tmp_path: Path
) -> None:
    context = make_disk({})
    (tmp_path / "a.py").write_bytes(b"\xef\xbb\xbfx=1\r\ny=2\r\n")
    await ask(context, format_file, path="a.py")
    assert (tmp_path / "a.py").read_bytes() == b"\xef\xbb\xbfx = 1\r\ny = 2\r\n"
    (tmp_path / "b.py").write_bytes("x='é'\n".encode("latin-1"))
    with pytest.raises(ToolError, match="no text in UTF-8"):
        await ask(context, format_file, path="b.py")
    assert (tmp_path / "b.py").read_bytes() == "x='é'\n".encode("latin-1")


@pytest.mark.rules("A5.11")
async def test_what_looks_at_edits_is_heard(
    make_context: Any, ask: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def look(_: Any, changed: Any) -> str:
        return f"looked at {dict(changed)}"

    monkeypatch.setattr(after_edit, "AFTER_EDIT", [look])
    text = await ask(make_context({"a.py": "x=1\n"}), format_file, path="a.py")
    assert text.endswith("looked at {'a.py': b'x=1\\n'}")


def _fix(begin: tuple[int, int], end: tuple[int, int], words: str, line: int = 1) -> Fix:
    return Fix("F401", (line,), True, ((begin, end, words),))


def test_columns_count_letters_and_all_line_ends_count() -> None:
    text = 'x = "äö😀"; y\r\nz\ra\nb'
    fixes = [_fix((1, 12), (1, 13), "Y"), _fix((3, 1), (3, 2), "A"), _fix((4, 1), (4, 2), "B")]
    assert apply_fixes(text, fixes) == ('x = "äö😀"; Y\r\nz\rA\nB', 3)


def test_fixes_that_meet_are_not_made_both_and_one_fix_of_two_findings_is_one() -> None:
    twice = _fix((1, 1), (1, 4), "")
    assert apply_fixes("abcdef", [twice, twice, _fix((1, 3), (1, 6), "-")]) == ("def", 2)
    insert = _fix((1, 1), (1, 1), "+")
    assert apply_fixes("ab", [insert, _fix((1, 1), (1, 1), "-")]) == ("+ab", 1)
    assert apply_fixes("ab", [_fix((9, 9), (9, 9), "!")]) == ("ab!", 1)
