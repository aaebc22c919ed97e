"""Patches of both forms: read strictly, put in exactly or not at all."""

import re
from difflib import SequenceMatcher, unified_diff

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from towline_agent.errors import ToolInputInvalid
from towline_agent.tools.edits.hunk import FilePatch, apply_hunks
from towline_agent.tools.edits.patch import FILES_MAX, parse_patch

NO_END = "\n\\ No newline at end of file\n"
TEXTS = st.lists(
    st.sampled_from(["a\n", "b\n", "c\n", "\n", "-- x\n", "++ y\n"]), max_size=14
).flatmap(lambda lines: st.sampled_from(["".join(lines), "".join(lines).removesuffix("\n")]))


def _unified(before: str, after: str, context: int = 3) -> str:
    """As `diff -u` writes it."""
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    lines = unified_diff(old, new, "a/f", "b/f", n=context)
    return "".join(line if line.endswith("\n") else f"{line}{NO_END}" for line in lines)


def _envelope(before: str, after: str) -> str:
    """The whole file as one place, so that nothing is found twice."""
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    pieces = ["*** Begin Patch\n*** Update File: f\n@@\n"]

    def add(sign: str, lines: list[str]) -> None:
        for line in lines:
            end = "" if line.endswith("\n") else NO_END
            pieces.append(f"{sign}{line}{end}")

    for tag, i, j, k, m in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            add(" ", old[i:j])
        else:
            add("-", old[i:j])
            add("+", new[k:m])
    return "".join((*pieces, "*** End of File\n*** End Patch\n"))


def _apply(before: str, patch: str) -> str:
    (found,) = parse_patch(patch)
    return apply_hunks(before, found.hunks)


@pytest.mark.rules("A5.12", "A5.16")
@given(before=TEXTS, after=TEXTS, context=st.integers(0, 3))
def test_a_unified_diff_of_two_texts_makes_the_second_of_the_first(
    before: str, after: str, context: int
) -> None:
    assume(before != after)
    assert _apply(before, _unified(before, after, context)) == after


@st.composite
def _edited(draw: st.DrawFn) -> tuple[str, str]:
    """A text of lines that are all different, and what an edit makes of it."""
    before = [f"line {number}\n" for number in range(draw(st.integers(1, 30)))]
    after: list[str] = []
    for line in before:
        keep = draw(st.sampled_from(["keep", "keep", "keep", "drop", "change", "add"]))
        after += {
            "keep": [line],
            "drop": [],
            "change": [f"new {line}"],
            "add": [line, f"more {line}"],
        }[keep]
    return "".join(before), "".join(after)


