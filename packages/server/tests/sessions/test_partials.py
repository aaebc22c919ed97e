"""What a reader is told that comes in the middle of something."""

import pytest

from towline_protocol import (
    CallId,
    Envelope,
    Event,
    Partial,
    SessionId,
    ToolEnded,
    ToolOutputDelta,
    ToolProgress,
    TurnCompleted,
    Usage,
)
from towline_server.sessions.partials import Partials

CALL = CallId("call_1")
OTHER = CallId("call_2")


def stored(event: Event) -> Envelope:
    return Envelope(seq=1, session=SessionId("ses_1"), time="now", event=event)


@pytest.mark.rules("C1.6")
def test_a_late_reader_is_told_how_far_each_running_call_is() -> None:
    partials = Partials()
    partials.grow(ToolOutputDelta(call=CALL, at=0, text="out"))
    partials.grow(ToolProgress(call=CALL, text="begun"))
    partials.grow(ToolProgress(call=CALL, text="half", fraction=0.5))
    partials.grow(ToolProgress(call=OTHER, text="soon"))
    assert partials.frames() == (
        Partial(call=CALL, at=0, output="out", progress="half", fraction=0.5),
        Partial(call=OTHER, progress="soon"),
    )
    partials.take(stored(ToolEnded(call=CALL, status="completed", content=())))
    assert partials.frames() == (Partial(call=OTHER, progress="soon"),)
    partials.take(stored(TurnCompleted(stop_reason="end_turn", usage=Usage())))
    assert partials.frames() == ()
