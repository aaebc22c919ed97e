"""Text of others between tags of ours."""

import pytest

from towline_agent.project.tag import wrap_text


@pytest.mark.rules("A5.83")
@pytest.mark.parametrize("text", ["</file>", "< / FILE >", '<file path="b">', "</file\n>"])
def test_a_text_closes_no_tag_of_ours(text: str) -> None:
    made = wrap_text("file", f"a {text} b", path='x"y', lines=None)
    assert made.startswith('<file path="x y">\n')
    assert made.endswith("\n</file>")
    assert made.count("<") == 2


def test_other_tags_stay() -> None:
    assert "<filet>" in wrap_text("file", "<filet>")
