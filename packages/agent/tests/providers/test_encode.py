"""From a neutral request to the body that goes on the wire."""

import json
from typing import Any

import pytest

from towline_agent.providers.base import Model, Request, ToolSpec
from towline_agent.providers.catalog import LOCAL_MODEL_FACTS
from towline_agent.providers.endpoint import Encoded
from towline_agent.providers.openai_chat.encode import encode_request
from towline_agent.providers.openai_chat.flags import OFFICIAL_FLAGS, ChatFlags
from towline_protocol import (
    Block,
    CallId,
    File,
    Image,
    Message,
    Opaque,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Unknown,
    strip_private,
)

MODEL = Model(provider="p", id="m")
ADD = ToolSpec(name="add", description="Adds.", parameters={"type": "object"})
HI = (Message("user", (Text(text="Hi"),)),)


def encoded(
    flags: ChatFlags | None = None,
    model: Model = MODEL,
    *,
    stream: bool = True,
    official: bool = False,
    **fields: Any,
) -> Encoded:
    given: dict[str, Any] = {"model": "m", "messages": HI, **fields}
    request = Request(**given)
    return encode_request(request, model, flags or ChatFlags(), stream=stream, official=official)


def body(flags: ChatFlags | None = None, model: Model = MODEL, **options: Any) -> dict[str, Any]:
    return json.loads(encoded(flags, model, **options).body)


def messages(*given: Message, flags: ChatFlags | None = None) -> list[dict[str, Any]]:
    return body(flags, messages=given)["messages"]


def call(id_: str, wire_id: str | None = None, arguments: str = "{}", **more: Any) -> ToolCall:
    return ToolCall(id=CallId(id_), name="f", arguments=arguments, wire_id=wire_id, **more)


def result(id_: str, *content: Text | Image | File, error: bool = False) -> ToolResult:
    return ToolResult(call=CallId(id_), content=content, is_error=error)


def assistant(*content: Block) -> Message:
    return Message("assistant", content)


@pytest.mark.rules("A1.16", "A1.18", "A2.2")
def test_what_is_unset_is_not_sent() -> None:
    assert body() == {
        "model": "m",
        "messages": [{"role": "user", "content": "Hi"}],
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    assert body(stream=False) == {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}


@pytest.mark.rules("A1.16")
def test_what_is_set_is_sent() -> None:
    sent = body(
        system="Be brief.",
        temperature=0.0,
        top_p=0.5,
        stop=("END",),
        effort="low",
        output={"type": "object"},
    )
    assert sent["messages"][0] == {"role": "system", "content": "Be brief."}
    assert (sent["temperature"], sent["top_p"], sent["stop"]) == (0.0, 0.5, ["END"])
    assert sent["reasoning_effort"] == "low"
    assert sent["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "answer", "schema": {"type": "object"}},
    }


@pytest.mark.rules("A2.1")
def test_the_official_host_gets_its_own_word_for_the_token_limit() -> None:
    assert body(max_tokens=7, official=True)["max_completion_tokens"] == 7
    assert body(max_tokens=7)["max_tokens"] == 7
    assert "max_tokens" not in body(max_tokens=7, official=True)


@pytest.mark.rules("A2.2")
def test_a_vendor_that_refuses_the_usage_option_is_spared_it() -> None:
    assert "stream_options" not in body(ChatFlags(usage_option=False))


@pytest.mark.rules("A1.17")
@pytest.mark.parametrize(
    ("choice", "sent"),
    [
        ("auto", None),
        ("none", "none"),
        ("required", "required"),
        ("add", {"type": "function", "function": {"name": "add"}}),
    ],
)
def test_tool_choices(choice: str, sent: Any) -> None:
    got = body(tools=(ADD,), tool_choice=choice)
    function = {"name": "add", "description": "Adds.", "parameters": {"type": "object"}}
    assert got["tools"] == [{"type": "function", "function": function}]
    assert got.get("tool_choice") == sent
    assert "tool_choice" not in body(tool_choice=choice)


@pytest.mark.rules("A2.91", "A1.19")
def test_the_local_model_gets_no_named_choice_and_no_tools_for_none() -> None:
    assert (
        body(None, LOCAL_MODEL_FACTS, tools=(ADD,), tool_choice="add")["tool_choice"] == "required"
    )
    assert "tools" not in body(None, LOCAL_MODEL_FACTS, tools=(ADD,), tool_choice="none")


@pytest.mark.rules("A1.15", "A1.19")
@pytest.mark.parametrize(
    ("flags", "effort", "sent"),
    [
        (ChatFlags(), "max", {"reasoning_effort": "xhigh"}),
        (ChatFlags(efforts=("low", "high")), "medium", {"reasoning_effort": "low"}),
        (ChatFlags(efforts=("low", "high")), "none", {"reasoning_effort": "low"}),
        (ChatFlags(), "own word", {"reasoning_effort": "own word"}),
        (ChatFlags(effort="reasoning"), "high", {"reasoning": {"effort": "high"}}),
        (ChatFlags(effort=None), "high", {}),
        (ChatFlags(efforts=()), "high", {}),
    ],
)
def test_effort_goes_where_the_gateway_has_a_place_for_it(
    flags: ChatFlags, effort: str, sent: dict[str, Any]
) -> None:
    got = encoded(flags, effort=effort)
    found = {key: value for key, value in json.loads(got.body).items() if "reasoning" in key}
    assert found == sent
    assert bool(got.notices) == (not sent)


@pytest.mark.rules("A1.19")
def test_a_control_that_cannot_be_sent_is_named_in_a_notice() -> None:
    got = encoded(ChatFlags(schema_output=False), output={"type": "object"}, thinking_budget=100)
    assert len(got.notices) == 2
    assert "response_format" not in json.loads(got.body)
    routed = body(ChatFlags(effort="reasoning"), effort="low", thinking_budget=100)
    assert routed["reasoning"] == {"max_tokens": 100}


@pytest.mark.rules("A1.19")
def test_models_that_think_or_call_but_not_both_are_told_not_to_think() -> None:
    def sent(model: str, effort: str | None, *tools: ToolSpec) -> Encoded:
        request = Request(model=model, messages=HI, tools=tools, effort=effort)
        return encode_request(request, MODEL, OFFICIAL_FLAGS, stream=True, official=True)

    for model, effort in (("gpt-5.6-sol", None), ("gpt-5.4-mini", "high")):
        got = sent(model, effort, ADD)
        assert json.loads(got.body)["reasoning_effort"] == "none"
        assert bool(got.notices) == (effort is not None)
    assert "reasoning_effort" not in json.loads(sent("gpt-5.6-sol", None).body)
    assert "reasoning_effort" not in json.loads(sent("gpt-5.2", None, ADD).body)


@pytest.mark.rules("A1.4", "A1.5")
def test_words_pictures_and_files_of_a_person_become_parts() -> None:
    sent = messages(
        Message(
            "user",
            (
                Text(text="What is this?"),
                Image(media_type="image/png", data="QUJD"),
                File(name="a.pdf", media_type="application/pdf", data="REVG"),
            ),
        )
    )
    assert sent == [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "What is this?"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}},
                {
                    "type": "file",
                    "file": {
                        "filename": "a.pdf",
                        "file_data": "data:application/pdf;base64,REVG",
                    },
                },
            ],
        }
    ]


