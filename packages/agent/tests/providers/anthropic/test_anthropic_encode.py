"""From a neutral request to the body that the Messages API takes."""

import json
from typing import Any

import pytest

from towline_agent.providers.anthropic.encode import encode_request
from towline_agent.providers.anthropic.flags import AnthropicFlags
from towline_agent.providers.base import Model, Request, ToolSpec
from towline_agent.providers.endpoint import Encoded
from towline_protocol import (
    Block,
    CallId,
    File,
    Image,
    Message,
    Text,
    ToolCall,
    ToolResult,
)

_Json = dict[str, Any]

MODEL = Model(provider="p", id="m")
ADD = ToolSpec(name="add", description="Adds.", parameters={"type": "object"})
NOW = ToolSpec(name="now", description="", parameters={})
HI = (Message("user", (Text(text="Hi"),)),)
PLAIN = AnthropicFlags(cache_marks=False)
LONG = {"type": "ephemeral", "ttl": "1h"}
SHORT = {"type": "ephemeral"}


def encoded(
    flags: AnthropicFlags = PLAIN,
    model: Model = MODEL,
    *,
    stream: bool = True,
    **fields: Any,
) -> Encoded:
    given: _Json = {"model": model.id, "messages": HI, **fields}
    request = Request(**given)
    return encode_request(request, model, flags, stream=stream)


def body(flags: AnthropicFlags = PLAIN, model: Model = MODEL, **options: Any) -> _Json:
    return json.loads(encoded(flags, model, **options).body)


def messages(*given: Message, flags: AnthropicFlags = PLAIN, **options: Any) -> list[_Json]:
    return body(flags, messages=given, **options)["messages"]


def call(id_: str, wire_id: str | None = None, arguments: str = "{}", **more: Any) -> ToolCall:
    return ToolCall(id=CallId(id_), name="f", arguments=arguments, wire_id=wire_id, **more)


def result(id_: str, *content: Text | Image | File, error: bool = False) -> ToolResult:
    return ToolResult(call=CallId(id_), content=content, is_error=error)


def user(*content: Block | str) -> Message:
    return Message("user", tuple(Text(text=b) if isinstance(b, str) else b for b in content))


def assistant(*content: Block, model: str | None = None) -> Message:
    return Message("assistant", content, model=model)


def tool(*content: ToolResult) -> Message:
    return Message("tool", content)


@pytest.mark.rules("A1.16", "A1.18", "A1.21")
def test_what_is_unset_is_not_sent_but_the_token_cap() -> None:
    text = {"type": "text", "text": "Hi"}
    least = {"model": "m", "max_tokens": 8192, "messages": [{"role": "user", "content": [text]}]}
    assert body() == {**least, "stream": True}
    assert body(stream=False) == least


@pytest.mark.rules("A1.16")
def test_what_is_set_is_sent() -> None:
    sent = body(
        system="Be brief.",
        tools=(ADD, NOW),
        max_tokens=7,
        temperature=0.5,
        top_p=0.9,
        stop=("a", "b"),
    )
    assert {key: sent[key] for key in sent if key not in ("messages", "model", "stream")} == {
        "max_tokens": 7,
        "system": "Be brief.",
        "temperature": 0.5,
        "top_p": 0.9,
        "stop_sequences": ["a", "b"],
        "tools": [
            {"name": "add", "description": "Adds.", "input_schema": {"type": "object"}},
            {"name": "now", "input_schema": {"type": "object"}},
        ],
    }


@pytest.mark.rules("A2.34")
def test_there_are_three_breakpoints() -> None:
    sent = body(
        AnthropicFlags(),
        system="Be brief.",
        tools=(ADD, NOW),
        messages=(user("one"), assistant(Text(text="two")), user("three", "four")),
        trailing="<now>",
    )
    assert sent["system"] == [{"type": "text", "text": "Be brief.", "cache_control": LONG}]
    assert [item.get("cache_control") for item in sent["tools"]] == [None, LONG]
    marks = [part.get("cache_control") for m in sent["messages"] for part in m["content"]]
    assert marks == [None, None, None, SHORT, None]
    assert sent["messages"][-1]["content"][-1] == {"type": "text", "text": "<now>"}
    assert b"cache_control" not in encoded(system="s", tools=(ADD,), trailing="t").body


@pytest.mark.rules("A2.34", "A2.40")
def test_the_tail_of_a_tool_loop_is_its_last_result() -> None:
    sent = messages(
        user("go"),
        assistant(call("a"), call("b")),
        tool(result("a", Text(text="1"))),
        tool(result("b", Text(text="2"))),
        flags=AnthropicFlags(),
        trailing="<now>",
    )
    assert [message["role"] for message in sent] == ["user", "assistant", "user"]
    first, second, trailing = sent[2]["content"]
    assert first == {"type": "tool_result", "tool_use_id": "a", "content": "1"}
    assert second["cache_control"] == SHORT
    assert trailing == {"type": "text", "text": "<now>"}


