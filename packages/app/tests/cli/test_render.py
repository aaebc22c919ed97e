"""Lines out of views: pure functions."""

from typing import Any

import msgspec
import pytest

from towline.cli.render import (
    Screen,
    ask,
    echo,
    paint,
    paint_history,
    say,
    start_line,
)
from towline_client.testing import ScriptedServer, ScriptedSession
from towline_protocol import (
    DENY,
    CallId,
    CommandArtifact,
    Compacted,
    Envelope,
    Event,
    Fault,
    Limits,
    MessageDiscarded,
    MessageEnded,
    MessageId,
    MessageStarted,
    Notice,
    Option,
    Partial,
    PermissionId,
    PermissionRequested,
    PermissionResolved,
    Preview,
    PromptAdmitted,
    PromptDelivered,
    PromptId,
    QuestionAsked,
    QuestionId,
    QuestionItem,
    QuestionResolved,
    SessionClosed,
    SessionView,
    Text,
    TextDelta,
    Thinking,
    ThinkingDelta,
    ToolCall,
    ToolCallDelta,
    ToolEnded,
    ToolProposed,
    ToolStarted,
    TurnCancelled,
    TurnCompleted,
    TurnFailed,
    TurnId,
    TurnStarted,
    Usage,
    Waiting,
    reduce,
)

_TURN = TurnId("trn_1")
_M1 = MessageId("msg_1")
_C1 = CallId("call_1")
_C2 = CallId("call_2")


def _session() -> ScriptedSession:
    return ScriptedServer().add_session()


def _written(pieces: tuple[Any, ...]) -> str:
    return "".join(piece.text for piece in pieces)


def _play(*events: Event, own: frozenset[str] = frozenset()) -> str:
    """What stands on the screen after the events, painted one by one."""
    session = _session()
    screen = Screen(view=session.view)
    text = ""
    for event in events:
        session.emit(event, _TURN)
        screen, pieces = paint(screen, session.view, own=own)
        text += _written(pieces)
    return text


def _play_at_once(*events: Event) -> str:
    """The same, painted once at the end."""
    session = _session()
    screen = Screen(view=session.view)
    for event in events:
        session.emit(event, _TURN)
    return _written(paint(screen, session.view)[1])


def _prompt(text: str, key: str | None = None) -> tuple[Event, ...]:
    return (
        PromptAdmitted(prompt=PromptId("p"), content=(Text(text=text),), when="auto", key=key),
        PromptDelivered(prompt=PromptId("p"), turn=_TURN, how="started"),
        TurnStarted(prompt=PromptId("p"), model="m/m", limits=Limits()),
    )


def _delta(at: int, text: str, block: int = 0) -> TextDelta:
    return TextDelta(message=_M1, block=block, at=at, text=text)


_STARTED = MessageStarted(message=_M1, role="assistant")


def _proposed(call: CallId = _C1, *, title: str = "Run make test", **more: Any) -> ToolProposed:
    fields: dict[str, Any] = {"tool": "run_program", "effect": "exec", **more}
    return ToolProposed(call=call, arguments="{}", title=title, **fields)


def _ended(call: CallId = _C1, output: str = "ok", **more: Any) -> ToolEnded:
    fields: dict[str, Any] = {"status": "completed", "duration_ms": 1234, **more}
    return ToolEnded(call=call, content=(Text(text=output),), **fields)


def _request(*, text: str = "make test", truncated: bool = False) -> PermissionRequested:
    return PermissionRequested(
        permission=PermissionId("prm_1"),
        call=_C1,
        tool="run_program",
        title="Run make test",
        preview=Preview(kind="command", text=text, truncated=truncated),
        digest="d",
        options=(
            Option(id="allow_once", label="Allow once"),
            Option(id="allow_session", label="Allow for this session", rule="make *"),
            Option(id=DENY, label="Deny"),
        ),
        reason="exec asks",
        expires_at="2026-01-31T09:30:00.000Z",
    )


def test_streamed_text_is_written_as_it_comes_and_never_twice() -> None:
    session = _session()
    screen = Screen(view=session.view)
    steps: list[str] = []
    for event in (
        *_prompt("Hello"),
        _STARTED,
        _delta(0, "Hel"),
        _delta(3, "lo\nthere"),
        MessageEnded(message=_M1, content=(Text(text="Hello\nthere."),)),
        TurnCompleted(stop_reason="end_turn", usage=Usage(input=1200, output=5), cost=0.01),
    ):
        session.emit(event, _TURN)
        screen, pieces = paint(screen, session.view)
        steps.append(_written(pieces))
    assert steps == [
        "",
        "> Hello\n",
        "",
        "",
        "Hel",
        "lo\nthere",
        ".\n",
        "· 1,200 tokens in, 5 out · $0.0100\n\n",
    ]


