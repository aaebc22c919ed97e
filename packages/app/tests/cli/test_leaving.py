"""The last words of a chat."""

import re

import msgspec

from towline.cli.leaving import say_goodbye
from towline_protocol import (
    DENY,
    CallId,
    Option,
    PermissionId,
    PermissionRequested,
    Preview,
    QuestionAsked,
    QuestionId,
    QuestionItem,
    SessionId,
    SessionView,
)

SESSION = SessionId("ses_1")
AT = "2026-01-31T09:05:00.250Z"
REQUEST = PermissionRequested(
    permission=PermissionId("prm_1"),
    call=CallId("call_1"),
    tool="write_file",
    title="Write \u202enotes.txt",
    preview=Preview(kind="text", text="x"),
    digest="d" * 64,
    options=(Option(id=DENY, label="Deny"),),
    expires_at=AT,
)
QUESTION = QuestionAsked(
    question=QuestionId("qst_1"), items=(QuestionItem(id="a", prompt="Which?", options=()),)
)


def test_who_leaves_is_told_what_waits_and_until_when() -> None:
    view = msgspec.structs.replace(
        SessionView(session=SESSION), permissions=(REQUEST,), questions=(QUESTION,)
    )
    wait, ask, on = say_goodbye(view, SESSION, "towline").splitlines()
    time = r"\d\d:05:00"
    assert re.fullmatch(
        rf'"Write <U\+202E>notes.txt" waits for your answer until {time}; then it is denied.', wait
    )
    assert ask == (
        '"Which?" waits for your answer for a minute after you left; then the agent decides itself.'
    )
    assert on == "Go on with: towline chat --plain --session ses_1"
    ending = msgspec.structs.replace(QUESTION, expires_at=AT)
    view = msgspec.structs.replace(view, permissions=(), questions=(ending,))
    (ask, _) = say_goodbye(view, SESSION, "towline").splitlines()
    assert re.fullmatch(rf'"Which\?" waits for your answer until {time}; then .*', ask)


def test_who_leaves_nothing_waiting_is_told_how_to_come_back() -> None:
    assert say_goodbye(SessionView(session=SESSION), SESSION, "t") == (
        "Go on with: t chat --plain --session ses_1"
    )
