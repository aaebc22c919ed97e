"""The reducer under what a network does to a log: cuts, duplicates, partials."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from towline_protocol import (
    REDUCER_VERSION,
    CallId,
    Compacted,
    Delta,
    Envelope,
    Event,
    Frame,
    Gap,
    Hello,
    Limits,
    MessageDiscarded,
    MessageEnded,
    MessageId,
    MessageStarted,
    Notice,
    Partial,
    PermissionId,
    PermissionRequested,
    PermissionResolved,
    Preview,
    PromptAdmitted,
    PromptDelivered,
    PromptId,
    Reset,
    Reverted,
    SessionCreated,
    SessionId,
    SessionView,
    StepEnded,
    StepStarted,
    Text,
    TextDelta,
    ThinkingDelta,
    ToolCall,
    ToolCallDelta,
    ToolEnded,
    ToolOutputDelta,
    ToolProgress,
    ToolProposed,
    ToolStarted,
    TurnCompleted,
    TurnId,
    TurnResumed,
    TurnStarted,
    Unknown,
    Usage,
    Waiting,
    empty_view,
    format_time,
    reduce,
    reduce_all,
)

SESSION = SessionId("ses_1")
PIECES = ("a", "bc", "\N{GRINNING FACE}", "e\N{COMBINING ACUTE ACCENT}", "words " * 5)


class Log:
    """Writes what a session emits, in order."""

    def __init__(self) -> None:
        self.frames: list[Envelope] = []
        self.turn: TurnId | None = None
        self.count = 0
        self.seq = 0

    def stored(self, *events: Event) -> None:
        for event in events:
            self.seq += 1
            self._write(event, self.seq)

    def live(self, event: Delta) -> None:
        self._write(event, None)

    def next(self) -> int:
        self.count += 1
        return self.count

    def _write(self, event: Event, seq: int | None) -> None:
        time = format_time(1_769_850_000_000 + len(self.frames))
        self.frames.append(
            Envelope(seq=seq, session=SESSION, turn=self.turn, time=time, event=event)
        )


def _message(draw: st.DrawFn, log: Log, calls: list[CallId]) -> None:
    """One message of three blocks, its pieces mixed; now and then given up and begun again."""
    message = MessageId(f"msg_{log.next()}")
    log.stored(MessageStarted(message=message, role="assistant"))
    written = ["", "", ""]
    for _ in range(draw(st.integers(0, 6))):
        block, piece = draw(st.integers(0, 2)), draw(st.sampled_from(PIECES))
        kind = (ThinkingDelta, TextDelta, ToolCallDelta)[block]
        log.live(kind(message=message, block=block, at=len(written[block]), text=piece))
        written[block] += piece
    if draw(st.integers(0, 4)) == 0:
        log.stored(TurnResumed(attempt=1), MessageDiscarded(message=message, reason="crash"))
        return
    blocks = (
        Text(text="".join(written)),
        *(ToolCall(id=call, name="run", arguments="{}") for call in calls),
    )
    log.stored(MessageEnded(message=message, content=blocks))


def _calls(draw: st.DrawFn, log: Log, calls: list[CallId]) -> None:
    """Calls that run side by side."""
    written = dict.fromkeys(calls, 0)
    for call in calls:
        log.stored(
            ToolProposed(call=call, tool="run", arguments="{}", title="Run", effect="exec"),
            ToolStarted(call=call),
        )
    for _ in range(draw(st.integers(0, 6)) if calls else 0):
        call, piece = draw(st.sampled_from(calls)), draw(st.sampled_from(PIECES))
        piece *= draw(st.sampled_from([1, 1, 1, 2000]))
        log.live(ToolOutputDelta(call=call, at=written[call], text=piece))
        written[call] += len(piece)
    for call in calls:
        log.live(ToolProgress(call=call, text="soon", fraction=0.9))
        log.stored(ToolEnded(call=call, status="completed", content=(Text(text="ok"),)))


@st.composite
def logs(draw: st.DrawFn) -> list[Envelope]:
    """All that a session emits: stored events and deltas, of turns that are whole or cut short."""
    log = Log()
    log.stored(SessionCreated(agent="helper", model="scripted/one", mode="ask"))
    for number in range(draw(st.integers(1, 2))):
        prompt, turn = PromptId(f"pmt_{number}"), TurnId(f"trn_{number}")
        log.stored(PromptAdmitted(prompt=prompt, content=(Text(text="do"),), when="auto"))
        log.turn = turn
        log.stored(
            PromptDelivered(prompt=prompt, turn=turn, how="started"),
            TurnStarted(prompt=prompt, model="scripted/one", limits=Limits()),
        )
        for _ in range(draw(st.integers(0, 3))):
            calls = [CallId(f"call_{log.next()}") for _ in range(draw(st.integers(0, 2)))]
            log.stored(StepStarted(model="scripted/one"))
            _message(draw, log, calls)
            log.stored(StepEnded(stop_reason="tool_calls", usage=Usage(input=1), cost=0.5))
            _calls(draw, log, calls)
        if draw(st.booleans()):
            log.stored(Notice(code="n", message="m"), Waiting(until="later", reason="slot"))
        log.stored(TurnCompleted(stop_reason="end_turn", usage=Usage(input=1)))
        log.turn = None
        if draw(st.booleans()):
            log.stored(
                Reverted(to_turn=turn), Compacted(before_tokens=9, after_tokens=5, usage=Usage())
            )
    return log.frames[: draw(st.integers(1, len(log.frames)))]


def fold(view: SessionView, frames: list[Envelope] | list[Frame]) -> SessionView:
    for frame in frames:
        view = reduce(view, frame)
    return view


@st.composite
def streams(draw: st.DrawFn) -> list[Frame]:
    """What a bad line makes of a log: frames are missing, come again, and stand among others."""
    odd: list[Frame] = [
        Reset(retry_ms=5),
        Gap(requested="9", last=3, reason="ahead_of_log"),
        Envelope(session=SESSION, time="now", event=Unknown(name="moon_delta", raw={})),
        Partial(message=MessageId("msg_1"), content=(Text(text="bc"), Text(text=""))),
    ]
    frames: list[Frame] = list(draw(logs()))
    for _ in range(draw(st.integers(0, 4))):
        place = draw(st.integers(0, len(frames)))
        match draw(st.sampled_from(["lose", "double", "add"])):
            case "lose":
                del frames[place : place + draw(st.integers(1, 3))]
            case "double":
                frames[place:place] = frames[max(0, place - draw(st.integers(1, 5))) : place]
            case _:
                frames.insert(place, draw(st.sampled_from(odd)))
    return frames


def partials(view: SessionView) -> list[Frame]:
    """What a server that stands at this view sends between replay and live (C1.6)."""
    messages = [Partial(message=m.id, content=m.content) for m in view.open_messages]
    calls = [
        Partial(
            call=call.call,
            at=call.output_at,
            output=call.output,
            progress=call.progress,
            fraction=call.fraction,
        )
        for call in view.open_calls
    ]
    return [*messages, *calls]


@given(log=logs())
def test_a_whole_log_is_never_lost_and_counts_its_events(log: list[Envelope]) -> None:
    view = fold(empty_view(), log)
    assert not view.lost
    assert view.seq == sum(frame.seq is not None for frame in log)
    assert view.updated == next(f.time for f in reversed(log) if f.seq is not None)


@pytest.mark.rules("C1.6")
@given(log=logs(), data=st.data())
def test_a_reader_cut_anywhere_and_resumed_ends_with_the_same_view(
    log: list[Envelope], data: st.DataObject
) -> None:
    cut = data.draw(st.integers(0, len(log)), label="the reader's last frame")
    now = data.draw(st.integers(cut, len(log)), label="where the server stands when it is back")
    view = fold(empty_view(), log[:cut])
    missed = [frame for frame in log[:now] if frame.seq is not None and frame.seq > view.seq]
    hello = Hello(log="log_1", last_seq=now, now="now", server_version="1")
    back: list[Frame] = [hello, *missed, *partials(fold(empty_view(), log[:now])), *log[now:]]
    assert fold(view, back) == fold(empty_view(), log)


@pytest.mark.rules("C4.2")
@given(log=logs(), data=st.data())
def test_frames_that_come_again_change_nothing(log: list[Envelope], data: st.DataObject) -> None:
    twice: list[Envelope] = []
    for place, frame in enumerate(log):
        twice.append(frame)
        if data.draw(st.booleans()):
            again = data.draw(st.integers(0, place))
            twice += [f for f in log[again : place + 1] if f.seq is not None]
        if data.draw(st.booleans()):
            twice.append(frame)
    assert fold(empty_view(), twice) == fold(empty_view(), log)


def _requests() -> list[Envelope]:
    """A log of requests that are made, moved and resolved."""
    log = Log()
    log.stored(SessionCreated(agent="helper", model="scripted/one", mode="ask"))
    for number in range(3):
        asked = PermissionRequested(
            permission=PermissionId(f"prm_{number}"),
            call=CallId(f"call_{number}"),
            tool="run",
            title="Run",
            preview=Preview(kind="text", text="run"),
            digest="d",
            options=(),
            expires_at="soon",
        )
        moved = msgspec.structs.replace(asked, expires_at="later")
        resolved = PermissionResolved(permission=asked.permission, option="deny", by="me")
        log.stored(asked, moved, resolved)
    return log.frames


@pytest.mark.rules("S10")
@given(data=st.data())
def test_of_two_subscriptions_in_any_order_the_newer_word_counts(data: st.DataObject) -> None:
    log = _requests()
    left = [list(log), list(log)]
    view, resolved, shown = empty_view(), set[str](), set[str]()
    while any(left):
        late = data.draw(st.sampled_from([one for one in left if one]))
        frame = late.pop(0)
        view = reduce(view, frame)
        if isinstance(frame.event, PermissionResolved):
            resolved.add(frame.event.permission)
        open_now = {request.permission for request in view.permissions}
        assert not resolved & open_now
        shown |= open_now
    assert view == fold(empty_view(), log)
    assert shown == resolved == {f"prm_{number}" for number in range(3)}


@pytest.mark.rules("C4.2")
@given(log=logs(), data=st.data())
def test_a_missing_number_is_always_seen(log: list[Envelope], data: st.DataObject) -> None:
    stored = [place for place, frame in enumerate(log) if frame.seq is not None]
    gone = data.draw(st.sampled_from(stored))
    view = fold(empty_view(), log[:gone] + log[gone + 1 :])
    assert view.lost == (gone != stored[-1])
    assert view.seq == (log[gone].seq or 0) - 1


@given(log=logs(), data=st.data())
def test_a_missing_piece_is_seen_when_more_of_its_block_comes(
    log: list[Envelope], data: st.DataObject
) -> None:
    places = [p for p, f in enumerate(log) if isinstance(f.event, TextDelta) and f.event.text]
    if not places:
        return
    gone = data.draw(st.sampled_from(places))
    missing = log[gone].event
    assert isinstance(missing, TextDelta)
    later = any(
        isinstance(f.event, TextDelta) and f.event.message == missing.message
        for f in log[gone + 1 :]
    )
    assert fold(empty_view(), log[:gone] + log[gone + 1 :]).lost == later


@given(stream=streams(), data=st.data())
def test_however_a_stream_is_cut_into_chunks_the_view_is_the_same(
    stream: list[Frame], data: st.DataObject
) -> None:
    view, rest = empty_view(), stream
    while rest:
        size = data.draw(st.integers(1, len(rest)), label="frames of the chunk")
        view, rest = reduce_all(view, rest[:size]), rest[size:]
    assert view == fold(empty_view(), stream)
    assert reduce_all(empty_view(), iter(stream)) == view


@given(log=logs(), data=st.data())
def test_a_view_read_back_from_the_wire_goes_on_the_same(
    log: list[Envelope], data: st.DataObject
) -> None:
    cut = data.draw(st.integers(0, len(log)))
    sent = msgspec.json.encode(fold(empty_view(), log[:cut]))
    view = msgspec.json.decode(sent, type=SessionView)
    assert fold(view, log[cut:]) == fold(empty_view(), log)


def test_control_frames_that_carry_nothing_change_nothing() -> None:
    view = fold(empty_view(), [Reset(retry_ms=5), Partial(), Partial(call=CallId("call_1"))])
    assert view == empty_view()
    assert view.reducer == REDUCER_VERSION


@pytest.mark.parametrize("at", [-1, -(2**40)])
def test_a_piece_before_the_start_adds_nothing(at: int) -> None:
    log = Log()
    log.stored(MessageStarted(message=MessageId("msg_1"), role="assistant"))
    log.live(TextDelta(message=MessageId("msg_1"), block=0, at=at, text="x"))
    (message,) = fold(empty_view(), log.frames).open_messages
    assert message.content == (Text(text=""),)