def test_text_of_several_views_at_once_is_the_same_text() -> None:
    events = (
        *_prompt("Hello\nyou"),
        _STARTED,
        ThinkingDelta(message=_M1, block=0, at=0, text="Hm"),
        _delta(0, "\nYes", block=1),
        MessageEnded(message=_M1, content=(Thinking(text="Hm."), Text(text="\nYes."))),
        TurnCompleted(stop_reason="end_turn", usage=Usage()),
    )
    assert "(thinking) Hm.\n\nYes.\n" in _play_at_once(*events)
    assert _play_at_once(*events[:4], *events[-2:]) == _play_at_once(*events)


def test_an_end_that_is_not_what_was_streamed_is_written_whole() -> None:
    end = MessageEnded(message=_M1, content=(Text(text="No."),))
    assert _play(_STARTED, _delta(0, "Yes"), end) == "Yes\n(corrected:)\nNo.\n"


def test_blocks_that_grow_out_of_order_are_written_at_the_end() -> None:
    end = MessageEnded(message=_M1, content=(Text(text="one."), Text(text="two")))
    text = _play(_STARTED, _delta(0, "one"), _delta(0, "two", block=1), _delta(3, ".", 0), end)
    assert text == "one\n\ntwo\n(corrected:)\none.\n\ntwo\n"


def test_a_partial_after_a_reconnect_goes_on_where_the_text_stood() -> None:
    session = _session()
    session.emit(_STARTED, _TURN)
    session.emit(_delta(0, "Hel"), _TURN)
    screen, _ = paint(Screen(view=session.view), session.view)
    view = reduce(session.view, Partial(message=_M1, content=(Text(text="Hello the"),)))
    assert _written(paint(screen, view)[1]) == "lo the"


def test_a_discarded_message_says_so_only_when_something_of_it_stands_there() -> None:
    discarded = MessageDiscarded(message=_M1, reason="crash")
    assert _play(_STARTED, _delta(0, "Hel"), discarded) == "Hel\n(cut off; it is asked again)\n"
    assert _play(_STARTED, discarded) == ""


def test_a_message_that_was_cut_says_why() -> None:
    end = MessageEnded(message=_M1, content=(Text(text="Hel"),), cut="cancelled")
    assert _play(_STARTED, _delta(0, "Hel"), end) == "Hel\n(cut: cancelled)\n"


def test_ones_own_typed_prompt_is_not_written_again() -> None:
    assert _play(*_prompt("Hello", key="k"), own=frozenset({"k"})) == ""
    assert _play(*_prompt("Hello", key="other"), own=frozenset({"k"})) == "> Hello\n"


def test_a_call_is_one_line_that_its_end_completes() -> None:
    text = _play(_proposed(), ToolStarted(call=_C1), _ended(output="all good\n"))
    assert text == "● Run make test · done · 1.2 s\n  │ all good\n"


def test_calls_that_run_side_by_side_have_a_line_each() -> None:
    text = _play(
        _proposed(),
        _proposed(_C2, title="now", tool="now", effect="own"),
        ToolStarted(call=_C1),
        ToolStarted(call=_C2),
        _ended(_C2, "09:05", duration_ms=3),
        _ended(_C1, "", duration_ms=83_000),
    )
    assert text == (
        "● Run make test\n● Use now · done · 3 ms\n  │ 09:05\n● Run make test · done · 1 min 23 s\n"
    )


@pytest.mark.parametrize(
    ("effect", "tool", "title", "line"),
    [
        ("read", "read_file", "read_file", "Read read_file"),
        ("network", "fetch", "fetch", "Fetch fetch"),
        ("write", "write_file", "Write  a\nb", "Write a b"),
    ],
)
def test_a_title_without_a_verb_gets_one(effect: str, tool: str, title: str, line: str) -> None:
    proposed = _proposed(title=title, tool=tool, effect=effect)
    assert _play(proposed, ToolStarted(call=_C1)) == f"● {line}"


def test_text_after_a_running_call_begins_a_line() -> None:
    text = _play(_proposed(), ToolStarted(call=_C1), _STARTED, _delta(0, "Meanwhile"))
    assert text == "● Run make test\nMeanwhile"