def _miscount(patch: str, draw: st.DrawFn) -> str:
    """The same places, with headers that promise other counts."""

    def wrong(header: re.Match[str]) -> str:
        first, old, second, new = (int(number or 1) for number in header.groups())
        off = st.integers(-4, 4)
        return f"@@ -{first},{max(0, old + draw(off))} +{second},{max(0, new + draw(off))} @@"

    return re.sub(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", wrong, patch)


@pytest.mark.rules("A5.12", "A5.16")
@given(first=_edited(), second=_edited(), context=st.integers(1, 3), data=st.data())
def test_miscounted_headers_give_what_right_ones_give(
    first: tuple[str, str], second: tuple[str, str], context: int, data: st.DataObject
) -> None:
    assume(first[0] != first[1] and second[0] != second[1])
    patch = _unified(*first, context) + _unified(*second, context).replace("/f\n", "/g\n")
    found = parse_patch(data.draw(st.composite(lambda draw: _miscount(patch, draw))()))
    assert [each.path for each in found] == ["f", "g"]
    for each, (before, after) in zip(found, (first, second), strict=True):
        assert apply_hunks(before, each.hunks) == after


def test_a_miscounted_place_must_stand_in_the_file_exactly_once() -> None:
    patch = "--- a/f\n+++ b/f\n@@ -3,9 +3,9 @@\n a\n-b\n+c\n"
    assert _apply("x\na\nb\n", patch) == "x\na\nc\n"
    with pytest.raises(ToolInputInvalid, match="stand at lines 1, 3; add context"):
        _apply("a\nb\na\nb\n", patch)
    with pytest.raises(ToolInputInvalid, match="has no line that stands in the file"):
        _apply("a\n", "--- a/f\n+++ b/f\n@@ -1,0 +2,5 @@\n+c\n")


@pytest.mark.parametrize("count", [0, 1, 2, 7])
def test_a_new_file_is_what_stands_there_whatever_its_header_counts(count: int) -> None:
    patch = f"--- /dev/null\n+++ b/f\n@@ -0,0 +1,{count} @@\n+one\n+two\n"
    patch += "--- a/g\n+++ b/g\n@@ -1 +1 @@\n-x\n+y\n"
    made, changed = parse_patch(patch)
    assert (made.kind, changed.path) == ("add", "g")
    assert apply_hunks("", made.hunks) == "one\ntwo\n"


@pytest.mark.rules("A5.12")
@given(before=TEXTS, after=TEXTS)
def test_an_envelope_of_two_texts_makes_the_second_of_the_first(before: str, after: str) -> None:
    assume(before != after)
    assert _apply(before, _envelope(before, after)) == after


@pytest.mark.rules("A5.12")
@given(before=TEXTS, after=TEXTS, data=st.data())
def test_a_patch_with_a_line_that_is_not_there_is_refused(
    before: str, after: str, data: st.DataObject
) -> None:
    assume(before != after)
    lines = _unified(before, after).split("\n")
    body = [at for at, line in enumerate(lines) if at > 2 and line[:1] in (" ", "-")]
    assume(body)
    at = data.draw(st.sampled_from(body))
    lines[at] = f"{lines[at][:1]}wrong"
    with pytest.raises(ToolInputInvalid, match="does not fit"):
        _apply(before, "\n".join(lines))


FILE = (
    "class A:\n    def f(self):\n        return 1\n\nclass B:\n    def f(self):\n        return 1\n"
)


def _update(*body: str) -> str:
    return "\n".join(("*** Begin Patch", "*** Update File: f", *body, "*** End Patch"))


@pytest.mark.rules("A5.12")
def test_an_anchor_says_which_of_two_places_is_meant() -> None:
    body = ("         return 1".replace("         ", "-        "), "+        return 2")
    with pytest.raises(ToolInputInvalid, match=r"stand at lines 3, 7; add context, or an `@@"):
        _apply(FILE, _update("@@", *body))
    made = _apply(FILE, _update("@@ class B:", "@@     def f(self):", *body))
    assert made == FILE[::-1].replace("1", "2", 1)[::-1]
    assert _apply(FILE, _update("@@ class A:", *body)) == FILE.replace("1", "2", 1)
    with pytest.raises(ToolInputInvalid, match="no line 'class C:' follows"):
        _apply(FILE, _update("@@ class C:", *body))


def test_numbers_say_which_of_two_places_is_meant_also_when_they_are_a_bit_off() -> None:
    patch = "--- f\n+++ f\n@@ -{} +{} @@\n-        return 1\n+        return 2\n"
    for number, made in ((3, 3), (4, 3), (6, 7), (99, 7)):
        lines = _apply(FILE, patch.format(number, number)).split("\n")
        assert [at for at, line in enumerate(lines, 1) if line.endswith("2")] == [made]


def test_places_must_stand_in_the_order_of_the_file() -> None:
    patch = _update("@@", "-class B:", "+class C:", "@@", "-class A:", "+class D:")
    with pytest.raises(ToolInputInvalid, match="only at line 1, before an earlier place"):
        _apply(FILE, patch)


def test_an_addition_needs_a_place() -> None:
    with pytest.raises(ToolInputInvalid, match="no line that stands in the file"):
        _apply(FILE, _update("@@", "+x"))
    assert _apply(FILE, _update("@@ class A:", "+    x = 1")).startswith("class A:\n    x = 1\n")
    assert _apply(FILE, _update("@@", "+x", "*** End of File")) == f"{FILE}x\n"
    assert _apply("", _update("+x")) == "x\n"
    assert _apply(FILE, "--- f\n+++ f\n@@ -1,0 +2 @@\n+x\n").startswith("class A:\nx\n")
    with pytest.raises(ToolInputInvalid, match="has 7 lines, so none follows 9"):
        _apply(FILE, "--- f\n+++ f\n@@ -9,0 +10 @@\n+x\n")


@pytest.mark.rules("A5.14")
def test_a_near_miss_in_a_patch_is_told_with_the_closest_lines() -> None:
    with pytest.raises(ToolInputInvalid, match="Lines 1-2 differ only in indentation"):
        _apply(FILE, _update("@@", " class A:", "-  def f(self):", "+  def g(self):"))


def test_all_kinds_of_files_are_read() -> None:
    envelope = parse_patch(
        "*** Begin Patch\n*** Add File: a\n+x\n+\n\n*** Delete File: b\n*** Update File: c\n"
        "*** Move to: d\n@@\n-x\n+y\n\n*** Update File: e\n*** Move to: f\n*** End Patch\n\n"
    )
    unified = parse_patch(
        "diff --git a/a b/a\nnew file mode 100644\nindex 000..1\n--- /dev/null\n+++ b/a\n"
        "@@ -0,0 +1,2 @@\n+x\n+\n"
        "diff --git a/b b/b\ndeleted file mode 100644\n--- a/b\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n"
        "--- a/c\t2026-01-01\n+++ b/d\t2026-01-02\n@@ -1 +1 @@ def f():\n-x\n+y\n"
        "diff --git a/e b/f\nsimilarity index 100%\nrename from e\nrename to f\n"
    )
    for found in (envelope, unified):
        told = [(file.kind, file.path, file.target, len(file.hunks)) for file in found]
        deleted = 0 if found is envelope else 1
        assert told == [
            ("add", "a", None, 1),
            ("delete", "b", None, deleted),
            ("update", "c", "d", 1),
            ("update", "e", "f", 0),
        ]
        assert apply_hunks("", found[0].hunks) == "x\n\n"


BAD = [
    ("", "can't begin with ''"),
    ("hello", "can't begin with 'hello'"),
    ("*** Begin\n", "Line 1 .*begin with"),
    ("*** Begin Patch\n*** End Patch", "changes nothing"),
    ("*** Begin Patch\n*** Update File: a\n@@\n-x", "Line 5 of the patch .its end.: end with"),
    ("*** Begin Patch\nx\n*** End Patch", "Line 2 .*expected .*Add File"),
    ("*** Begin Patch\n*** Add File:  \n*** End Patch", "names no path"),
    ("*** Begin Patch\n*** Add File: a\nx\n*** End Patch", "Line 3 .*begins with '\\+'"),
    ("*** Begin Patch\n*** Update File: a\n*** End Patch", "changes nothing"),
    ("*** Begin Patch\n*** Update File: a\n*** Move to: \n*** End Patch", "names no path"),
    ("*** Begin Patch\n*** Update File: a\n@@\nx\n*** End Patch", "Line 4 .*begin it with"),
    ("*** Begin Patch\n*** Update File: a\n@@\n x\n*** End Patch", "Line 3 .*changes nothing"),
    ("*** Begin Patch\n*** Delete File: a\n*** End Patch\nx", "nothing may follow"),
    ("--- a\n", r"Line 2 .*expected '\+\+\+"),
    ("--- a\n+++ b", "Line 3 .its end.: expected '@@'|rename"),
    ("--- a\n+++ a\n", "Line 3 .*expected '@@'"),
    ("--- a\n+++ a\n@@ -1 +1 @@\n-x\nz", "promises 1 old and 1 new lines, and 1 and 0 follow"),
    ("--- a\n+++ a\n@@ -1,2 +1 @@\n x\n", "changes nothing"),
    ("--- a\n+++ a\n@@ -1,x @@\n-x\n", "Line 3 .*write it as"),
    ("--- a\n+++ a\n@@ -1 +1 @@\n x\n", "changes nothing"),
    ('--- "a"\n+++ a\n', "without quotes"),
    ("diff --git a/x b/x\nold mode 1\nnew mode 2\n", "modes, copies and binary"),
    ("diff --git a/x b/x\nGIT binary patch\n", "modes, copies and binary"),
]


@pytest.mark.parametrize(("patch", "told"), BAD)
def test_a_patch_that_can_not_be_read_names_its_line(patch: str, told: str) -> None:
    if patch == "--- a\n+++ b":
        assert parse_patch(patch) == (FilePatch(number=1, kind="update", path="a", target="b"),)
        return
    with pytest.raises(ToolInputInvalid, match=told):
        parse_patch(patch)


def test_a_patch_of_too_many_files_is_refused() -> None:
    files = "".join(f"*** Delete File: {number}\n" for number in range(FILES_MAX + 1))
    with pytest.raises(ToolInputInvalid, match=f"has {FILES_MAX + 1} files"):
        parse_patch(f"*** Begin Patch\n{files}*** End Patch")


@given(text=st.text(alphabet="*-+@ \n\\abEndBegiPtchUF:1,", max_size=120))
def test_any_text_is_a_patch_or_is_refused(text: str) -> None:
    for start in ("", "*** Begin Patch\n*** Update File: a\n", "--- a\n+++ a\n@@ -1 +1 @@\n"):
        try:
            for file in parse_patch(start + text):
                assert isinstance(apply_hunks("a\nb\n", file.hunks), str)
        except ToolInputInvalid:
            continue
