"""The golden vectors: what they hold, and that the reducer still makes their views."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from towline_protocol import (
    Broken,
    CallId,
    CallView,
    Envelope,
    Parent,
    SessionId,
    SessionView,
    ToolCall,
    Transcript,
    block_text,
    decode_frame,
    empty_view,
    reduce,
)

VECTORS = Path(__file__).parent.parent / "vectors"
FILES = sorted(VECTORS.glob("*.json"))


def load(name: str) -> dict[str, Any]:
    return json.loads((VECTORS / f"{name}.json").read_text(encoding="utf-8"))


def fold(vector: dict[str, Any]) -> tuple[SessionView, int]:
    view, broken = empty_view(), 0
    for frame in vector["frames"]:
        found = decode_frame(frame["event"], json.dumps(frame["data"]))
        if isinstance(found, Broken):
            broken += 1
        else:
            view = reduce(view, found)
    return view, broken


def view_of(name: str) -> SessionView:
    return fold(load(name))[0]


def open_call(view: SessionView) -> CallView:
    (call,) = view.open_calls
    return call


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_each_log_reduces_to_its_view(path: Path) -> None:
    vector = load(path.stem)
    view, broken = fold(vector)
    assert json.loads(msgspec.json.encode(view)) == vector["view"]
    assert broken == vector["broken"]
    assert vector["name"] == path.stem


def test_there_are_vectors_enough() -> None:
    assert len(FILES) >= 40


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_each_view_survives_the_wire(path: Path) -> None:
    view, _ = fold(load(path.stem))
    assert msgspec.json.decode(msgspec.json.encode(view), type=SessionView) == view


def test_the_files_are_what_the_script_makes() -> None:
    run = subprocess.run(
        [sys.executable, str(VECTORS / "make.py"), "--check"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (run.returncode, run.stdout) == (0, ""), run.stderr


@pytest.mark.rules("C1.8")
def test_what_ended_the_message_replaces_what_the_deltas_built() -> None:
    view = view_of("plain_answer")
    assert [block_text(m.content) for m in view.messages if m.role == "assistant"] == [
        "About **384,400** km."
    ]
    assert view.open_messages == ()


@pytest.mark.rules("C1.6")
def test_a_partial_stands_for_all_deltas_before_it() -> None:
    (message,) = view_of("partial_in_mid_message").open_messages
    assert block_text(message.content) == "One \N{GRINNING FACE}, two"
    assert open_call(view_of("partial_of_call")).output == "tail of it, and more"


@pytest.mark.rules("C1.5")
@pytest.mark.parametrize("name", ["hole_in_at", "hole_in_output", "far_block"])
def test_a_hole_in_what_is_written_marks_the_view_lost(name: str) -> None:
    assert view_of(name).lost


@pytest.mark.rules("C4.2")
@pytest.mark.parametrize("name", ["hole_in_at", "seq_loss", "gap"])
def test_a_lost_view_takes_no_more_stored_events(name: str) -> None:
    vector = load(name)
    view, _ = fold(vector)
    assert view.lost
    last = max(frame["data"].get("seq", 0) for frame in vector["frames"])
    assert view.seq < last
    assert all(message.role == "user" for message in view.messages)


@pytest.mark.rules("C1.11")
def test_what_is_unknown_is_kept_or_counted_and_never_stops_the_reader() -> None:
    vector = load("unknown_kinds")
    view, broken = fold(vector)
    assert broken == 5
    assert view.unknown == 3
    assert [block["type"] for block in vector["view"]["messages"][1]["content"]] == [
        "text",
        "unknown",
        "tool_call",
        "unknown",
    ]
    assert [a["kind"] for a in vector["view"]["calls"][0]["artifacts"]] == [
        "unknown",
        "http",
        "unknown",
    ]
    assert view.notices[-1].message == "Still here."


@pytest.mark.rules("C1.12")
def test_caps_count_code_points() -> None:
    title = view_of("astral_title").title
    assert title is not None
    assert len(title) == 60
    assert view_of("astral_title").title_truncated
    whole = view_of("title_at_the_edge")
    assert (len(whole.title or ""), whole.title_truncated) == (60, False)
    call = open_call(view_of("astral_output"))
    assert (len(call.output), call.output_at) == (8192, 8)
    assert call.output.endswith("last\N{GRINNING FACE}")
    assert not view_of("astral_at").lost
    (call,) = view_of("long_diffs").calls
    cut = [(len(change.diff or ""), change.truncated) for change in call.changes]
    assert cut == [(16384, False), (16384, True), (0, False)]


def test_a_cut_says_that_it_is_one() -> None:
    notices = view_of("notices")
    assert (len(notices.notices), notices.older_notices) == (20, True)
    assert not view_of("notices_at_the_edge").older_notices
    assert not view_of("title_given_later").title_truncated
    changed = open_call(view_of("many_changes"))
    assert (len(changed.changes), changed.changes_truncated) == (100, True)


def undone(name: str) -> list[int]:
    return [entry.seq for entry in view_of(name).messages if entry.undone]


@pytest.mark.rules("D6")
def test_what_the_conversation_went_back_behind_is_marked_as_undone() -> None:
    assert undone("reverted") == [8, 10, 13, 15]
    assert undone("reverted_twice") == [8, 10, 19, 21]
    assert len(undone("reverted_beyond")) == 196
    marks = [entry.mark for entry in view_of("reverted").messages if entry.mark is not None]
    assert marks[-1].files == ("a.txt", "b.txt")
    assert marks[-1].not_reverted == ("c.txt: gone",)


@pytest.mark.rules("D6")
@pytest.mark.parametrize("name", ["reverted", "reverted_twice"])
def test_what_is_not_undone_is_what_the_model_sees(name: str) -> None:
    vector = load(name)
    transcript = Transcript()
    for frame in vector["frames"]:
        found = decode_frame(frame["event"], json.dumps(frame["data"]))
        assert isinstance(found, Envelope)
        transcript.add(found.event, turn=found.turn)
    said = [e.content for e in view_of(name).messages if e.mark is None and not e.undone]
    assert [message.content for message in transcript.messages()] == said


@pytest.mark.rules("D5")
def test_a_card_leads_to_the_session_of_a_sub_agent() -> None:
    view = view_of("sub_agents")
    assert [call.child for call in (*view.calls, *view.open_calls)] == ["ses_child", "ses_other"]
    (running,) = view.open_calls
    assert (running.progress, running.fraction) == ("Writing", 0.75)
    assert view.cost == 0.25
    assert view_of("sub_agent_unpriced").cost is None
    parent = view_of("sub_agent_itself").parent
    assert parent == Parent(session=SessionId("ses_parent"), call=CallId("call_1"))


@pytest.mark.parametrize("name", ["cancelled", "end_closes_all", "stopped_in_mid_message"])
def test_nothing_stays_open_after_a_turn(name: str) -> None:
    view = view_of(name)
    assert view.turn is None
    assert (view.open_messages, view.open_calls, view.permissions, view.questions) == (
        (),
        (),
        (),
        (),
    )
    for call in view.calls:
        assert (call.output, call.output_at, call.progress) == ("", 0, None)


def test_old_entries_make_room_with_their_calls() -> None:
    view = view_of("trimming")
    assert len(view.messages) == 200
    assert view.older
    blocks = [block for message in view.messages for block in message.content]
    held = {block.id for block in blocks if isinstance(block, ToolCall)}
    assert {call.call for call in view.calls} == held


@pytest.mark.rules("C5.8")
def test_a_request_asked_again_replaces_the_first() -> None:
    (request,) = view_of("permission_open").permissions
    assert request.expires_at == "2026-01-31T09:02:00.000Z"
    (question,) = view_of("questions").questions
    assert question.expires_at == "2026-01-31T09:02:00.000Z"


def test_steered_and_withdrawn_prompts_leave_the_queue() -> None:
    view = view_of("queue_and_withdraw")
    assert [queued.prompt for queued in view.queue] == ["pmt_5"]
    users = [(m.id, m.turn) for m in view.messages if m.role == "user"]
    assert users == [("pmt_1", "trn_1"), ("pmt_3", "trn_1"), ("pmt_4", "trn_2")]
