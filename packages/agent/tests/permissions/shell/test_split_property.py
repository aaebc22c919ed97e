"""Commands made by a grammar, and commands made of rubble: what is run is among the parts."""

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from towline_agent.permissions.part import Part
from towline_agent.permissions.shell.split import split_shell

BASH = shutil.which("bash") or ""
needs_bash = pytest.mark.skipif(not BASH, reason="BASH is not on the path; it judges the splitter.")

Made = tuple[str, frozenset[str]]
"""A command, and the simple commands that it is made of."""

NAMES = st.sampled_from(["aa", "bb", "cc", "rm", "git push", "make -j 4"])
WORDS = st.sampled_from(["x", "-f", "'a b'", '"c d"', "e\\ f", "$x", '"$x"', "*.py", "a=b"])
LITERALS = {"'a b'": "'a b'", '"c d"': "'c d'", "e\\ f": "'e f'", "*.py": "'*.py'"}


@st.composite
def simple(draw: st.DrawFn) -> Made:
    words = [draw(NAMES), *draw(st.lists(WORDS, max_size=3))]
    shown = " ".join(LITERALS.get(word, word) for word in words)
    return " ".join(words), frozenset({shown})


def wrap(inner: st.SearchStrategy[Made]) -> st.SearchStrategy[Made]:
    """Each way in which a command stands in another."""
    shapes = st.sampled_from(
        [
            "({})", "( {} )", "{{ {}; }}", "! {}", "if {}; then :; fi", "while {}; do break; done",
            "for i in 1 2; do {}; done", "f() {{ {}; }}", "echo $({})", 'echo "$({})"',
            "case x in y) {};; esac", "cat <({})", "A=$({})", "echo ${{x:-$({})}}", "{} > out",
            "{} 2>&1", "{} &", "time {}", "cat <<EOF\n$({})\nEOF", ">out {}",
        ]
    )  # fmt: skip

    def fill(shape: str, made: Made) -> Made:
        text, parts = made
        # A redirection, `!` or `time` takes a simple command or a group; so it gets a group.
        if (
            shape[0] in "{>!t"
            and shape != "{{ {}; }}"
            and not re.fullmatch(r"[^;&|\n(){}!]*", text)
        ):
            text = f"{{ {text}\n}}"
            if shape == ">out {}":
                shape = "{} >out"
        return shape.format(text), parts

    joined = st.tuples(inner, st.sampled_from([" && ", " || ", "; ", " | ", "\n", " & "]), inner)
    return st.builds(fill, shapes, inner) | joined.map(
        lambda made: (made[0][0] + made[1] + made[2][0], made[0][1] | made[2][1])
    )


COMMANDS = st.recursive(simple(), wrap, max_leaves=6)


def sees_error(command: str) -> bool:
    done = subprocess.run(
        [BASH, "-n", "-c", command], capture_output=True, timeout=10, check=False, text=True
    )
    return done.returncode != 0 or "here-document" in done.stderr


def is_unknown(parts: tuple[Part, ...]) -> bool:
    return any(part.kind == "unknown" for part in parts)


@pytest.mark.wide
@pytest.mark.rules("A5.64", "A5.66")
@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(COMMANDS)
def test_every_command_in_a_command_is_among_its_parts(made: Made) -> None:
    command, wanted = made
    parts = split_shell(command, root="/r")
    found = {part.subject for part in parts}
    assert is_unknown(parts) or wanted <= found


@pytest.mark.rules("A5.64")
@settings(max_examples=100, deadline=None)
@given(st.lists(simple(), min_size=1, max_size=5), st.sampled_from([" && ", "; ", " | ", "\n"]))
def test_plain_lists_of_commands_are_never_unknown(made: list[Made], sign: str) -> None:
    parts = split_shell(sign.join(text for text, _ in made), root="/r")
    assert not is_unknown(parts)
    assert {part.subject for part in parts} == frozenset[str]().union(*(p for _, p in made))


RUBBLE = [
    "aa", "bb", "ls", "echo", '"', "'", "`", "$(", "(", ")", "{", "}", ";", "&&", "||", "|", "&",
    "\n", "\\", "#", "<<E", "\nE\n", "<<-'E'", "<", ">", "$x", '"$x"', "if", "then", "fi", "do",
    "done", "for", "in", "while", "case", "esac", ";;", "[", "[[", "]]", "]", "=", "a=b", "$((",
    "))", "1", "!", "time", "<(", ">(", "${x:-", "~", "*", "|&", "&>", "<<<", "eval", "\t", '$"',
    "$'", "function", "f", "()", "@", "\\\n", "\u00e9", ",", "true", " ",
]  # fmt: skip
PIECES = st.lists(
    st.sampled_from(RUBBLE) | st.sampled_from(RUBBLE).map(lambda t: t + " "), max_size=10
)


@pytest.mark.slow
@pytest.mark.wide
@needs_bash
@pytest.mark.rules("A5.66")
@settings(max_examples=250, deadline=None)
@given(PIECES.map("".join))
@example("ls ;; pwd")
@example("cat <<E\nno end")
@example("ls > \nx")
def test_what_bash_calls_an_error_is_never_let_pass(command: str) -> None:
    parts = split_shell(command, root="/r")
    if all(part.effect == "read" and part.caution is None for part in parts) and command.strip():
        assert not sees_error(command)


def trace(command: str, folder: Path) -> set[str]:
    """The names of the commands that bash runs; there are no programs where it looks for them."""
    read_end, write_end = os.pipe()
    try:
        environment = {
            "PATH": "/nonexistent", "BASH_XTRACEFD": str(write_end), "x": "", "HOME": str(folder),
            "LC_ALL": "C.UTF-8",
        }  # fmt: skip
        subprocess.run(
            [BASH, "-c", f'exec 1>/dev/null; PS4="@@ "; set -x\n{command}'],
            capture_output=True, timeout=10, check=False, cwd=folder, env=environment,
            pass_fds=[write_end], stdin=subprocess.DEVNULL,
        )  # fmt: skip
    finally:
        os.close(write_end)
    with os.fdopen(read_end, errors="replace") as lines:
        found = [re.match(r"@+ (.*)", line) for line in lines]
    names = {shlex.split(line[1])[0] for line in found if line and _is_whole(line[1])}
    syntax = {"for", "case", "[[", "((", "[", "select"}
    return {name for name in names - syntax if not re.match(r"[A-Za-z_]\w*\+?=", name)}


def _is_whole(text: str) -> bool:
    try:
        return bool(shlex.split(text))
    except ValueError:
        return False


@pytest.mark.slow
@pytest.mark.wide
@needs_bash
@pytest.mark.rules("A5.64", "A5.65")
@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(PIECES.map("".join))
@example("\\ true a=b")
@example("r\\\nm x")
@example("a=b \n\\function in")
@example("\\E<(true)")
@example("!} x")
@example("[-n x ]")
def test_what_bash_runs_is_among_the_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    parts = split_shell(command, root=str(tmp_path))
    loops = re.search(r"while|until|read|select|:\(\)", command)
    if is_unknown(parts) or sees_error(command) or loops:
        return
    known = {"cd"}
    for part in parts:
        for subject in (part.subject, *part.also):
            known |= (
                set(shlex.split(subject)[:1]) if _is_whole(subject) else set(subject.split()[:1])
            )
    assert trace(command, tmp_path) <= known
