"""Globs over paths."""

import re
import time
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from towline_agent.errors import ToolInputInvalid
from towline_agent.tools.search.glob import compile_glob, expand_braces, name_globs


@pytest.mark.rules("A5.T2")
@pytest.mark.parametrize(
    ("glob", "inside", "outside"),
    [
        ("*.py", ["a.py", "src/a.py", ".py"], ["a.pyc", "a.py/b"]),
        ("src/*.py", ["src/a.py"], ["src/b/a.py", "x/src/a.py", "src/a.pyc"]),
        ("/src/*.py", ["src/a.py"], ["x/src/a.py"]),
        ("./*.py", ["a.py", "src/a.py"], []),
        ("src/**", ["src/a", "src/b/a"], ["src", "x/src/a"]),
        ("src/**/*.py", ["src/a.py", "src/b/c/a.py"], ["a.py"]),
        ("**/test_*", ["test_a", "x/y/test_a"], ["test", "test_a/x"]),
        ("a/**/b/**/c", ["a/b/c", "a/x/b/y/z/c", "a/b/b/c"], ["a/c", "a/b/cc"]),
        ("**", ["a", "a/b"], []),
        ("*.{ts,tsx}", ["a.ts", "b/a.tsx"], ["a.t", "a.tsx2"]),
        ("{a,b/{c,d}}.py", ["a.py", "b/c.py", "b/d.py"], ["b.py", "c.py"]),
        ("?[ab][!c].x", ["zad.x", "zbb.x"], ["zac.x", "zcd.x", "/ad.x"]),
        ("a[", ["a["], ["a"]),
        ("a[]]", ["a]"], ["a[]]"]),
        ("[--a]", ["a", "/"][:1], ["b"]),
        ("[[a]", ["[", "a"], ["b"]),
        ("a.b", ["a.b"], ["axb"]),
        ("*a*b*", ["xaxbx", "ab"], ["ba"]),
        ("ä*", ["äx"], ["a"]),
        ("a\nb", ["a\nb"], ["a"]),
    ],
)
def test_a_glob_takes_what_a_shell_would(glob: str, inside: list[str], outside: list[str]) -> None:
    test = compile_glob(glob)
    assert [path for path in inside if not test(path)] == []
    assert [path for path in outside if test(path)] == []


def _name_fits(glob: str, name: str) -> bool:
    if not glob:
        return not name
    if glob[0] == "*":
        return any(_name_fits(glob[1:], name[at:]) for at in range(len(name) + 1))
    return bool(name) and glob[0] in ("?", name[0]) and _name_fits(glob[1:], name[1:])


def _fits(globs: Sequence[str], names: Sequence[str]) -> bool:
    if not globs:
        return not names
    if globs[0] == "**":
        if len(globs) == 1:
            return bool(names)
        return any(_fits(globs[1:], names[at:]) for at in range(len(names) + 1))
    return bool(names) and _name_fits(globs[0], names[0]) and _fits(globs[1:], names[1:])


_PART = st.one_of(st.just("**"), st.text(alphabet="ab*?", min_size=1, max_size=4)).filter(
    lambda part: part == "**" or "**" not in part
)


@pytest.mark.rules("A5.T2")
@given(
    globs=st.lists(_PART, min_size=2, max_size=5),
    names=st.lists(st.text(alphabet="ab", min_size=1, max_size=4), min_size=1, max_size=5),
)
def test_a_glob_fits_as_one_that_tries_everything_says(globs: list[str], names: list[str]) -> None:
    assert compile_glob("/".join(globs))("/".join(names)) is _fits(globs, names)


@pytest.mark.parametrize(
    "glob", ["*a" * 100 + "b", "**/a/" * 60 + "b", "**/*a*a*a*b/" * 20 + "c", "a?*" * 80 + "b"]
)
def test_no_glob_takes_for_ever(glob: str) -> None:
    test = compile_glob(glob)
    began = time.process_time()
    assert not test("a" * 255)
    assert not test("/".join(["a" * 60] * 60))
    assert not test("a/" * 200 + "a")
    assert time.process_time() - began < 5


@pytest.mark.parametrize("glob", ["", "/", "x" * 2000, "{a,b}" * 10, "[z-a]"])
def test_what_is_no_glob_is_told(glob: str) -> None:
    with pytest.raises(ToolInputInvalid, match="glob"):
        compile_glob(glob)


@given(glob=st.text(alphabet="ab*?[]!{},/-^\\&", max_size=20), path=st.text("ab/*[]", max_size=10))
def test_any_text_is_a_glob_or_is_refused(glob: str, path: str) -> None:
    try:
        test = compile_glob(glob)
    except ToolInputInvalid:
        return
    assert test(path) in (True, False)


@given(glob=st.text(alphabet="ab*.{},/", min_size=1, max_size=12))
def test_names_of_a_glob_are_those_of_its_matches(glob: str) -> None:
    try:
        names, test = name_globs(glob), compile_glob(glob)
    except ToolInputInvalid:
        return
    for path in ("a", "b.a", "a/b", "a/a.b", "a/b/ab"):
        if names is not None and test(path):
            shapes = ["".join(".*" if c == "*" else re.escape(c) for c in name) for name in names]
            assert any(re.fullmatch(shape, path.rpartition("/")[2]) for shape in shapes)


def test_braces_stand_for_each_of_their_parts() -> None:
    assert expand_braces("{a,b}{,c}") == ["a", "ac", "b", "bc"]
    assert name_globs("src/**/*.{py,pyi}") == ["*.py", "*.pyi"]
    assert name_globs("src/**") is None
    assert name_globs("[ab].py") is None
