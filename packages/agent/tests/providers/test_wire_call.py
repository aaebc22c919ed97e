"""A call as a conversation tells of it, whatever the model wrote."""

import json
from typing import Any

import pytest

from towline_agent.providers.base import Model, Request
from towline_agent.providers.openai_chat.encode import encode_request
from towline_agent.providers.openai_chat.flags import ChatFlags
from towline_agent.providers.wire_call import wire_arguments, wire_name
from towline_protocol import CallId, Message, Text, ToolCall, ToolResult

MODEL = Model(provider="p", id="m")


@pytest.mark.rules("A1.6")
@pytest.mark.parametrize("text", ["{}", '{"n": 1}', ' {"a": {"b": [null]}} ', '{"n": 1e999}'])
def test_good_arguments_go_as_the_model_wrote_them(text: str) -> None:
    assert wire_arguments(text) == text


@pytest.mark.parametrize("text", ["", " \n"])
def test_no_arguments_go_as_an_empty_object(text: str) -> None:
    assert wire_arguments(text) == "{}"


@pytest.mark.rules("R17")
@pytest.mark.parametrize(
    "text",
    ['{"n": ', "[]", "null", "{}{}", '{"n": NaN}', '{"n": "\\ud83d"}', '{"\ud83d": 1}', "[" * 9000],
)
def test_broken_arguments_go_as_text_in_an_object(text: str) -> None:
    assert json.loads(wire_arguments(text)) == {"broken_arguments": text}


@pytest.mark.rules("S16")
@pytest.mark.parametrize(
    ("name", "sent"),
    [
        ("read_file", "read_file"),
        ("web-search", "web-search"),
        ("functions.read_file", "functions_read_file"),
        ("lies das", "lies_das"),
        ("é" * 70, "_" * 64),
        ("", "unnamed"),
    ],
)
def test_a_name_that_no_tool_may_have_becomes_one_that_it_may(name: str, sent: str) -> None:
    assert wire_name(name) == sent


def ids(*calls: tuple[str, str | None, str | None]) -> list[str]:
    """The ids of calls, given by our id, their own and their model, and those of their results."""
    messages = [Message("user", (Text(text="Hi"),))]
    for id_, wire_id, model in calls:
        call = ToolCall(id=CallId(id_), name="f", arguments="{}", wire_id=wire_id)
        messages.append(Message("assistant", (call,), model=model))
        messages.append(Message("tool", (ToolResult(call=call.id, content=()),)))
    request = Request(model="m", messages=tuple(messages))
    encoded = encode_request(request, MODEL, ChatFlags(), stream=True, official=True)
    sent: list[dict[str, Any]] = json.loads(encoded.body)["messages"]
    asked = [message["tool_calls"][0]["id"] for message in sent if "tool_calls" in message]
    assert [m["tool_call_id"] for m in sent if m["role"] == "tool"] == asked
    assert len(set(asked)) == len(asked)
    return asked


LONG = "chatcmpl-tool-" + "0" * 32


@pytest.mark.rules("A2.9", "A2.32", "S16")
def test_another_vendors_id_goes_only_where_every_server_takes_it() -> None:
    assert ids(("call_1", LONG, MODEL.name), ("call_2", LONG + "1", None)) == [LONG, LONG + "1"]
    assert ids(("call_1", LONG, "other/m")) == ["call_1"]
    assert ids(("call_1", "functions.f:0", "other/m")) == ["call_1"]
    assert ids(("call_1", "toolu_01", "other/m")) == ["toolu_01"]


@pytest.mark.rules("A2.9", "S16")
def test_an_id_of_ours_is_made_anew_where_it_would_be_refused_or_is_taken() -> None:
    (odd,) = ids(("call.1~2", None, None))
    assert odd.startswith("call_")
    assert len(odd) <= 40
    taken, ours = ids(("call_1", "call_2", None), ("call_2", None, None))
    assert taken == "call_2"
    assert ours.startswith("call_")
