"""From a neutral request to the body that goes on the wire."""

import json
from typing import Any

import pytest

from towline_agent.providers.base import Model, Request, ToolSpec
from towline_agent.providers.gemini.contents import HistoryEncoder
from towline_agent.providers.gemini.encode import Prompt, encode_request
from towline_agent.providers.gemini.flags import GeminiFlags
from towline_protocol import (
    Block,
    CallId,
    Message,
    Text,
    ToolCall,
)

ADD = ToolSpec(
    name="add",
    description="Adds.",
    parameters={"type": "object", "properties": {"a": {"type": "integer"}}},
)
HI = (Message("user", (Text(text="Hi"),)),)
NEW, OLD = "gemini-3.8-flash", "gemini-2.5-flash"
_Json = dict[str, Any]


def encoded(
    name: str = "m",
    *,
    facts: Model | None = None,
    vertex: bool = False,
    history: HistoryEncoder | None = None,
    **fields: Any,
) -> Prompt:
    given: _Json = {"model": name, "messages": HI, **fields}
    model = facts or Model(provider="gemini", id=name)
    return encode_request(Request(**given), model, GeminiFlags(vertex=vertex), history)


def body(name: str = "m", **options: Any) -> _Json:
    return json.loads(encoded(name, **options).body())


def contents(*given: Message, name: str = NEW, **options: Any) -> list[_Json]:
    return body(name, messages=given, **options)["contents"]


def call(id_: str, wire_id: str | None = None, **more: Any) -> ToolCall:
    made: _Json = {"name": "f", "arguments": "{}", **more}
    return ToolCall(id=CallId(id_), wire_id=wire_id, **made)


def said(*content: Block, model: str | None = None) -> Message:
    return Message("assistant", content, model)


@pytest.mark.rules("A1.16", "A1.18")
def test_what_is_unset_is_not_sent() -> None:
    assert body() == {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]}


@pytest.mark.rules("A1.16")
def test_what_is_set_is_sent() -> None:
    sent = body(
        OLD,
        system="Be brief.",
        tools=(ADD, ToolSpec(name="now", description="", parameters={"type": "object"})),
        max_tokens=100,
        temperature=0.5,
        top_p=0.9,
        stop=("a", "b", "c", "d", "e", "f"),
    )
    assert sent["systemInstruction"] == {"parts": [{"text": "Be brief."}]}
    assert sent["tools"] == [
        {
            "functionDeclarations": [
                {
                    "name": "add",
                    "description": "Adds.",
                    "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}},
                },
                {"name": "now"},
            ]
        }
    ]
    assert "toolConfig" not in sent
    config = sent["generationConfig"]
    assert (config["temperature"], config["topP"]) == (0.5, 0.9)
    assert config["stopSequences"] == ["a", "b", "c", "d", "e"]
    assert len(encoded(stop=tuple("abcdef")).notices) == 1


@pytest.mark.rules("A1.19")
def test_a_control_that_the_model_refuses_is_left_out_with_a_notice() -> None:
    facts = Model(
        provider="gemini", id=NEW, refuses=("temperature", "top_p", "stop", "effort", "output")
    )
    options: _Json = {
        "temperature": 1.0,
        "top_p": 1.0,
        "stop": ("x",),
        "effort": "low",
        "output": {"type": "object"},
    }
    sent = encoded(NEW, facts=facts, **options)
    config = json.loads(sent.body())["generationConfig"]
    assert config == {"thinkingConfig": {"includeThoughts": True}}
    assert len(sent.notices) == 5


@pytest.mark.rules("A1.17")
@pytest.mark.parametrize(
    ("choice", "config"),
    [
        ("none", {"mode": "NONE"}),
        ("required", {"mode": "ANY"}),
        ("add", {"mode": "ANY", "allowedFunctionNames": ["add"]}),
    ],
)
def test_the_choice_of_a_tool_is_a_mode(choice: str, config: _Json) -> None:
    sent = body(tools=(ADD,), tool_choice=choice)
    assert sent["toolConfig"] == {"functionCallingConfig": config}
    assert "toolConfig" not in body(tool_choice=choice)


@pytest.mark.rules("A2.61", "A2.60")
def test_search_stands_beside_functions_from_generation_3_on() -> None:
    search: _Json = {"googleSearch": {}}
    options: _Json = {"server_tools": ("web_search",)}
    assert body(NEW, **options)["tools"] == [search]
    both = body(NEW, tools=(ADD,), **options)
    assert both["tools"][1] == search
    assert both["toolConfig"] == {"includeServerSideToolInvocations": True}
    assert "toolConfig" not in body(NEW, tools=(ADD,), vertex=True, **options)
    assert body(OLD, **options)["tools"] == [search]
    without = encoded(OLD, tools=(ADD,), **options)
    assert len(json.loads(without.body())["tools"]) == 1
    assert "search" in without.notices[0]
    assert "tools" not in body(NEW)
    assert len(encoded(NEW, server_tools=("bash",)).notices) == 1


@pytest.mark.rules("A4.60")
def test_a_schema_of_the_answer_goes_with_tools_only_from_generation_3_on() -> None:
    output = {"type": "object", "properties": {"a": {"const": "x"}}, "additionalProperties": False}
    form = {
        "responseMimeType": "application/json",
        "responseSchema": {
            "type": "object",
            "properties": {"a": {"type": "string", "enum": ["x"]}},
        },
    }
    assert body(output=output)["generationConfig"] == form
    with_tools = body(NEW, output=output, tools=(ADD,))["generationConfig"]
    assert form.items() <= with_tools.items()
    given: tuple[_Json, ...] = ({"tools": (ADD,)}, {"server_tools": ("web_search",)})
    for options in given:
        refused = encoded(OLD, output=output, **options)
        assert b"responseMimeType" not in refused.body()
        assert len(refused.notices) == 1
    free = body(output={"type": "object"})["generationConfig"]
    assert free == {"responseMimeType": "application/json"}


@pytest.mark.rules("A2.56")
def test_a_cached_beginning_is_named_and_the_rest_is_sent() -> None:
    history = (*HI, said(Text(text="a")), *HI, *HI)
    sent = encoded(NEW, messages=history, system="S", tools=(ADD,), max_tokens=5, trailing="n")
    assert sent.settled == 2
    cached = json.loads(sent.body("cachedContents/1", sent.settled))
    assert cached == {
        "cachedContent": "cachedContents/1",
        "contents": [
            {"role": "user", "parts": [{"text": "Hi"}]},
            {"role": "user", "parts": [{"text": "Hi"}, {"text": "n"}]},
        ],
        "generationConfig": json.loads(sent.body())["generationConfig"],
    }
    kept = json.loads(b"{%s}" % sent.prefix(sent.settled))
    assert kept.keys() == {"systemInstruction", "tools", "contents"}
    assert len(kept["contents"]) == 2
    assert sent.digest(2) != sent.digest(3)
