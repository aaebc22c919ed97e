"""What no event has room for: moved, kept beside it, or cut (C1.10, C6)."""

import base64
import hashlib
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from towline_protocol import (
    CallId,
    Event,
    Fault,
    File,
    FileChange,
    FilesChanged,
    Image,
    ImageArtifact,
    Limits,
    MessageEnded,
    MessageId,
    Notice,
    Private,
    PromptAdmitted,
    PromptId,
    Text,
    Thinking,
    ToolCall,
    ToolEnded,
    ToolProposed,
    Transcript,
    TurnFailed,
    TurnStarted,
    Unknown,
    Usage,
    encode,
)
from towline_server.sessions.bulk import (
    MAX_EVENT,
    MAX_FILE,
    MAX_PART,
    Slim,
    cut_event,
    new_text,
    slim_event,
)

PNG = b"\x89PNG\r\n\x1a\n" + b"picture"
DATA = base64.b64encode(PNG).decode()
HASH = hashlib.sha256(PNG).hexdigest()
CALL = CallId("call_1")
LONG = '{"text": "' + "ä" * MAX_PART + '"}'


def _ended(*blocks: Text | Image | File | Unknown, **more: Any) -> ToolEnded:
    return ToolEnded(call=CALL, status="completed", content=blocks, **more)


def _asked(*arguments: str) -> MessageEnded:
    calls = tuple(
        ToolCall(id=CallId(f"call_{n}"), name="write", arguments=text)
        for n, text in enumerate(arguments, 1)
    )
    return MessageEnded(message=MessageId("msg_1"), content=(Text(text="well"), *calls))


def _transcript(*slims: Slim) -> Transcript:
    transcript = Transcript()
    for slim in slims:
        transcript.add(slim.event, slim.private)
    return transcript


@pytest.mark.rules("C1.10")
@pytest.mark.parametrize(
    "event",
    [
        _ended(Text(text="short")),
        _asked("{}", '{"a": 1}'),
        ToolProposed(call=CALL, tool="t", arguments="{}", title="t", effect="read"),
        PromptAdmitted(prompt=PromptId("pmt_1"), content=(Text(text="x" * 900_000),), when="auto"),
        TurnStarted(prompt=PromptId("pmt_1"), model="a/b", limits=Limits()),
    ],
)
def test_what_has_room_stays_as_it_is(event: Event) -> None:
    private = (Private(block=0, signature="s"),)
    slim = slim_event(event, private)
    assert slim.event is event
    assert slim == Slim(event, private)


@pytest.mark.rules("C1.10")
def test_bytes_of_pictures_go_into_files_that_the_event_names() -> None:
    picture = Image(media_type="image/jpeg", data=DATA)  # a claim that is not so
    slim = slim_event(_ended(Text(text="see"), picture, File(name="a", media_type="b", data=DATA)))
    assert isinstance(slim.event, ToolEnded)
    named = (
        Image(media_type="image/png", file=HASH),
        File(name="a", media_type="image/png", file=HASH),
    )
    assert slim.event.content == (Text(text="see"), *named)
    assert [(new.file, new.media_type, new.data) for new in slim.files] == [
        (HASH, "image/png", PNG)
    ]
    assert slim.uses == (HASH,)
    assert DATA.encode() not in encode(slim.event)


@pytest.mark.parametrize("data", ["no base 64!", "", "AAAAA"])
def test_bytes_that_cannot_be_read_become_words(data: str) -> None:
    slim = slim_event(_ended(Image(media_type="image/png", data=data)))
    assert isinstance(slim.event, ToolEnded)
    assert slim.event.content == (Text(text="[a image/png block that cannot be read]"),)
    assert slim.files == ()


def test_every_file_that_an_event_names_is_used() -> None:
    artifact = ImageArtifact(file="b", media_type="image/png")
    ended = _ended(Image(media_type="image/png", file="a"), artifacts=(artifact,), files=("c",))
    assert set(slim_event(ended).uses) == {"a", "b", "c"}
    said = PromptAdmitted(
        prompt=PromptId("pmt_1"),
        content=(File(name="n", media_type="text/plain", file="d"),),
        when="auto",
    )
    assert slim_event(said).uses == ("d",)


