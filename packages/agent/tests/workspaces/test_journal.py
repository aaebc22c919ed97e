"""What edits are foreseen to make of paths, by which a start knows how far a batch came (A5.12)."""

import pytest

from towline_agent.workspaces.base import Deed
from towline_agent.workspaces.journal import foresee
from towline_agent.workspaces.tree import ABSENT_STATE, State


@pytest.mark.rules("A5.12")
def test_what_edits_make_of_paths_is_foreseen_in_their_order() -> None:
    old, mode = State("file", 0o600, "old"), State("dir", 0o755)
    before = {"d": mode, "d/x": old, "e": ABSENT_STATE, "e/x": ABSENT_STATE, "n": ABSENT_STATE}
    outlook = foresee(
        before,
        (
            Deed(number=0, kind="put", path="d/x", hash="new"),
            Deed(number=1, kind="move", path="d", target="e"),
            Deed(number=2, kind="put", path="n", hash="n", mode=0o640),
            Deed(number=3, kind="remove", path="n"),
        ),
    )
    end = {**before, "d": ABSENT_STATE, "d/x": ABSENT_STATE, "e": mode}
    assert outlook.is_final({**end, "e/x": State("file", 0o600, "new")})
    assert not outlook.is_final({**end, "e/x": State("file", 0o644, "new")})
    assert not outlook.is_final(end)
    assert outlook.is_ours("d/x", State("file", 0o600, "new"))
    assert outlook.is_ours("n", State("file", 0o640, "n"))
    assert not outlook.is_ours("n", State("file", 0o640, "other"))
    assert not outlook.is_ours("e", State("link", target=b"away"))


@pytest.mark.rules("A5.12")
@pytest.mark.parametrize(
    ("deed", "end"),
    [
        (Deed(number=0, kind="dir", path="new"), "new"),
        (Deed(number=0, kind="dir", path="d"), "d"),
        (Deed(number=0, kind="there", path="untold"), "d"),
        (Deed(number=0, kind="there", path="d"), "d"),
    ],
)
def test_a_folder_that_is_made_or_stands_already_is_there_at_the_end(deed: Deed, end: str) -> None:
    before = {"new": ABSENT_STATE, "d": State("dir", 0o755), "x": ABSENT_STATE}
    outlook = foresee(before, (deed,))
    assert outlook.is_final({**before, end: State("dir", 0o700)})
    assert outlook.is_final(before) is (end == "d")


@pytest.mark.rules("A5.12")
@pytest.mark.parametrize(
    "last",
    [
        Deed(number=1, kind="put", path="x", hash="new", expect="old"),
        Deed(number=1, kind="put", path="x/in", hash="new"),
        Deed(number=1, kind="put", path="untold", hash="new"),
        Deed(number=1, kind="remove", path="none"),
        Deed(number=1, kind="move", path="none", target="new"),
        Deed(number=1, kind="move", path="x", target="d"),
        Deed(number=1, kind="dir", path="x"),
        Deed(number=1, kind="dir", path="d/untold"),
        Deed(number=1, kind="there", path="x"),
        Deed(number=1, kind="put", path="d", hash="new"),
    ],
)
def test_a_batch_whose_last_edit_cannot_be_done_never_comes_to_its_end(last: Deed) -> None:
    before = {"x": State("file", 0o600, "old"), "none": ABSENT_STATE, "d": State("dir", 0o755)}
    first = Deed(number=0, kind="put", path="x", hash="new")
    assert foresee(before, (first,)).is_final({**before, "x": State("file", 0o600, "new")})
    outlook = foresee(before, (first, last))
    assert not outlook.works
    assert not outlook.is_final(outlook.final)