@pytest.mark.rules("A1.17")
def test_tool_choice_is_said_in_the_words_of_the_api() -> None:
    def choice(choice: str, model: Model = MODEL) -> _Json:
        sent = body(PLAIN, model, tools=(ADD,), tool_choice=choice)
        return {key: sent[key] for key in ("tool_choice", "tools") if key in sent}

    tools = {"tools": [{"name": "add", "description": "Adds.", "input_schema": ADD.parameters}]}
    assert choice("auto") == tools
    assert choice("none") == {**tools, "tool_choice": {"type": "none"}}
    assert choice("required")["tool_choice"] == {"type": "any"}
    assert choice("add")["tool_choice"] == {"type": "tool", "name": "add"}
    small = Model(
        provider="p", id="m", named_choice=False, none_without_tools=True, one_call_per_step=True
    )
    assert choice("none", small) == {}
    assert choice("add", small)["tool_choice"] == {"type": "any", "disable_parallel_tool_use": True}
    assert choice("auto", small)["tool_choice"]["disable_parallel_tool_use"]
    assert "tool_choice" not in body(tool_choice="required")


@pytest.mark.rules("A1.19")
def test_what_the_model_refuses_is_left_out_and_said() -> None:
    model = Model(provider="p", id="claude-fable-5-2", refuses=("temperature", "stop", "effort"))
    sent = encoded(
        model=model,
        temperature=0.5,
        top_p=0.5,
        stop=("a", " "),
        effort="high",
        tools=(ADD,),
        tool_choice="required",
    )
    assert {"temperature", "stop_sequences", "thinking", "tool_choice"}.isdisjoint(
        json.loads(sent.body)
    )
    assert json.loads(sent.body)["top_p"] == 0.5
    assert len(sent.notices) == 5


@pytest.mark.rules("A2.60", "A2.62", "A1.19")
def test_a_search_of_the_vendors_own_is_a_tool_of_its_version() -> None:
    sent = body(AnthropicFlags(), tools=(ADD,), server_tools=("web_search",))
    assert sent["tools"][1] == {
        "type": "web_search_20250305",
        "name": "web_search",
        "cache_control": LONG,
    }
    same = ToolSpec(name="web_search", description="Ours.", parameters={})
    twice = body(tools=(same,), server_tools=("web_search", "web_search"))
    assert twice["tools"] == [{"type": "web_search_20250305", "name": "web_search"}]
    assert "tools" not in body()
    for flags, name in ((AnthropicFlags(web_search=None), "web_search"), (PLAIN, "dreaming")):
        without = encoded(flags, server_tools=(name,))
        assert "tools" not in json.loads(without.body)
        assert len(without.notices) == 1


@pytest.mark.rules("A1.18", "A1.19")
def test_an_answer_is_held_to_a_schema_where_that_works() -> None:
    inner = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}}
    schema: _Json = {
        "$schema": "x",
        "type": "object",
        "properties": {
            "minimum": {"type": "string", "pattern": "a", "enum": ["a", None]},
            "list": {"type": "array", "items": {"$ref": "#/$defs/Inner"}, "maxItems": 3},
            "either": {"oneOf": [{"type": "null"}, inner]},
            "fixed": {"const": {"minimum": 1}},
        },
        "$defs": {"Inner": inner},
        "required": ["list"],
    }
    closed = {
        "type": "object",
        "properties": {"n": {"type": "integer"}},
        "additionalProperties": False,
    }
    assert body(output=schema)["output_config"] == {
        "format": {
            "type": "json_schema",
            "schema": {
                "type": "object",
                "properties": {
                    "minimum": {"type": "string", "enum": ["a", None]},
                    "list": {"type": "array", "items": {"$ref": "#/$defs/Inner"}},
                    "either": {"anyOf": [{"type": "null"}, closed]},
                    "fixed": {"const": {"minimum": 1}},
                },
                "$defs": {"Inner": closed},
                "required": ["list"],
                "additionalProperties": False,
            },
        }
    }
    for flags, model, output in (
        (AnthropicFlags(schema_output=False), MODEL, closed),
        (PLAIN, Model(provider="p", id="anthropic/claude-sonnet-4"), closed),
        (PLAIN, MODEL, {"type": "object", "additionalProperties": {"type": "string"}}),
        (PLAIN, MODEL, {"type": "array", "items": {"type": "object"}}),
    ):
        sent = encoded(flags, model, output=output)
        assert "output_config" not in json.loads(sent.body)
        assert len(sent.notices) == 1
    empty = {"type": "object", "additionalProperties": False}
    assert body(output=empty)["output_config"]["format"]["schema"] == empty


def test_system_messages_at_the_start_belong_to_the_system_prompt() -> None:
    sent = body(messages=(Message("system", (Text(text="two"),)), *HI), system="one")
    assert sent["system"] == "one\n\ntwo"
    assert len(sent["messages"]) == 1
    assert "system" not in body(system=" ")
