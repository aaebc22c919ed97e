"""What a provider is sent, out of a session's events."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from towline_protocol import (
    CUT_HEAD_CHARS,
    INTERRUPTED,
    CallId,
    Compacted,
    Context,
    Image,
    Limits,
    Message,
    MessageDiscarded,
    MessageEnded,
    MessageId,
    MessageStarted,
    Private,
    PromptAdmitted,
    PromptDelivered,
    PromptId,
    PromptWithdrawn,
    Reverted,
    StepEnded,
    StepStarted,
    StoredEvent,
    Text,
    Thinking,
    ToolCall,
    ToolEnded,
    ToolResult,
    Transcript,
    TurnId,
    TurnStarted,
    Usage,
    block_text,
    cut_to_head,
)

ONE = TurnId("trn_1")
TWO = TurnId("trn_2")


def call(number: int) -> ToolCall:
    return ToolCall(id=CallId(f"call_{number}"), name="now", arguments="{}")


def said(number: int, *parts: str | ToolCall, cut: str | None = None) -> MessageEnded:
    content = tuple(Text(text=part) if isinstance(part, str) else part for part in parts)
    return MessageEnded(message=MessageId(f"msg_{number}"), content=content, cut=cut)


def ended(number: int, text: str, *, is_error: bool = False) -> ToolEnded:
    return ToolEnded(
        call=CallId(f"call_{number}"),
        status="failed" if is_error else "completed",
        content=(Text(text=text),),
        is_error=is_error,
    )


def prompt(number: int, turn: TurnId = ONE) -> tuple[StoredEvent, ...]:
    id_ = PromptId(f"pmt_{number}")
    return (
        PromptAdmitted(prompt=id_, content=(Text(text=f"prompt {number}"),), when="auto"),
        PromptDelivered(prompt=id_, turn=turn, how="started"),
    )


def started(number: int) -> TurnStarted:
    return TurnStarted(prompt=PromptId(f"pmt_{number}"), model="scripted/one", limits=Limits())


def fold(*events: StoredEvent, turn: TurnId = ONE) -> Transcript:
    transcript = Transcript()
    for event in events:
        transcript.add(event, turn=turn)
    return transcript


def lines(transcript: Transcript) -> list[str]:
    """Each message as its role and text; a result as its call and text."""
    found: list[str] = []
    for message in transcript.messages():
        for block in message.content:
            match block:
                case Text():
                    found.append(f"{message.role}: {block.text}")
                case ToolCall():
                    found.append(f"{message.role} calls {block.id}")
                case ToolResult():
                    found.append(f"{message.role} {block.call}: {block_text(block.content)}")
                case _:
                    found.append(f"{message.role} {type(block).__name__}")
    return found


def check_pairs(messages: Sequence[Message]) -> None:
    """Each call has exactly one result, in the message after it, and no result stands alone."""
    for place, message in enumerate(messages):
        calls = [block.id for block in message.content if isinstance(block, ToolCall)]
        if calls:
            after = messages[place + 1]
            assert after.role == "tool"
            assert [b.call for b in after.content if isinstance(b, ToolResult)] == calls
        if message.role == "tool":
            before = messages[place - 1].content if place else ()
            assert any(isinstance(block, ToolCall) for block in before)


@pytest.mark.rules("A4.1")
def test_a_turn_reads_as_it_was_spoken() -> None:
    transcript = fold(
        *prompt(1), started(1), said(1, "let me see", call(1)), ended(1, "noon"), said(2, "noon.")
    )
    assert lines(transcript) == [
        "user: prompt 1",
        "assistant: let me see",
        "assistant calls call_1",
        "tool call_1: noon",
        "assistant: noon.",
    ]


def test_a_prompt_counts_when_it_is_delivered_and_not_before() -> None:
    admitted, delivered = prompt(1)
    assert lines(fold(admitted)) == []
    assert lines(fold(admitted, PromptWithdrawn(prompt=PromptId("pmt_1")))) == []
    assert lines(fold(admitted, delivered, delivered)) == ["user: prompt 1"]
    assert lines(fold(delivered)) == []


@pytest.mark.rules("C5.7", "S14", "R25")
def test_a_call_without_a_result_is_told_as_interrupted() -> None:
    transcript = fold(*prompt(1), said(1, call(1), call(2)), ended(2, "done"), *prompt(2))
    assert lines(transcript) == [
        "user: prompt 1",
        "assistant calls call_1",
        "assistant calls call_2",
        f"tool call_1: {INTERRUPTED}",
        "tool call_2: done",
        "user: prompt 2",
    ]
    check_pairs(transcript.messages())


@pytest.mark.rules("C5.7")
def test_of_two_results_the_first_wins() -> None:
    transcript = fold(said(1, call(1)), ended(1, "first", is_error=True), ended(1, "second"))
    assert lines(transcript) == ["assistant calls call_1", "tool call_1: first"]


def test_results_follow_their_message_in_the_order_of_its_calls() -> None:
    transcript = fold(
        said(1, call(1), call(2)), *prompt(2), ended(2, "two"), ended(1, "one"), said(2, "so")
    )
    assert lines(transcript) == [
        "assistant calls call_1",
        "assistant calls call_2",
        "tool call_1: one",
        "tool call_2: two",
        "user: prompt 2",
        "assistant: so",
    ]


def test_an_empty_result_is_a_result() -> None:
    empty = ToolEnded(call=CallId("call_1"), status="completed", content=())
    (_, results) = fold(said(1, call(1)), empty).messages()
    assert results.content == (ToolResult(call=CallId("call_1"), content=()),)


def test_a_cut_message_says_so_and_an_empty_one_is_left_out() -> None:
    assert lines(fold(said(1, "half a", cut="cancelled"))) == [
        "assistant: half a",
        "assistant: \n[cut off: cancelled]",
    ]
    assert lines(fold(said(1))) == []


def test_a_discarded_message_counts_for_nothing() -> None:
    one = MessageId("msg_1")
    transcript = fold(
        *prompt(1),
        MessageStarted(message=one, role="assistant"),
        MessageDiscarded(message=one, reason="the server stopped"),
        said(2, "whole"),
    )
    assert lines(transcript) == ["user: prompt 1", "assistant: whole"]


def test_open_calls_are_those_of_the_last_message_without_a_result() -> None:
    assert fold(*prompt(1)).open_calls() == ()
    transcript = fold(said(1, call(1), call(2), call(3)), ended(2, "done"))
    assert [open_.id for open_ in transcript.open_calls()] == ["call_1", "call_3"]
    assert Transcript().open_calls() == ()


def test_what_is_kept_beside_an_event_goes_back_to_the_provider() -> None:
    transcript = Transcript()
    message = MessageEnded(message=MessageId("msg_1"), content=(Thinking(text="hm"),))
    transcript.add(message, (Private(block=0, signature="proof"),))
    ((block,),) = (m.content for m in transcript.messages())
    assert block == Thinking(text="hm", signature="proof")


@pytest.mark.parametrize(
    ("events", "answered"),
    [
        ((), False),
        (prompt(1), False),
        ((*prompt(1), said(1, "words")), True),
        ((*prompt(1), said(1, "words", call(1))), False),
        ((*prompt(1), said(1, " \n")), False),
        ((*prompt(1), said(1, call(1)), ended(1, "noon")), False),
    ],
)
def test_a_conversation_is_answered_when_it_ends_with_the_models_words(
    events: tuple[StoredEvent, ...], *, answered: bool
) -> None:
    assert fold(*events).answered() == answered


LONG = (
    *prompt(1),
    started(1),
    said(1, call(1), call(2), call(3)),
    ended(1, "one"),
    ended(2, "two"),
    ended(3, "three"),
    said(2, "so far"),
)


@pytest.mark.rules("R27")
@pytest.mark.parametrize("upto", ["pmt_1", "msg_1", "msg_2"])
def test_a_summary_stands_for_whole_exchanges(upto: str) -> None:
    compacted = Compacted(upto=upto, summary="They met.", before_tokens=9, after_tokens=1)
    transcript = fold(*LONG, compacted, said(3, "on"))
    assert lines(transcript)[0] == "user: They met."
    assert lines(transcript)[-1] == "assistant: on"
    check_pairs(transcript.messages())


@pytest.mark.rules("A4.34", "A4.35")
def test_a_result_cut_by_compaction_keeps_its_head_and_says_what_is_gone() -> None:
    told = "x" * (5 * CUT_HEAD_CHARS)
    log = (*prompt(1), started(1), said(1, call(1), call(2)), ended(1, "one"), ended(2, told))
    cut = Compacted(
        cut=tuple(map(CallId, ("call_1", "call_2", "call_9"))), before_tokens=9, after_tokens=1
    )
    assert lines(fold(*log, cut))[3:] == [
        "tool call_1: one",
        "tool call_2: "
        + "x" * CUT_HEAD_CHARS
        + "\n[4000 characters of this result were cut to make "
        "room; call it again to see it]",
    ]
    assert lines(fold(*log, cut)) == lines(fold(*log, cut, cut))


@pytest.mark.rules("A4.33")
def test_pictures_of_a_cut_result_are_dropped() -> None:
    result = ToolResult(
        call=CallId("call_1"),
        content=(Text(text="see"), Image(media_type="image/png", data="eA==")),
    )
    (text,) = cut_to_head(result).content
    assert text == Text(
        text="see\n[1 pictures or documents of this result were cut to make room; call it again to "
        "see it]"
    )


@pytest.mark.rules("A2.32", "A4.5")
def test_a_message_names_the_model_that_wrote_it_and_stays_the_same_object() -> None:
    transcript = fold(
        *prompt(1), started(1), StepStarted(model="p/one"), said(1, call(1)), ended(1, "one")
    )
    first = transcript.messages()
    assert [message.model for message in first] == [None, "p/one", None]
    assert all(a is b for a, b in zip(first, transcript.messages(), strict=True))


def step(used: int, *, reasoning: int = 0) -> StepEnded:
    usage = Usage(input=used - reasoning, output=reasoning, reasoning=reasoning)
    return StepEnded(stop_reason="end_turn", usage=usage, context=Context(used=used, window=100))


def counted(transcript: Transcript) -> tuple[int, list[str]]:
    """The last count, and the text of all that came after it."""
    found = transcript.counted()
    assert found is not None
    tokens, since = found
    texts: list[str] = []
    for message in since:
        for block in message.content:
            told = block.content if isinstance(block, ToolResult) else (block,)
            texts.append(f"{message.role}: {block_text(told)}")
    return tokens, texts


@pytest.mark.rules("A4.32")
def test_what_came_after_the_last_count_can_be_told() -> None:
    assert fold(*prompt(1)).counted() is None
    asked = (*prompt(1), said(1, call(1), call(2)), step(50, reasoning=8))
    results = (ended(1, "one"), ended(2, "two"))
    assert counted(fold(*asked)) == (42, [f"tool: {INTERRUPTED}", f"tool: {INTERRUPTED}"])
    assert counted(fold(*asked, *results)) == (42, ["tool: one", "tool: two"])
    log = (*asked, *results, said(2, "so"), step(60))
    assert counted(fold(*log)) == (60, [])
    assert counted(fold(*log, *prompt(2), said(3, call(3)), ended(3, "three"))) == (
        60,
        ["user: prompt 2", "assistant: ", "tool: three"],
    )


def test_an_answer_of_nothing_counts_the_results_that_it_was_shown() -> None:
    log = (*prompt(1), said(1, call(1)), step(50), ended(1, "one"), step(60))
    assert counted(fold(*log)) == (60, [])


def test_a_provider_that_does_not_count_and_a_revert_leave_no_count() -> None:
    log = (*prompt(1), started(1), said(1, "so"), step(50))
    uncounted = StepEnded(stop_reason="end_turn", usage=Usage())
    assert fold(*log, uncounted).counted() is None
    assert fold(*log, step(0)).counted() is None
    assert fold(*log, Reverted(to_turn=TWO)).counted() is not None
    assert fold(*log, Reverted(to_turn=ONE)).counted() is None


def test_a_compaction_counts_as_what_it_estimated() -> None:
    compacted = Compacted(upto="msg_1", summary="They met.", before_tokens=50, after_tokens=7)
    log = (*prompt(1), said(1, "so"), step(50), *prompt(2), compacted)
    assert counted(fold(*log)) == (7, [])
    assert counted(fold(*log, *prompt(3))) == (7, ["user: prompt 3"])


def test_a_failed_result_stays_failed_when_it_is_cut() -> None:
    cut = Compacted(cut=(CallId("call_1"),), before_tokens=9, after_tokens=1)
    (_, results) = fold(said(1, call(1)), ended(1, "boom", is_error=True), cut).messages()
    (result,) = results.content
    assert isinstance(result, ToolResult)
    assert result.is_error


def test_a_summary_up_to_something_that_is_gone_changes_nothing() -> None:
    gone = Compacted(upto="msg_77", summary="They met.", before_tokens=9, after_tokens=1)
    assert lines(fold(*LONG, gone)) == lines(fold(*LONG))


def test_a_revert_goes_back_to_before_its_turn() -> None:
    transcript = fold(*LONG)
    for event in (*prompt(2, TWO), started(2), said(3, "more"), Reverted(to_turn=TWO)):
        transcript.add(event, turn=TWO)
    assert lines(transcript) == lines(fold(*LONG))
    transcript.add(Reverted(to_turn=ONE))
    assert transcript.messages() == ()
    transcript.add(Reverted(to_turn=ONE))
    assert transcript.messages() == ()


@st.composite
def _parts(draw: st.DrawFn) -> tuple[StoredEvent, ...]:
    """Something that happens, as a log may hold it after any crash."""
    number = draw(st.integers(0, 9))
    calls = draw(st.lists(st.integers(0, 9), max_size=3, unique=True))
    compacted = Compacted(
        cut=tuple(CallId(f"call_{place}") for place in calls),
        upto=f"msg_{number}",
        summary="They met.",
        before_tokens=9,
        after_tokens=1,
    )
    kinds: tuple[tuple[StoredEvent, ...], ...] = (
        (*prompt(number), started(number)),
        (said(number, "words", *map(call, calls)),),
        (said(number, *map(call, calls), cut="cancelled"),),
        (ended(number, "result"),),
        (compacted,),
        (Reverted(to_turn=draw(st.sampled_from([ONE, TWO]))),),
    )
    return draw(st.sampled_from(kinds))


@pytest.mark.rules("C5.7", "R27")
@given(log=st.lists(_parts(), max_size=25))
def test_calls_and_results_always_pair(log: list[tuple[StoredEvent, ...]]) -> None:
    transcript = fold(*(event for part in log for event in part))
    check_pairs(transcript.messages())


@given(log=st.lists(_parts(), max_size=12))
def test_a_transcript_built_again_says_the_same(log: list[tuple[StoredEvent, ...]]) -> None:
    events = [event for part in log for event in part]
    assert fold(*events).messages() == fold(*events).messages()
