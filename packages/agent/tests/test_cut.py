"""Cutting long results of calls down to their heads."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from towline_agent.context.assemble import estimate_tokens
from towline_agent.context.cut import Fill, cut_entries, plan_cut, saved_by, should_compact
from towline_protocol import (
    CUT_HEAD_CHARS,
    CallId,
    Compacted,
    Image,
    Message,
    ResultBlock,
    Text,
    ToolCall,
    ToolResult,
    Transcript,
    block_text,
)

PICTURE = Image(media_type="image/png", data="AAAA")


def talk(*results: int | tuple[ResultBlock, ...]) -> Transcript:
    """A prompt, and a step with one call for each result; a number is that many characters."""
    messages = [Message("user", (Text(text="go"),))]
    for number, result in enumerate(results):
        content = (Text(text="x" * result),) if isinstance(result, int) else result
        id_ = CallId(f"call_{number}")
        messages.append(Message("assistant", (ToolCall(id=id_, name="look", arguments="{}"),)))
        messages.append(Message("tool", (ToolResult(call=id_, content=content),)))
    return Transcript(tuple(messages))


def fill(used: int, limit: int = 10_000, rate: float = 1.0) -> Fill:
    return Fill(used, limit, 0, rate)


@pytest.mark.rules("A4.32")
def test_compaction_starts_at_three_quarters_of_a_known_window() -> None:
    assert should_compact(7_500, 10_000)
    assert not should_compact(7_499, 10_000)
    assert not should_compact(10**9, None)


@pytest.mark.rules("A4.33")
def test_long_results_are_cut_oldest_first_until_half_of_the_window() -> None:
    entries = talk(8_000, 3_000, 8_000, 8_000, 8_000, 8_000, 8_000, 8_000).entries()
    saved = (8_000 - CUT_HEAD_CHARS) // 4 - 30
    assert plan_cut(entries, fill(5_000)) == ()
    assert plan_cut(entries, fill(5_001)) == ("call_0",)
    assert plan_cut(entries, fill(5_000 + saved)) == ("call_0",)
    assert plan_cut(entries, fill(5_000 + saved + 100)) == ("call_0", "call_2")


@pytest.mark.rules("A4.33")
def test_the_four_newest_results_and_short_ones_are_never_cut() -> None:
    assert plan_cut(talk(9_000, 9_000, 9_000, 9_000).entries(), fill(99_000)) == ()
    assert plan_cut(talk(4_000, 4_001, 9, 9, 9, 9).entries(), fill(99_000)) == ("call_1",)


@pytest.mark.rules("A4.33")
def test_a_picture_makes_a_result_worth_cutting() -> None:
    entries = talk((Text(text="see"), PICTURE), 9, 9, 9, 9).entries()
    assert plan_cut(entries, fill(8_000)) == ("call_0",)
    assert saved_by(entries, (CallId("call_0"),)) > 1_400


def test_estimates_count_as_much_as_the_provider_counts() -> None:
    entries = talk(*[8_000] * 8).entries()
    assert len(plan_cut(entries, fill(8_000, rate=1.0))) == 2
    assert len(plan_cut(entries, fill(8_000, rate=3.0))) == 1
    assert len(plan_cut(entries, fill(8_000, rate=0.5))) == 4


@pytest.mark.rules("A4.34", "A4.35", "D6")
@given(sizes=st.lists(st.integers(0, 12_000), max_size=9), used=st.integers(1, 20_000))
def test_what_is_planned_is_what_the_transcript_becomes(sizes: list[int], used: int) -> None:
    transcript = talk(*sizes)
    before = transcript.entries()
    cut = plan_cut(before, fill(used))
    transcript.add(Compacted(cut=cut, before_tokens=used, after_tokens=1))
    after = transcript.entries()
    assert cut_entries(before, cut) == after
    shorter = _tokens(before) - _tokens(after)
    assert abs(shorter - saved_by(before, cut)) <= len(cut)
    assert not cut or shorter > 0
    assert not set(cut) & set(plan_cut(after, fill(used)))
    for _, messages in after[:-4]:
        for block in messages[-1].content:
            if isinstance(block, ToolResult) and block.call in cut:
                assert block_text(block.content).startswith("x" * CUT_HEAD_CHARS + "\n[")


def _tokens(entries: tuple[tuple[str, tuple[Message, ...]], ...]) -> int:
    return sum(estimate_tokens((message,)) for _, messages in entries for message in messages)
