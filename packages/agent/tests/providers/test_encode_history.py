"""A history that is sent again and again: encoded once, and its beginning never changes."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from towline_agent.providers.base import Model, Request
from towline_agent.providers.fragments import Prefixes
from towline_agent.providers.openai_chat.encode import encode_request
from towline_agent.providers.openai_chat.flags import OFFICIAL_FLAGS, ChatFlags
from towline_agent.providers.openai_chat.messages import MessageEncoder
from towline_protocol import (
    CallId,
    Image,
    Message,
    Opaque,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)

MODEL = Model(provider="p", id="m")
IDS = st.one_of(st.none(), st.sampled_from(["0", "a", "b"]))
DETAILS = {"reasoning_details": [{"type": "reasoning.text", "text": "hm"}]}


def body(
    messages: tuple[Message, ...],
    *,
    flags: ChatFlags | None = None,
    model: Model = MODEL,
    encoder: MessageEncoder | None = None,
    **fields: Any,
) -> bytes:
    request = Request(model="m", messages=messages, **fields)
    flags = flags or ChatFlags()
    encoded = encode_request(request, model, flags, stream=True, official=False, messages=encoder)
    return encoded.body


def sent(messages: tuple[Message, ...], **options: Any) -> list[dict[str, Any]]:
    return json.loads(body(messages, **options))["messages"]


def asked(number: int, *wire_ids: str | None) -> tuple[Message, Message]:
    """A step with calls and their results."""
    calls = tuple(
        ToolCall(id=CallId(f"call_{number}_{place}"), name="f", arguments="{}", wire_id=wire)
        for place, wire in enumerate(wire_ids)
    )
    results = tuple(ToolResult(call=call.id, content=(Text(text="ok"),)) for call in calls)
    return Message("assistant", calls), Message("tool", results)


HI = Message("user", (Text(text="Hi"),))


@pytest.mark.rules("A4.5", "A2.9")
@given(st.lists(st.lists(IDS, min_size=1, max_size=3), max_size=6))
def test_what_was_sent_is_the_beginning_of_what_is_sent_next(steps: list[list[str | None]]) -> None:
    encoder = MessageEncoder("p/m", ChatFlags())
    history: tuple[Message, ...] = (HI,)
    before = body(history, encoder=encoder)
    for number, ids in enumerate(steps):
        history = (*history, *asked(number, *ids))
        now = body(history, encoder=encoder)
        assert now == body(history)
        shared = before[: before.index(b"]", before.rindex(b"content"))]
        assert now.startswith(shared)
        before = now
    calls = [call["id"] for message in sent(history) for call in message.get("tool_calls", ())]
    results = [message["tool_call_id"] for message in sent(history) if message["role"] == "tool"]
    assert calls == results
    assert len(set(calls)) == len(calls)


class Seen(set[str]):
    """A state that counts."""

    def copy(self) -> "Seen":
        return Seen(self)


@pytest.mark.rules("A4.5")
def test_a_conversation_that_goes_on_is_not_encoded_again() -> None:
    made: list[str] = []

    def add(state: Seen, messages: tuple[Message, ...]) -> bytes:
        roles = [message.role for message in messages]
        made.extend(roles)
        state.update(roles)
        return ",".join(roles).encode()

    prefixes = Prefixes(Seen, add)
    one, two, three = (Message(role, ()) for role in ("one", "two", "three"))
    assert prefixes.encode(()) == (b"", Seen())
    assert prefixes.encode((one, two)) == (b"one,two", {"one", "two"})
    encoded, state = prefixes.encode((one, two, three))
    assert (encoded, state) == (b"one,two,three", {"one", "two", "three"})
    state.add("spoilt by the caller")
    assert prefixes.encode((one, two, three)) == (b"one,two,three", {"one", "two", "three"})
    assert made == ["one", "two", "three"]
    other = Message("other", ())
    assert prefixes.encode((one, other)) == (b"one,other", {"one", "other"})
    assert made[3:] == ["one", "other"]


def test_only_the_newest_conversations_are_kept() -> None:
    made = 0

    def add(_state: Seen, _messages: tuple[Message, ...]) -> bytes:
        nonlocal made
        made += 1
        return b"x" * 40

    prefixes = Prefixes(Seen, add, max_bytes=2_200)  # room for two, which count for 1,064 each
    asked = [Message("user", (Text(text=str(number)),)) for number in range(3)]
    talks = [(message, Message("assistant", (Text(text="Yes."),))) for message in asked]
    for talk in (*talks, *talks, talks[-1]):
        prefixes.encode(talk)
    assert made == 6


@pytest.mark.rules("A4.11")
def test_trailing_words_end_the_last_message_and_are_gone_from_the_next_request() -> None:
    encoder = MessageEncoder("p/m", ChatFlags())
    words = "<system-reminder>Sunday</system-reminder>"
    (user,) = sent((HI,), encoder=encoder, trailing=words)
    assert user == {"role": "user", "content": f"Hi\n\n{words}"}
    history = (HI, *asked(1, "a"))
    first, _, last = sent(history, encoder=encoder, trailing=words)
    assert first == {"role": "user", "content": "Hi"}
    assert last == {"role": "tool", "tool_call_id": "a", "content": f"ok\n\n{words}"}
    assert words not in str(sent((*history, *asked(2, "b")), encoder=encoder))


@pytest.mark.rules("A4.11")
def test_trailing_words_stand_after_pictures_and_after_words_of_the_model() -> None:
    picture = Message("user", (Text(text="See"), Image(media_type="image/png", data="eA==")))
    assert sent((picture,), trailing="now")[0]["content"][-1] == {"type": "text", "text": "now"}
    said = Message("assistant", (Text(text="Hello"),))
    assert sent((said,), trailing="now")[-1] == {"role": "user", "content": "now"}
    assert sent((), trailing="now") == [{"role": "user", "content": "now"}]


@pytest.mark.rules("A2.32")
def test_what_another_model_thought_and_signed_is_left_out() -> None:
    signed = ToolCall(id=CallId("c"), name="f", arguments="{}", signature="proof")
    content = (
        Thinking(text="hm"),
        Text(text="so"),
        signed,
        Opaque(dialect="openai_chat", raw=DETAILS),
    )
    flags = ChatFlags(replay="reasoning_details", call_signatures=True)
    for writer in (None, "p/m"):
        (mine,) = sent((Message("assistant", content, writer),), flags=flags)
        assert mine["reasoning_details"] == DETAILS["reasoning_details"]
        assert "proof" in str(mine)
    (theirs,) = sent((Message("assistant", content, "q/other"),), flags=flags)
    assert "reasoning_details" not in theirs
    assert "proof" not in str(theirs)
    assert theirs["content"] == "so"
    (plain,) = sent(
        (Message("assistant", content, "q/other"),), flags=ChatFlags(replay="reasoning_content")
    )
    assert "reasoning_content" not in plain


@pytest.mark.rules("A1.19")
def test_a_control_that_the_model_refuses_is_left_out_with_a_notice() -> None:
    request = Request(model="m", messages=(HI,), temperature=0.5, top_p=0.9, stop=("x",))
    model = Model(provider="p", id="m", refuses=("temperature",))
    encoded = encode_request(
        request, model, ChatFlags(refuses=("stop",)), stream=True, official=False
    )
    found = json.loads(encoded.body)
    assert found["top_p"] == 0.9
    assert "temperature" not in found
    assert "stop" not in found
    assert ["'temperature'" in encoded.notices[0], "'stop'" in encoded.notices[1]] == [True, True]


@pytest.mark.rules("A2.29")
def test_a_cache_key_goes_where_it_is_known() -> None:
    assert b"prompt_cache_key" not in body((HI,), cache_key="ses_1")
    assert (
        json.loads(body((HI,), flags=OFFICIAL_FLAGS, cache_key="ses_1"))["prompt_cache_key"]
        == "ses_1"
    )


@pytest.mark.rules("A2.60")
def test_a_tool_of_the_providers_own_is_named_as_left_out() -> None:
    request = Request(model="m", messages=(HI,), server_tools=("web_search",))
    encoded = encode_request(request, MODEL, ChatFlags(), stream=True, official=False)
    assert "own tools were not offered" in encoded.notices[0]


@pytest.mark.rules("R37")
def test_two_messages_of_a_person_in_a_row_become_one() -> None:
    silent = Message("assistant", (Thinking(text="hm"), Text(text=" ")))
    picture = Image(media_type="image/png", data="eA==")
    history = (HI, silent, Message("user", (Text(text="There?"),)))
    assert sent(history) == [{"role": "user", "content": "Hi\n\nThere?"}]
    (both,) = sent((*history, Message("user", (picture,))))
    assert [part["type"] for part in both["content"]] == ["text", "image_url"]
    said = Message("assistant", (Text(text="Yes."),))
    assert [message["role"] for message in sent((HI, said, HI, HI))] == [
        "user",
        "assistant",
        "user",
    ]
