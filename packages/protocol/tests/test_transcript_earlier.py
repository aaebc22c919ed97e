"""A transcript that begins with messages from elsewhere, whose calls and results may be odd."""

import pytest

from towline_protocol import (
    INTERRUPTED,
    CallId,
    Compacted,
    Message,
    MessageEnded,
    MessageId,
    PromptAdmitted,
    PromptDelivered,
    PromptId,
    Text,
    ToolCall,
    ToolResult,
    Transcript,
    TurnId,
    block_text,
)

PROMPT = (
    PromptAdmitted(prompt=PromptId("pmt_1"), content=(Text(text="and now?"),), when="auto"),
    PromptDelivered(prompt=PromptId("pmt_1"), turn=TurnId("trn_1"), how="started"),
)


def call(number: int) -> ToolCall:
    return ToolCall(id=CallId(f"call_{number}"), name="now", arguments="{}")


def lines(transcript: Transcript) -> list[str]:
    """Each block with who said it; a result with its call."""
    found: list[str] = []
    for message in transcript.messages():
        for block in message.content:
            if isinstance(block, ToolCall):
                found.append(f"{message.role} calls {block.id}")
            elif isinstance(block, ToolResult):
                found.append(f"{message.role} {block.call}: {block_text(block.content)}")
            else:
                found.append(f"{message.role}: {block_text((block,))}")
    return found


def test_earlier_messages_stand_first_and_as_they_are() -> None:
    result = ToolResult(call=CallId("call_9"), content=())
    earlier = (Message("user", (Text(text="before"),)), Message("assistant", (call(9),)))
    transcript = Transcript((*earlier, Message("tool", (result,))))
    transcript.add(MessageEnded(message=MessageId("msg_1"), content=(Text(text="after"),)))
    *before, after = transcript.messages()
    assert tuple(before) == (*earlier, Message("tool", (result,)))
    assert after.content == (Text(text="after"),)


@pytest.mark.rules("R25")
def test_an_earlier_conversation_that_was_cut_in_a_call_takes_a_new_prompt() -> None:
    transcript = Transcript(
        (
            Message("user", (Text(text="before"),)),
            Message("assistant", (call(8), call(9))),
            Message("tool", (ToolResult(call=CallId("call_9"), content=(Text(text="nine"),)),)),
        )
    )
    for event in PROMPT:
        transcript.add(event)
    assert lines(transcript) == [
        "user: before",
        "assistant calls call_8",
        "assistant calls call_9",
        f"tool call_8: {INTERRUPTED}",
        "tool call_9: nine",
        "user: and now?",
    ]


def test_words_beside_an_earlier_result_are_kept_as_the_users() -> None:
    result = ToolResult(call=CallId("call_1"), content=())
    transcript = Transcript(
        (Message("assistant", (call(1),)), Message("tool", (result, Text(text="look"))))
    )
    assert lines(transcript) == ["assistant calls call_1", "tool call_1: ", "user: look"]


@pytest.mark.rules("A4.2", "R25")
def test_calls_of_an_earlier_conversation_that_share_an_id_keep_their_own_results() -> None:
    def asked(city: str) -> Message:
        arguments = f'{{"city": "{city}"}}'
        return Message("assistant", (ToolCall(id=CallId("0"), name="look", arguments=arguments),))

    def told(text: str) -> Message:
        return Message("tool", (ToolResult(call=CallId("0"), content=(Text(text=text),)),))

    messages = Transcript((asked("A"), told("a"), asked("B"), told("b"), asked("C"))).messages()
    calls = [block for m in messages for block in m.content if isinstance(block, ToolCall)]
    assert len({call.id for call in calls}) == 3
    results = [block for m in messages for block in m.content if isinstance(block, ToolResult)]
    assert [(r.call, block_text(r.content)) for r in results[:2]] == [
        (calls[0].id, "a"),
        (calls[1].id, "b"),
    ]
    assert results[2].is_error
    assert [call.wire_id for call in calls] == [None, "0", "0"]


@pytest.mark.rules("R27")
def test_messages_of_an_earlier_conversation_can_be_summed_up() -> None:
    transcript = Transcript(
        (
            Message("user", (Text(text="before"),)),
            Message("assistant", (call(9),)),
            Message("tool", (ToolResult(call=CallId("call_9"), content=()),)),
            Message("assistant", (Text(text="then"),)),
        )
    )
    for event in PROMPT:
        transcript.add(event)
    ids = [id_ for id_, _ in transcript.entries()]
    assert ids == ["earlier_0", "earlier_1", "earlier_2", "pmt_1"]
    transcript.add(Compacted(upto=ids[1], summary="They met.", before_tokens=9, after_tokens=1))
    assert lines(transcript) == ["user: They met.", "assistant: then", "user: and now?"]
    assert [id_ for id_, _ in transcript.entries()] == ["", "earlier_2", "pmt_1"]


@pytest.mark.rules("C5.7", "R25")
@pytest.mark.parametrize("role", ["user", "tool", "system"])
def test_a_call_that_the_model_did_not_write_is_none(role: str) -> None:
    forged = ToolCall(id=CallId("c"), name="f", arguments="{}")
    said = Text(text="Hi")
    result = ToolResult(call=CallId("c"), content=(Text(text="forged"),))
    own = ToolResult(call=CallId("c"), content=(Text(text="own"),))
    earlier = (
        Message(role, (said, forged)),  # type: ignore[arg-type]
        Message("tool", (result,)),
        Message(role, (forged,)),  # type: ignore[arg-type]
        Message("assistant", (forged,)),
        Message("tool", (result, own)),
    )
    first, called, answered = Transcript(earlier).messages()
    ((call,), (found,)) = called.content, answered.content
    assert isinstance(call, ToolCall)
    assert isinstance(found, ToolResult)
    assert (first.content, found.content, found.call) == ((said,), own.content, call.id)
