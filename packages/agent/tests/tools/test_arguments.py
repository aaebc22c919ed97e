"""The strict reading of a call's arguments."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from towline_agent.errors import ToolInputInvalid
from towline_agent.tools.arguments import NESTING_MAX, parse_arguments

LEAVES = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
)
WORDS = st.text(max_size=5)
VALUES = st.recursive(
    LEAVES | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.rules("A4.13")
@given(st.dictionaries(WORDS, VALUES, max_size=4))
def test_any_object_is_read_as_it_was_written(value: dict[str, object]) -> None:
    assert parse_arguments(json.dumps(value)) == value


NUMBERS = st.sampled_from(["1", "-0", "1.0", "1e3", "0.10", "9" * 25, "1e999", "NaN", "01"])
TEXTS = st.sampled_from(
    ['"a"', '"b c"', '"a "', '"\\u0061"', '"\\ud83d"', '"\\n"', '"\t"', '"\u2028"', '"\ud83d"']
)


def _object(pairs: list[tuple[str, str]], joint: str) -> str:
    return f"{{{joint.join(f'{key}:{value}' for key, value in pairs)}}}"


def _objects(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """The text of an object whose keys may stand there twice."""
    pairs = st.lists(st.tuples(TEXTS, inner), max_size=3)
    return st.builds(_object, pairs, st.sampled_from([",", ", "]))


@pytest.mark.rules("A4.13", "R17")
@given(
    _objects(
        st.recursive(
            NUMBERS | TEXTS | st.sampled_from(["null", "true"]),
            lambda inner: _objects(inner) | st.builds("[{} , {}]".format, inner, inner),
            max_leaves=4,
        )
    )
)
def test_a_short_text_is_read_as_strictly_as_a_long_one(text: str) -> None:
    assert _outcome(text) == _outcome(text + " " * 300)


def _outcome(text: str) -> str:
    try:
        return repr(parse_arguments(text))
    except ToolInputInvalid as error:
        return error.message.partition(" at character")[0]


@pytest.mark.rules("R19")
@pytest.mark.parametrize("text", ["", "  \n", "null", " null ", "{}"])
def test_nothing_means_no_arguments(text: str) -> None:
    assert parse_arguments(text) == {}


@pytest.mark.rules("A4.13", "R17")
@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"a": 1', "at character"),
        ('{"date":"2026-06-11"}{"date":"2026-06-12"}', "Extra data at character 21"),
        ('{"a": 1} and more', "Extra data"),
        ("{'a': 1}", "at character 1"),
        ('{"a": 1,}', "at character"),
        ('{"a": NaN}', "NaN is no JSON number"),
        ('{"a": -Infinity}', "-Infinity is no JSON number"),
        ('{"a": 1e999}', "1e999 is too large"),
        ('{"a": 1, "a": 2}', "the key 'a' stands there twice"),
        ('{"b": {"a": 1, "a": 1}}', "twice"),
        ('{"a": "\\ud83d"}', "half of a character"),
        ('{"\\ude00": 1}', "half of a character"),
        ('{"a": "line\nend"}', "Invalid control character"),
        ("[1]", "a JSON object is expected, an array came"),
        ('"{\\"a\\": 1}"', "a JSON object is expected, a string came"),
        ("3", "a JSON object is expected, a number came"),
        ("true", "a JSON object is expected, a boolean came"),
        ('{"a": ' + "9" * 5000 + "}", "a number that is too long"),
    ],
)
def test_what_is_no_plain_object_is_refused_and_never_mended(text: str, told: str) -> None:
    with pytest.raises(ToolInputInvalid) as refused:
        parse_arguments(text)
    assert told in refused.value.message
    assert "Send one JSON object" in refused.value.message
    assert len(refused.value.message) < 300


@pytest.mark.rules("A4.13")
@pytest.mark.parametrize("depth", [NESTING_MAX, 5000, 200_000])
def test_endless_nesting_is_refused(depth: int) -> None:
    with pytest.raises(ToolInputInvalid, match="nested"):
        parse_arguments('{"a":' + "[" * depth + "]" * depth + "}")


def test_deep_but_bounded_nesting_is_read() -> None:
    depth = NESTING_MAX - 2
    assert parse_arguments('{"a":' + "[" * depth + "]" * depth + "}")["a"] is not None


def test_a_joined_pair_is_one_character() -> None:
    assert parse_arguments('{"a": "\\ud83d\\ude00"}') == {"a": "\N{GRINNING FACE}"}
