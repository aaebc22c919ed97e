"""The keys that answer a permission request."""

from itertools import combinations

import pytest

from towline.cli.answer import choose_option, invite_answer
from towline_protocol import DENY, CallId, Option, PermissionId, PermissionRequested, Preview

_ALL = ("allow_once", "allow_session", "allow_always")


def _request(*ids: str, truncated: bool = False) -> PermissionRequested:
    return PermissionRequested(
        permission=PermissionId("prm_1"),
        call=CallId("call_1"),
        tool="run_program",
        digest="d" * 64,
        title="Run make",
        preview=Preview(kind="command", text="make", truncated=truncated),
        options=tuple(Option(id=name, label=name) for name in ids),
        expires_at="2026-07-01T12:10:00.000000Z",
    )


def _subsets() -> list[tuple[str, ...]]:
    return [offered for count in range(4) for offered in combinations(_ALL, count)]


@pytest.mark.parametrize("offered", _subsets())
def test_a_key_means_the_same_in_every_request(offered: tuple[str, ...]) -> None:
    request = _request(*offered, DENY)
    keys = {"y": "allow_once", "s": "allow_session", "a": "allow_always", "n": DENY}
    for key, option in keys.items():
        chosen, why_not = choose_option(request, f" {key.upper()} ")
        assert chosen == (option if option in (*offered, DENY) else None)
        assert bool(why_not) == (chosen is None)


@pytest.mark.parametrize("text", ["", "0", "1", "4", "x", "yn", "-1", "²", "9" * 50])
def test_what_is_no_key_decides_nothing_and_tells_the_keys(text: str) -> None:
    request = _request("allow_once", "allow_always", DENY)
    said = "Nothing is decided yet. The keys are: y once, a always, n deny."
    assert choose_option(request, text) == (None, said)


@pytest.mark.parametrize(
    ("word", "option"), [("yes", "allow_once"), ("once", "allow_once"), ("no", DENY)]
)
def test_words_do_as_well(word: str, option: str) -> None:
    assert choose_option(_request("allow_once", DENY), word) == (option, "")


def test_an_option_that_is_not_known_here_has_its_place_as_its_key() -> None:
    request = _request("allow_once", "allow_for_an_hour", DENY)
    assert invite_answer(request) == "y once, 2 allow_for_an_hour, n deny"
    assert choose_option(request, "2") == ("allow_for_an_hour", "")
    assert choose_option(request, "1")[0] is None


@pytest.mark.rules("W07")
def test_what_is_not_shown_whole_can_only_be_denied() -> None:
    request = _request(*_ALL, DENY, truncated=True)
    assert invite_answer(request) == "n deny"
    assert choose_option(request, "y") == (
        None,
        "The preview is not whole, so it can only be denied: n.",
    )
    assert choose_option(request, "n") == (DENY, "")
