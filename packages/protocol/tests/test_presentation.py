"""What is shown of views: the options of a person, and prompts on their way."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from towline_protocol import (
    Broken,
    Envelope,
    Event,
    MessageEnded,
    MessageId,
    MessageStarted,
    OutgoingPrompt,
    Presentation,
    SessionId,
    SessionView,
    Shown,
    Text,
    TextDelta,
    Thinking,
    ThinkingDelta,
    decode_frame,
    empty_view,
    format_time,
    left_ms,
    present,
    reduce_all,
    show_outgoing,
)

VECTORS = Path(__file__).parent.parent / "vectors"
SCREENS = sorted((VECTORS / "presentation").glob("*.json"))
SENT = sorted((VECTORS / "outgoing").glob("*.json"))
PLAIN = Presentation()
OPTIONS = [
    Presentation(text=text, thinking=thinking)
    for text in ("stream", "final")
    for thinking in ("stream", "final", "off")
]


def fold(view: SessionView, frames: list[dict[str, Any]]) -> SessionView:
    found = [decode_frame(frame["event"], json.dumps(frame["data"])) for frame in frames]
    return reduce_all(view, [frame for frame in found if not isinstance(frame, Broken)])


def contents(entries: Any) -> Any:
    return json.loads(msgspec.json.encode([[entry.id, entry.content] for entry in entries]))


def test_there_are_vectors_of_what_is_shown() -> None:
    assert len(SCREENS) >= 7
    assert len(SENT) >= 3


@pytest.mark.parametrize("path", SCREENS, ids=lambda path: path.stem)
def test_each_screen_shows_what_its_vector_says(path: Path) -> None:
    shown, view = Shown(), empty_view()
    for step in json.loads(path.read_text(encoding="utf-8"))["steps"]:
        view = fold(view, step["frames"])
        presentation = msgspec.convert(step["presentation"], Presentation)
        shown, made = present(shown, view, presentation)
        assert contents(made.messages) == step["messages"]
        assert contents(made.open_messages) == step["open_messages"]


@pytest.mark.rules("C4.9")
@pytest.mark.parametrize("path", SENT, ids=lambda path: path.stem)
def test_what_the_log_holds_is_no_longer_on_its_way(path: Path) -> None:
    vector = json.loads(path.read_text(encoding="utf-8"))
    entries = msgspec.convert(vector["entries"], tuple[OutgoingPrompt, ...])
    view = fold(empty_view(), vector["frames"])
    made = show_outgoing(view, entries)
    assert json.loads(msgspec.json.encode(made.outgoing)) == vector["outgoing"]
    assert msgspec.structs.replace(made, outgoing=()) == view
    assert show_outgoing(made, ()) == view


def test_the_default_gives_back_the_very_view() -> None:
    view = reduce_all(empty_view(), messages(3))
    shown, made = present(Shown(), view, PLAIN)
    assert made is view
    assert present(shown, view, PLAIN)[1] is view


def messages(count: int, *, ended: bool = True) -> list[Envelope]:
    """Messages of a thought and an answer."""
    frames: list[Envelope] = []
    seq = 0
    for number in range(count):
        message = MessageId(f"msg_{number}")
        events: list[Event] = [
            MessageStarted(message=message, role="assistant"),
            ThinkingDelta(message=message, block=0, at=0, text="Hm"),
            ThinkingDelta(message=message, block=0, at=2, text="m"),
            TextDelta(message=message, block=1, at=0, text="So"),
            TextDelta(message=message, block=1, at=2, text="!"),
        ]
        if ended or number < count - 1:
            content = (Thinking(text="Hmm"), Text(text="So!"))
            events.append(MessageEnded(message=message, content=content))
        for event in events:
            stored = isinstance(event, MessageStarted | MessageEnded)
            seq += stored
            frames.append(
                Envelope(
                    seq=seq if stored else None,
                    session=SessionId("ses_1"),
                    time=format_time(len(frames)),
                    event=event,
                )
            )
    return frames


@given(data=st.data(), ended=st.booleans())
def test_a_block_keeps_the_option_under_which_it_was_first_seen(
    data: st.DataObject, ended: bool
) -> None:
    frames = messages(3, ended=ended)
    shown, view = Shown(), empty_view()
    first: dict[tuple[str, int], Presentation] = {}
    while frames:
        size = data.draw(st.integers(1, len(frames)), label="frames of the chunk")
        wanted = data.draw(st.sampled_from(OPTIONS))
        view, frames = reduce_all(view, frames[:size]), frames[size:]
        shown, made = present(shown, view, wanted)
        for entry in (*view.messages, *view.open_messages):
            for place in range(len(entry.content)):
                first.setdefault((entry.id or "", place), wanted)
        for entry in made.messages:
            assert kinds(entry.content) == expected(entry.id or "", first)
        for entry in made.open_messages:
            seen = {key: option for key, option in first.items() if key[0] == entry.id}
            assert kinds(entry.content) == expected(entry.id, seen)
            for block in entry.content:
                assert isinstance(block, Text | Thinking)
                option = seen[entry.id, 0 if isinstance(block, Thinking) else 1]
                waits = option.thinking if isinstance(block, Thinking) else option.text
                assert (block.text == "") == (waits == "final")


def kinds(content: Any) -> list[type]:
    return [type(block) for block in content]


def expected(message: str, first: dict[tuple[str, int], Presentation]) -> list[type]:
    """The kinds of a message's blocks that are to be seen."""
    found: list[type] = []
    for place, kind in enumerate((Thinking, Text)):
        option = first.get((message, place))
        if option is not None and not (kind is Thinking and option.thinking == "off"):
            found.append(kind)
    return found


def test_what_is_shown_does_not_grow_with_what_was() -> None:
    quiet = Presentation(thinking="off")
    frames = messages(250)
    shown, view = Shown(), empty_view()
    for frame in frames:
        view = reduce_all(view, [frame])
        shown, made = present(shown, view, quiet)
        assert len(made.messages) == len(view.messages)
    assert shown.options is not None
    assert len(shown.options) == len(view.messages) == 200


def test_a_countdown_goes_by_the_clock_of_the_server() -> None:
    until = "2026-01-31T09:05:00.000Z"
    assert left_ms(until, server_now="2026-01-31T09:04:30.250Z", since_ms=0) == 29_750
    assert left_ms(until, server_now="2026-01-31T09:04:30.250Z", since_ms=9_750) == 20_000
    assert left_ms(until, server_now="2026-01-31T09:05:00.001Z", since_ms=0) == 0
    with pytest.raises(ValueError, match="soon"):
        left_ms("soon", server_now=until, since_ms=0)