def test_the_tail_of_long_output_is_shown_and_what_is_left_out_is_counted() -> None:
    output = "\n".join(f"line {number}" for number in range(20)) + "\n"
    text = _play(_proposed(), _ended(output=output))
    lines = text.splitlines()
    assert lines[1] == "  │ … 12 more above"
    assert lines[2:] == [f"  │ line {number}" for number in range(12, 20)]
    read = _proposed(title="Read a.txt", tool="read_file", effect="read")
    assert len(_play(read, _ended(output=output)).splitlines()) == 5
    failed = _ended(output=output, status="failed", is_error=True)
    assert len(_play(read, failed).splitlines()) == 10
    assert _play(read, _ended(output="#" * 600)).count("#") == 500


def test_a_programs_exit_code_and_its_own_output_are_shown() -> None:
    artifact = CommandArtifact(command="make", exit_code=2, output="a\r\n10%\r50%\rboom\x1b[31m!\n")
    text = _play(_proposed(), _ended(output="for the model", artifacts=(artifact,)))
    assert text == "● Run make test · done · exit 2 · 1.2 s\n  │ a\n  │ boom!\n"


def test_an_unknown_end_says_what_that_means() -> None:
    text = _play(_proposed(), ToolStarted(call=_C1), _ended(status="unknown", duration_ms=0))
    assert text.startswith("● Run make test · unknown: it may or may not have happened\n")


def test_a_call_left_open_by_the_turns_end_is_told_before_the_mark() -> None:
    fault = Fault(code="provider_server", message="The provider is down.\nTry later.")
    text = _play(_proposed(), ToolStarted(call=_C1), TurnFailed(fault=fault, usage=Usage()))
    assert text == (
        "● Run make test · unknown: it may or may not have happened\n"
        "✗ Failed: The provider is down.\nTry later.\n\n"
    )


def test_a_permission_shows_the_whole_preview_and_the_keys_of_its_options() -> None:
    long = "echo " + "x" * 4000 + "\nrm -rf ./build"
    text = _play(_proposed(), _request(text=long))
    assert text == (
        "? Run make test\n  reason: exec asks\n  command:\n"
        f"  │ echo {'x' * 4000}\n  │ rm -rf ./build\n"
        "  y Allow once\n  s Allow for this session (stores the rule make *)\n  n Deny\n"
        "  Answer (y once, s session, n deny): "
    )


def test_a_preview_that_is_not_whole_can_only_be_denied() -> None:
    request = _request(truncated=True)
    text = _play(_proposed(), request)
    assert "it can only be denied" in text
    assert "  y Allow once (not possible)\n" in text
    assert text.endswith("  n Deny\n  Answer (n deny): ")


def test_what_hides_in_a_command_is_made_visible() -> None:
    hidden = "echo ok\r\x1b[2K\u202erm\u2066\x7f\x9b\u200b\U000e0041\ufe0f\n  3 Deny"
    shown = "echo ok␍␛[2K<U+202E>rm<U+2066>␡<U+009B><U+200B><U+E0041><U+FE0F>"
    option = Option(id="allow_session", label="Allow\n", rule=hidden)
    asked = msgspec.structs.replace(
        _request(text=hidden),
        title=hidden,
        reason=hidden,
        options=(option, Option(id=DENY, label="Deny")),
    )
    text = _play(_proposed(), asked)
    assert f"? {shown} 3 Deny\n  reason: {shown}␊  3 Deny\n" in text
    assert f"  │ {shown}\n  │   3 Deny\n" in text
    assert f"  s Allow␊ (stores the rule {shown}␊  3 Deny)\n  n Deny\n" in text


def test_joiners_stay_in_what_is_only_read() -> None:
    said = MessageEnded(
        message=MessageId("msg_1"), content=(Text(text="👩\u200d💻 ❤\ufe0f \u202eok"),)
    )
    assert "👩\u200d💻 ❤\ufe0f <U+202E>ok\n" in _play(said)


def test_a_decision_says_which_and_by_whom() -> None:
    resolved = PermissionResolved(permission=PermissionId("prm_1"), option="allow_once", by="phone")
    text = _play(_proposed(), _request(), resolved)
    assert text.endswith("  Answer (y once, s session, n deny): \n→ Allow once (by phone)\n")


def test_a_request_that_vanished_says_so_and_one_that_moved_its_deadline_says_nothing() -> None:
    cancelled = TurnCancelled(by="me", reason="stop", usage=Usage())
    assert "→ not asked any more\n" in _play(_request(), cancelled)
    assert _play(_proposed(), _request(), _request()).count("? Run make test") == 1


def test_a_question_is_shown_with_how_to_answer_and_its_end_but_not_its_moved_deadline() -> None:
    options = (Option(id="a", label="This"), Option(id="b", label="That"))
    item = QuestionItem(id="q", prompt="Which?", options=options)
    asked = QuestionAsked(question=QuestionId("qst_1"), items=(item,))
    resolved = QuestionResolved(question=QuestionId("qst_1"), answers={"q": ("a",)}, by="phone")
    text = _play(asked, asked, resolved)
    assert text == "? Which?\n  1 This\n  2 That\n  Answer (1-2): \n→ the question is settled\n"


