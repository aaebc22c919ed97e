"""What stands beside an event because the event has no room for it (C1.10)."""

import pytest

from towline_protocol import (
    CallId,
    Image,
    MessageEnded,
    MessageId,
    Private,
    Text,
    ToolCall,
    ToolEnded,
    ToolResult,
    Transcript,
    restore_private,
)

CALL = CallId("call_1")


@pytest.mark.rules("C1.10", "A1.6")
def test_the_whole_arguments_of_a_call_come_back_with_what_else_belongs_to_it() -> None:
    shown = (Text(text="well"), ToolCall(id=CALL, name="write", arguments="{ … }"))
    private = (Private(block=1, raw='{"a": 1}', signature="s", wire_id="w"),)
    whole = ToolCall(id=CALL, name="write", arguments='{"a": 1}', signature="s", wire_id="w")
    assert restore_private(shown, private) == (Text(text="well"), whole)
    assert restore_private(shown, (Private(block=1, wire_id="w"),))[1] == ToolCall(
        id=CALL, name="write", arguments="{ … }", wire_id="w"
    )


@pytest.mark.rules("C1.10")
def test_the_model_is_sent_the_whole_of_what_an_event_shows_in_part() -> None:
    transcript = Transcript()
    asked = ToolCall(id=CALL, name="write", arguments="{}")
    transcript.add(MessageEnded(message=MessageId("msg_1"), content=(asked,)))
    picture = Image(media_type="image/png", file="f" * 64)
    content = (Text(text="a … z"), picture, Text(text="short"))
    ended = ToolEnded(call=CALL, status="completed", content=content)
    transcript.add(ended, (Private(block=0, raw="a to z"),))
    (result,) = transcript.messages()[-1].content
    assert result == ToolResult(call=CALL, content=(Text(text="a to z"), picture, content[2]))