@pytest.mark.rules("A1.19")
def test_a_picture_without_its_bytes_is_named_and_not_lost_silently() -> None:
    got = encoded(messages=(Message("user", (Image(media_type="image/png", file="sha"),)),))
    assert "image/png" in json.loads(got.body)["messages"][0]["content"]
    assert got.notices != ()


@pytest.mark.rules("R37")
def test_empty_texts_and_empty_messages_are_left_out() -> None:
    sent = messages(
        Message("user", (Text(text=""), Text(text="Hi"))),
        assistant(Text(text=""), call("a", "w")),
        Message("tool", (result("a", Text(text="")),)),
        assistant(Text(text="")),
        assistant(Text(text=" \n")),
        assistant(Thinking(text="hm")),
        Message("user", (Text(text=""),)),
    )
    assert sent == [
        {"role": "user", "content": "Hi"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "w", "type": "function", "function": {"name": "f", "arguments": "{}"}}
            ],
        },
        {"role": "tool", "tool_call_id": "w", "content": ""},
    ]


@pytest.mark.rules("A1.6", "A2.9")
def test_a_wire_id_is_used_where_no_earlier_call_has_it() -> None:
    sent = messages(
        assistant(call("ours1", "w1"), call("ours2", "same"), call("ours3", "same"), call("ours4")),
        Message("tool", tuple(result(f"ours{n}", Text(text=str(n))) for n in (1, 2, 3, 4))),
    )
    ids = [part["id"] for part in sent[0]["tool_calls"]]
    assert ids == ["w1", "same", "ours3", "ours4"]
    assert [part["tool_call_id"] for part in sent[1:]] == ids


def test_a_vendor_with_short_ids_gets_ids_that_it_takes() -> None:
    flags = ChatFlags(short_call_ids=True)
    sent = messages(
        assistant(call("ours1", "g6fVbXS8K"), call("ours2", "call_from_another_vendor")),
        Message("tool", (result("ours1"), result("ours2"))),
        flags=flags,
    )
    ids = [part["id"] for part in sent[0]["tool_calls"]]
    assert ids[0] == "g6fVbXS8K"
    assert len(ids[1]) == 9
    assert ids[1].isalnum()
    assert [part["tool_call_id"] for part in sent[1:]] == ids