def test_marks_notices_and_waits_are_lines() -> None:
    text = _play(
        Notice(code="n", message="Disk is nearly full."),
        Waiting(until="2026-01-31T09:06:00.000Z", reason="rate_limit"),
        Compacted(before_tokens=10, after_tokens=5, summary="short"),
        TurnCompleted(stop_reason="max_steps", usage=Usage()),
        SessionClosed(reason="done"),
    )
    assert text == (
        "! Disk is nearly full.\n"
        "… waiting until 09:06:00 (rate_limit)\n"
        "· compacted: short\n"
        "■ Ended early: max_steps\n"
        "· 0 tokens in, 0 out\n\n"
        "■ The session is closed: done\n"
    )


def test_arguments_that_are_being_written_are_not_shown() -> None:
    piece = ToolCallDelta(message=_M1, block=0, at=0, text='{"a":')
    assert _play(_STARTED, piece) == ""


def _long_session() -> SessionView:
    session = _session()
    for number in range(12):
        for event in _prompt(f"prompt {number}"):
            session.emit(event, _TURN)
        call = ToolCall(id=CallId(f"call_{number}"), name="now", arguments="{}")
        message = MessageId(f"msg_{number}")
        session.emit(MessageStarted(message=message, role="assistant"), _TURN)
        content = (Text(text=f"answer {number}"), call)
        session.emit(MessageEnded(message=message, content=content), _TURN)
        session.emit(_proposed(call.id, title=f"call {number}"), _TURN)
        session.emit(_ended(call.id), _TURN)
    session.emit(Notice(code="n", message="An old notice."), _TURN)
    return session.view


def test_history_shows_the_last_entries_with_their_calls_and_says_that_there_is_more() -> None:
    view = _long_session()
    screen, pieces = paint_history(view, 3)
    assert _written(pieces) == (
        "ses_0001 · prompt 0 · scripted/model · ask\n"
        "… earlier messages are not shown\n\n"
        "answer 10\n● call 10 · done · 1.2 s\n  │ ok\n"
        "> prompt 11\n"
        "answer 11\n● call 11 · done · 1.2 s\n  │ ok\n"
        "! An old notice.\n"
    )
    assert paint(screen, view)[1] == ()


def test_a_notice_stands_at_its_place_among_the_messages() -> None:
    session = _session()
    session.emit(Notice(code="n", message="Before all."))
    for number in range(3):
        for event in _prompt(f"prompt {number}"):
            session.emit(event, _TURN)
        session.emit(Notice(code="n", message=f"Behind {number}."))
    assert _written(paint_history(session.view)[1]).partition("\n\n")[2] == (
        "! Before all.\n> prompt 0\n! Behind 0.\n> prompt 1\n! Behind 1.\n> prompt 2\n! Behind 2.\n"
    )
    _, pieces = paint_history(session.view, 2)
    assert _written(pieces).partition("shown\n\n")[2] == (
        "> prompt 1\n! Behind 1.\n> prompt 2\n! Behind 2.\n"
    )


def test_history_shows_what_is_going_on() -> None:
    session = ScriptedServer().add_session()
    for event in (*_prompt("Hello"), _proposed(), _request()):
        session.emit(event, _TURN)
    text = _written(paint_history(session.view)[1])
    assert text.startswith("ses_0001 · Hello · scripted/model · ask\n\n> Hello\n? Run make test\n")
    assert "works in" not in text


def test_ones_own_lines_begin_where_a_line_begins() -> None:
    screen, pieces = ask(Screen(), "Which? ")
    assert _written(pieces) == "Which? "
    screen, pieces = echo(screen, "2")
    assert _written(pieces) == "2\n"
    screen, pieces = say(screen, "Two.")
    assert _written(pieces) == "Two.\n"
    screen, _ = ask(screen, "More? ")
    assert _written(start_line(screen, typed=False)[1]) == "\n"
    assert _written(start_line(screen, typed=True)[1]) == ""
    assert _written(say(screen, "No.")[1]) == "\nNo.\n"


def test_envelopes_of_unknown_kinds_change_nothing_on_the_screen() -> None:
    session = _session()
    screen = Screen(view=session.view)
    delta = TextDelta(message=MessageId("none"), block=0, at=0, text="x")
    envelope = Envelope(session=session.id, time="", event=delta)
    assert paint(screen, reduce(session.view, envelope))[1] == ()
