"""Ids, times and the permission digest."""

import hashlib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from towline_protocol import format_time, mint_id, parse_time, permission_digest

# The years 1970 to 9999, in milliseconds.
_times = st.integers(0, 253_402_300_799_999)
_entropy = st.binary(min_size=16, max_size=16)
_digits = st.lists(st.integers(0, 31), min_size=16, max_size=16).map(bytes)


@pytest.mark.rules("C1.1")
@given(time_ms=_times, entropy=_entropy)
def test_an_id_is_its_prefix_and_26_characters(time_ms: int, entropy: bytes) -> None:
    assert re.fullmatch("ses_[0-9a-hjkmnp-tv-z]{26}", mint_id("ses", time_ms, entropy))


@pytest.mark.rules("C1.1")
@given(one=st.tuples(_times, _digits), two=st.tuples(_times, _digits))
def test_ids_sort_by_time_and_then_by_entropy(
    one: tuple[int, bytes], two: tuple[int, bytes]
) -> None:
    assert (mint_id("msg", *one) < mint_id("msg", *two)) == (one < two)
    assert (mint_id("msg", *one) == mint_id("msg", *two)) == (one == two)


@given(time_ms=_times)
def test_times_come_back_as_they_went(time_ms: int) -> None:
    text = format_time(time_ms)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", text)
    assert parse_time(text) == time_ms


@given(one=_times, two=_times)
def test_times_sort_as_text(one: int, two: int) -> None:
    assert (format_time(one) < format_time(two)) == (one < two)


def test_a_time_is_utc_with_milliseconds() -> None:
    assert format_time(0) == "1970-01-01T00:00:00.000Z"
    assert format_time(1_769_850_300_250) == "2026-01-31T09:05:00.250Z"
    assert parse_time("2026-01-31T10:05:00.25+01:00") == 1_769_850_300_250


@pytest.mark.parametrize("text", ["", "soon", "2026-13-01T00:00:00Z"])
def test_what_is_no_time_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"isoformat|month"):
        parse_time(text)


def _digest(
    permission: str = "prm_1",
    tool: str = "run",
    arguments: str = "{}",
    cwd: str = "/home",
    base_hashes: tuple[str, ...] = ("aa",),
    options: tuple[str, ...] = ("allow_once", "deny"),
) -> str:
    return permission_digest(
        permission=permission,
        tool=tool,
        arguments=arguments,
        cwd=cwd,
        base_hashes=base_hashes,
        options=options,
    )


@pytest.mark.rules("C5.11", "A5.61")
def test_the_digest_is_sha_256_over_each_part_with_its_length() -> None:
    parts = ("prm_1", "run", "{}", "/home", "aa", "allow_once", "deny")
    whole = b"".join(b"%d:%s" % (len(part), part.encode()) for part in parts)
    assert _digest() == hashlib.sha256(whole).hexdigest()


@pytest.mark.rules("C5.11")
@pytest.mark.parametrize(
    "other",
    [
        _digest(permission="prm_2"),
        _digest(tool="ran"),
        _digest(arguments="{ }"),
        _digest(cwd="/"),
        _digest(base_hashes=()),
        _digest(base_hashes=("ab",)),
        _digest(options=("deny", "allow_once")),
        _digest(options=("allow_once",)),
        _digest(tool="run{", arguments="}"),
    ],
)
def test_every_part_of_what_is_approved_changes_the_digest(other: str) -> None:
    assert other != _digest()


@given(words=st.text(st.characters(exclude_categories=["Cs"]), min_size=1), data=st.data())
def test_no_character_can_move_from_one_part_to_the_next(words: str, data: st.DataObject) -> None:
    cut = data.draw(st.integers(1, len(words)))
    assert _digest(tool=words[:cut], arguments=words[cut:]) != _digest(tool="", arguments=words)