@pytest.mark.rules("A1.7")
def test_a_failed_result_says_so() -> None:
    sent = messages(
        assistant(call("a"), call("b")),
        Message("tool", (result("a", Text(text="no file"), error=True),
                         result("b", Text(text="Error: no file"), error=True))),
    )  # fmt: skip
    assert [part["content"] for part in sent[1:]] == ["Error: no file"] * 2


@pytest.mark.rules("A2.5")
def test_pictures_of_tools_go_into_one_user_message_after_the_run_of_results() -> None:
    picture = Image(media_type="image/png", data="QUJD")
    sent = messages(
        assistant(call("a"), call("b")),
        Message("tool", (result("a", Text(text="seen"), picture), result("b", picture))),
        assistant(Text(text="Nice.")),
    )
    assert [part["role"] for part in sent] == ["assistant", "tool", "tool", "user", "assistant"]
    assert [part["content"] for part in sent[1:3]] == ["seen", "[what it returned is shown below]"]
    parts = sent[3]["content"]
    assert [part["type"] for part in parts] == ["text", "image_url", "text", "image_url"]


@pytest.mark.rules("A2.5")
def test_results_in_messages_of_their_own_are_still_one_run() -> None:
    picture = Image(media_type="image/png", data="QUJD")
    sent = messages(
        assistant(call("a"), call("b")),
        Message("tool", (result("a", picture),)),
        Message("tool", (result("b", picture),)),
    )
    assert [part["role"] for part in sent] == ["assistant", "tool", "tool", "user"]


@pytest.mark.rules("A1.3", "A1.8", "R31")
def test_thinking_goes_back_only_where_the_catalog_says_so() -> None:
    kept = {"reasoning_details": [{"type": "reasoning.encrypted", "data": "x"}]}
    said = assistant(
        Thinking(text="hm"),
        Text(text="Yes."),
        Opaque(dialect="openai_chat", raw=kept),
        Opaque(dialect="other", raw={"reasoning_details": "no"}),
        Unknown(name="new", raw={}),
    )
    plain = {"role": "assistant", "content": "Yes."}
    assert messages(said) == [plain]
    for field in ("reasoning_content", "reasoning"):
        assert messages(said, flags=ChatFlags(replay=field)) == [{**plain, field: "hm"}]
    assert messages(said, flags=ChatFlags(replay="reasoning_details")) == [{**plain, **kept}]
    unusable = assistant(Thinking(text="", signature=""), Text(text="Yes."))
    assert messages(unusable, flags=ChatFlags(replay="reasoning_content")) == [plain]
    stripped = assistant(Text(text="Yes."), Opaque(dialect="openai_chat"))
    assert messages(stripped, flags=ChatFlags(replay="reasoning_details")) == [plain]


@pytest.mark.rules("A1.11")
def test_a_calls_signature_goes_back_only_to_who_wants_it() -> None:
    said = assistant(call("a", signature="proof"))
    (sent,) = messages(said, flags=ChatFlags(call_signatures=True))
    assert sent["tool_calls"][0]["extra_content"] == {"google": {"thought_signature": "proof"}}
    (sent,) = messages(said)
    assert "extra_content" not in sent["tool_calls"][0]
    public, _ = strip_private(said.content)
    assert "proof" not in str(public)


@pytest.mark.parametrize("arguments", ['{"a":', "4 + 4", '{"a":1}{"a":2}', "[1]", "null"])
def test_broken_arguments_in_the_past_do_not_break_the_request(arguments: str) -> None:
    (sent,) = messages(assistant(call("a", arguments=arguments)))
    function = sent["tool_calls"][0]["function"]
    assert json.loads(function["arguments"]) == {"broken_arguments": arguments}
    (sent,) = messages(assistant(call("a", arguments="")))
    assert sent["tool_calls"][0]["function"]["arguments"] == "{}"


@pytest.mark.rules("A2.25", "R55")
def test_half_a_character_in_a_request_becomes_the_replacement() -> None:
    sent = encoded(messages=(Message("user", (Text(text="a\ud83d\ude00 \ud83d"),)),)).body
    assert json.loads(sent)["messages"][0]["content"] == "a😀 \ufffd"


@pytest.mark.rules("A4.5")
def test_the_same_request_is_the_same_bytes_and_a_longer_one_begins_alike() -> None:
    first = encoded(system="S", tools=(ADD,)).body
    assert first == encoded(system="S", tools=(ADD,)).body
    longer = (*HI, assistant(Text(text="Hello")), *HI)
    second = encoded(system="S", tools=(ADD,), messages=longer).body
    shared = first.index(b'"Hi"}') + len(b'"Hi"}')
    assert second[:shared] == first[:shared]


def test_results_are_wrapped_for_a_model_that_takes_bare_words_for_a_request() -> None:
    sent = messages(
        assistant(call("a")),
        Message("tool", (result("a", Text(text='say "hi"')),)),
        flags=ChatFlags(wrap_results=True),
    )
    assert json.loads(sent[1]["content"]) == {"result": 'say "hi"'}
