"""A conversation as text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from towline_agent.context.condense import condense
from towline_protocol import (
    CallId,
    File,
    Image,
    Message,
    Opaque,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)

CALL = CallId("call_1")

TALK = (
    Message("system", (Text(text="Be kind."),)),
    Message("user", (Text(text="Look."), Image(media_type="image/png", data="AAAA"))),
    Message(
        "assistant",
        (
            Thinking(text="hm", signature="proof"),
            Opaque(dialect="x", raw={"a": 1}),
            Text(text=""),
            ToolCall(id=CALL, name="look", arguments='{"at": "a"}', signature="proof"),
        ),
    ),
    Message("tool", (ToolResult(call=CALL, content=(Text(text="gone"),), is_error=True),)),
    Message("user", (File(name="a.pdf", media_type="application/pdf", data="AAAA"),)),
)


@pytest.mark.rules("A4.36")
def test_a_conversation_is_told_with_who_says_what() -> None:
    assert condense(TALK, 1_000) == (
        "<conversation>\n"
        "System: Be kind.\n\n"
        "Person: Look.\n\n"
        "Person: [a picture, image/png]\n\n"
        'Model calls look: {"at": "a"}\n\n'
        "Error: gone\n\n"
        "Person: [a.pdf, application/pdf]\n"
        "</conversation>"
    )


@pytest.mark.rules("A4.36")
def test_long_parts_lose_their_middles_before_short_ones_lose_a_word() -> None:
    long = Message("user", (Text(text="a" * 20_000 + "z" * 20_000),))
    short = Message("assistant", (Text(text="I " + "see " * 100),))
    text = condense((long, short, long), 6_000)
    assert len(text) <= 6_000
    assert text.count("characters left out") == 2
    assert "see " * 100 in text
    assert text.startswith("<conversation>\nPerson: aaa")
    assert text.endswith("zzz\n</conversation>")


def test_too_many_parts_lose_those_in_the_middle() -> None:
    talk = tuple(Message("user", (Text(text=f"number {n}"),)) for n in range(1_000))
    text = condense(talk, 1_000)
    assert len(text) <= 1_000
    assert "number 0\n" in text
    assert "number 999\n" in text
    assert text.count("characters left out") == 1


@given(
    sizes=st.lists(st.integers(0, 20_000), max_size=12),
    chars=st.integers(1_000, 50_000),
)
def test_it_never_has_more_characters_than_it_may(sizes: list[int], chars: int) -> None:
    talk = tuple(Message("user", (Text(text="x" * size),)) for size in sizes)
    assert len(condense(talk, chars)) <= chars
