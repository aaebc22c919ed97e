"""What people show and what tools return, as parts of a request; and the words at its end."""

import json
from typing import Any

import pytest

from towline_agent.providers.base import Model, Request
from towline_agent.providers.endpoint import Encoded
from towline_agent.providers.openai_responses.encode import encode_request
from towline_agent.providers.openai_responses.flags import ResponsesFlags
from towline_agent.providers.openai_responses.history import HistoryEncoder
from towline_protocol import Block, CallId, File, Image, Message, Text, ToolCall, ToolResult

MODEL = Model(provider="p", id="m")
_Json = dict[str, Any]


def encoded(
    *messages: Message,
    flags: ResponsesFlags | None = None,
    history: HistoryEncoder | None = None,
    trailing: str = "",
) -> Encoded:
    request = Request(model="m", messages=messages, trailing=trailing)
    return encode_request(request, MODEL, flags or ResponsesFlags(), stream=True, history=history)


def items(*messages: Message, **options: Any) -> list[_Json]:
    return json.loads(encoded(*messages, **options).body)["input"]


def user(*blocks: Block) -> Message:
    return Message("user", blocks)


def assistant(*blocks: Block) -> Message:
    return Message("assistant", blocks)


def results(*blocks: ToolResult) -> Message:
    return Message("tool", blocks)


def call(id_: str) -> ToolCall:
    return ToolCall(id=CallId(id_), name="f", arguments="{}")


def result(id_: str, *content: Text | Image | File, error: bool = False) -> ToolResult:
    return ToolResult(call=CallId(id_), content=content, is_error=error)


def asked(*texts: str, role: str = "user") -> _Json:
    parts = [{"type": "input_text", "text": text} for text in texts]
    return {"type": "message", "role": role, "content": parts}


def output(name: str, words: Any) -> _Json:
    return {"type": "function_call_output", "call_id": name, "output": words}


def kinds(sent: list[_Json]) -> list[str]:
    return [item["type"] for item in sent]


HI = user(Text(text="Hi"))


@pytest.mark.rules("A1.1")
def test_roles() -> None:
    sent = items(Message("system", (Text(text="a"),)), HI, Message("odd", (Text(text="b"),)))
    assert sent == [asked("a", role="system"), asked("Hi"), asked("b")]


@pytest.mark.rules("A1.4", "A1.5")
def test_pictures_and_files_of_a_person_are_parts() -> None:
    (sent,) = items(
        user(
            Text(text="See"),
            Image(media_type="image/png", data="AA=="),
            File(name="a.pdf", media_type="application/pdf", data="BB=="),
        )
    )
    assert sent["content"][1:] == [
        {"type": "input_image", "image_url": "data:image/png;base64,AA==", "detail": "auto"},
        {
            "type": "input_file",
            "filename": "a.pdf",
            "file_data": "data:application/pdf;base64,BB==",
        },
    ]


def test_a_picture_whose_bytes_are_gone_leaves_a_word() -> None:
    got = encoded(user(Image(media_type="image/png", file="sha")))
    (item,) = json.loads(got.body)["input"]
    assert item == asked("[a image/png block that is no longer there]")
    assert len(got.notices) == 1


@pytest.mark.rules("A1.7")
def test_results_are_text_with_errors_marked() -> None:
    sent = items(
        assistant(call("a"), call("b"), call("c"), call("d")),
        results(
            result("a", Text(text="x"), Text(text=""), Text(text="y")),
            result("b"),
            result("c", Text(text="bad"), error=True),
            result("d", Text(text="Error: bad"), error=True),
        ),
    )
    assert [item["output"] for item in sent[4:]] == ["x\ny", "", "Error: bad", "Error: bad"]


@pytest.mark.rules("A1.7")
def test_results_may_hold_pictures_and_files_in_their_order() -> None:
    picture = Image(media_type="image/png", data="AA==")
    sent = items(
        assistant(call("a"), call("b")),
        results(
            result("a", Text(text="x"), picture, Text(text="y")), result("b", picture, error=True)
        ),
    )
    shown = {"type": "input_image", "image_url": "data:image/png;base64,AA==", "detail": "auto"}
    text = {"type": "input_text"}
    assert sent[2]["output"] == [{**text, "text": "x"}, shown, {**text, "text": "y"}]
    assert sent[3]["output"] == [{**text, "text": "Error:"}, shown]


@pytest.mark.rules("A2.5")
def test_where_results_are_text_alone_pictures_follow_in_a_message() -> None:
    picture = Image(media_type="image/png", data="AA==")
    sent = items(
        assistant(call("a"), call("b")),
        results(result("a", picture), result("b", Text(text="x"))),
        flags=ResponsesFlags(result_parts=False),
    )
    assert kinds(sent[2:]) == ["function_call_output", "function_call_output", "message"]
    assert sent[2]["output"] == "[what it returned is shown below]"
    assert [part["type"] for part in sent[4]["content"]] == ["input_text", "input_image"]
    assert sent[4]["content"][0]["text"] == "Returned by f:"


@pytest.mark.rules("A4.11")
def test_trailing_words_go_to_the_end_of_the_last_message() -> None:
    picture = Image(media_type="image/png", data="AA==")
    calls = assistant(call("a"))
    assert items(HI, trailing="now")[-1] == asked("Hi", "now")
    assert items(calls, results(result("a", Text(text="x"))), trailing="now")[1:] == [
        output("a", "x\n\nnow")
    ]
    assert items(calls, results(result("a")), trailing="now")[-1] == output("a", "now")
    shown = items(calls, results(result("a", picture)), trailing="now")[-1]["output"]
    assert shown[-1] == {"type": "input_text", "text": "now"}
    flags = ResponsesFlags(result_parts=False)
    below = items(calls, results(result("a", picture)), trailing="now", flags=flags)[-1]
    assert below["content"][-1] == {"type": "input_text", "text": "now"}
    assert items(HI, assistant(Text(text="a")), trailing="now")[-1] == asked("now")
    assert items(trailing="now") == [asked("now")]


def test_what_was_left_out_is_said_once() -> None:
    history = HistoryEncoder(MODEL.name, ResponsesFlags())
    gone = user(Image(media_type="image/png", file="sha"))
    notices = [len(encoded(*[gone, HI, HI][:end], history=history).notices) for end in (2, 3)]
    assert notices == [1, 0]