@pytest.mark.rules("C1.10")
def test_a_long_output_shows_its_ends_and_is_whole_for_people_and_for_the_model() -> None:
    asked = _asked("{}")
    texts = ("head" + "ü" * MAX_PART, "x" * 500 + "tail")
    slim = slim_event(_ended(Text(text=texts[0]), Text(text=texts[1])))
    assert isinstance(slim.event, ToolEnded)
    assert len(encode(slim.event)) < MAX_PART
    shown = slim.event.content[0]
    assert isinstance(shown, Text)
    assert shown.text.startswith("head")
    assert "characters are not shown here" in shown.text
    assert slim.event.content[1] == Text(text=texts[1])
    (kept,) = slim.files
    assert slim.event.files == slim.uses == (kept.file,)
    assert kept.data.decode() == "".join(texts)
    result = _transcript(slim_event(asked), slim).messages()[-1].content[0]
    assert getattr(result, "content") == tuple(Text(text=text) for text in texts)  # noqa: B009


@pytest.mark.rules("C1.10", "A1.6")
def test_long_arguments_stay_exact_for_the_model_and_are_whole_in_a_file() -> None:
    private = (Private(block=1, signature="s", wire_id="w"),)
    message = slim_event(_asked(LONG, "{}"), private)
    proposal = ToolProposed(call=CALL, tool="write", arguments=LONG, title="t", effect="write")
    proposed = slim_event(proposal)
    assert len(encode(message.event)) < MAX_PART
    assert len(encode(proposed.event)) < MAX_PART
    (kept,) = proposed.files
    assert kept.data.decode() == LONG
    assert isinstance(proposed.event, ToolProposed)
    assert (proposed.event.arguments_file,) == proposed.uses == (kept.file,)
    call, other = _transcript(message, proposed).open_calls()
    assert (call.arguments, call.signature, call.wire_id) == (LONG, "s", "w")
    assert other.arguments == "{}"
    again = slim_event(proposed.event)  # as a fork copies it
    assert again == Slim(proposed.event, uses=proposed.uses)


@pytest.mark.rules("C1.10", "C6")
def test_many_calls_of_one_message_stay_exact_together() -> None:
    arguments = ["x" * (MAX_PART - 100)] * 40
    slim = slim_event(_asked(*arguments))
    assert len(encode(slim.event)) < MAX_EVENT
    assert [call.arguments for call in _transcript(slim).open_calls()] == arguments


def test_text_with_halves_of_characters_is_kept_as_it_can_be() -> None:
    new = new_text("\ud83d" + "x" * MAX_PART, "a")
    assert new is not None
    assert new.data.decode()[0] == "\N{REPLACEMENT CHARACTER}"
    slim = slim_event(_ended(Text(text="\ud83d" + "x" * MAX_PART)))
    assert slim.files[0].data == new.data
    assert new_text("x" * (MAX_FILE + 1), "a") is None


HUGE = "y" * (2 * MAX_EVENT)


@pytest.mark.rules("C6")
@pytest.mark.parametrize(
    "event",
    [
        MessageEnded(message=MessageId("msg_1"), content=(Thinking(text="t"), Text(text=HUGE))),
        Notice(code="c", message=HUGE),
        TurnFailed(fault=Fault(code="internal_error", message=HUGE), usage=Usage()),
        TurnFailed(
            fault=Fault(code="c", message="m", details={"a": [HUGE] * 3, HUGE: 1}), usage=Usage()
        ),
        FilesChanged(
            call=CALL,
            changes=tuple(
                FileChange(path=f"p{n}", kind="changed", diff="d" * 50_000) for n in range(99)
            ),
        ),
        _ended(*(Text(text="x") for _ in range(200_000))),
        _ended(Unknown(name="new", raw={"type": "new", "a": {f"k{n}": HUGE for n in range(9)}})),
    ],
)
def test_an_event_that_is_too_large_is_cut_and_says_so(event: Event) -> None:
    cut = cut_event(event)
    assert type(cut) is type(event)
    assert len(encode(cut)) < MAX_EVENT
    assert msgspec.json.decode(encode(cut), type=type(event)) == cut


def test_a_cut_leaves_a_mark_and_keeps_what_is_short() -> None:
    cut = cut_event(Notice(code="provider", message=HUGE))
    assert cut.code == "provider"
    assert cut.message.endswith("characters cut …]")


@settings(max_examples=10)
@given(st.recursive(st.text(max_size=20), lambda inner: st.lists(inner, max_size=4), max_leaves=20))
def test_whatever_an_event_holds_it_fits_when_it_is_cut(value: Any) -> None:
    raw = {"type": "new", "value": [value] * 5000}
    assert len(encode(cut_event(_ended(Unknown(name="new", raw=raw))))) < MAX_EVENT
