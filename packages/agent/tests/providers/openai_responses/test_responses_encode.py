"""The controls of a request: what is sent, what is left out and what is said of it."""

import json
from typing import Any

import pytest

from towline_agent.providers.base import Model, Request, ToolSpec
from towline_agent.providers.endpoint import Encoded
from towline_agent.providers.openai_responses.encode import encode_request
from towline_agent.providers.openai_responses.flags import (
    GATEWAY_FLAGS,
    OFFICIAL_FLAGS,
    ResponsesFlags,
)
from towline_protocol import Message, Text

PLAIN = Model(provider="p", id="m")
THINKER = Model(provider="p", id="m", thinking="effort")
ADD = ToolSpec(name="add", description="Adds.", parameters={"type": "object"})
HI = (Message("user", (Text(text="Hi"),)),)
_Json = dict[str, Any]


def encoded(
    flags: ResponsesFlags | None = None,
    model: Model = PLAIN,
    *,
    stream: bool = True,
    reasons: bool = False,
    **fields: Any,
) -> Encoded:
    given: _Json = {"model": model.id, "messages": HI, **fields}
    return encode_request(
        Request(**given), model, flags or ResponsesFlags(), stream=stream, reasons=reasons
    )


def body(flags: ResponsesFlags | None = None, model: Model = PLAIN, **options: Any) -> _Json:
    return json.loads(encoded(flags, model, **options).body)


def named(name: str) -> Model:
    return Model(provider="p", id=name)


@pytest.mark.rules("A1.16", "A1.18", "A2.26")
def test_what_is_unset_is_not_sent() -> None:
    item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi"}]}
    assert body() == {"model": "m", "input": [item], "store": False, "stream": True}
    assert body(stream=False) == {"model": "m", "input": [item], "store": False}


@pytest.mark.rules("A1.16")
def test_what_is_set_is_sent() -> None:
    sent = body(
        system="Be brief.",
        temperature=0.0,
        top_p=0.5,
        max_tokens=100,
        effort="low",
        output={"type": "object"},
    )
    assert sent["instructions"] == "Be brief."
    assert (sent["temperature"], sent["top_p"], sent["max_output_tokens"]) == (0.0, 0.5, 100)
    assert sent["reasoning"] == {"effort": "low"}
    assert sent["text"] == {
        "format": {"type": "json_schema", "name": "answer", "schema": {"type": "object"}}
    }
    assert "parallel_tool_calls" not in sent


@pytest.mark.rules("A1.17")
@pytest.mark.parametrize(
    ("choice", "sent"),
    [
        ("auto", None),
        ("none", "none"),
        ("required", "required"),
        ("add", {"type": "function", "name": "add"}),
    ],
)
def test_tool_choices(choice: str, sent: Any) -> None:
    got = body(tools=(ADD,), tool_choice=choice)
    assert got["tools"] == [
        {
            "type": "function",
            "name": "add",
            "description": "Adds.",
            "parameters": {"type": "object"},
            "strict": False,
        }
    ]
    assert got.get("tool_choice") == sent
    assert "tools" not in body(tool_choice=choice)
    assert "tool_choice" not in body(tool_choice=choice)


@pytest.mark.rules("A1.17", "A1.19")
def test_a_model_that_takes_no_name_or_no_choice_is_asked_otherwise() -> None:
    unnamed = Model(provider="p", id="m", named_choice=False)
    assert body(None, unnamed, tools=(ADD,), tool_choice="add")["tool_choice"] == "required"
    quiet = Model(provider="p", id="m", none_without_tools=True)
    assert "tools" not in body(None, quiet, tools=(ADD,), tool_choice="none")


def test_a_tool_without_a_description_has_none() -> None:
    bare = ToolSpec(name="f", description="", parameters={})
    assert "description" not in body(tools=(bare,))["tools"][0]


@pytest.mark.rules("A2.27")
@pytest.mark.parametrize(
    ("name", "thinks"),
    [
        ("gpt-5", True),
        ("gpt-5-nano-2025-08-07", True),
        ("openai/gpt-5.6-sol", True),
        ("openai.gpt-6-astra", True),
        ("gpt-10", True),
        ("o3", True),
        ("o4-mini", True),
        ("codex-mini-latest", True),
        ("gpt-5-chat-latest", False),
        ("gpt-4o", False),
        ("gpt-4.1-mini", False),
        ("openai.gpt-oss-20b", False),
        ("olmo-3", False),
        ("m", False),
    ],
)
def test_models_that_think_are_asked_for_their_encrypted_reasoning(name: str, thinks: bool) -> None:
    for flags in (ResponsesFlags(), OFFICIAL_FLAGS):
        sent = body(flags, named(name))
        assert sent.get("include") == (["reasoning.encrypted_content"] if thinks else None)


@pytest.mark.rules("A2.27")
def test_facts_and_what_was_seen_go_before_the_name() -> None:
    asked = ["reasoning.encrypted_content"]
    assert body(model=THINKER)["include"] == asked
    assert body(reasons=True)["include"] == asked
    quiet = Model(provider="p", id="gpt-5", thinking="none")
    assert "include" not in body(model=quiet)
    assert "include" not in body(ResponsesFlags(encrypted=False), THINKER)


@pytest.mark.rules("A1.15", "A1.19")
@pytest.mark.parametrize(
    ("flags", "name", "effort", "sent"),
    [
        (None, "m", "xhigh", "xhigh"),
        (None, "m", "odd", "odd"),
        (OFFICIAL_FLAGS, "gpt-5", "none", "minimal"),
        (OFFICIAL_FLAGS, "gpt-5-mini", "xhigh", "high"),
        (OFFICIAL_FLAGS, "gpt-5-codex", "minimal", "low"),
        (OFFICIAL_FLAGS, "gpt-5-pro", "low", "medium"),
        (OFFICIAL_FLAGS, "gpt-5.1", "minimal", "none"),
        (OFFICIAL_FLAGS, "gpt-5.1-codex", "xhigh", "high"),
        (OFFICIAL_FLAGS, "gpt-5.1-codex-max", "xhigh", "xhigh"),
        (OFFICIAL_FLAGS, "gpt-5.4-2026-03-05", "max", "xhigh"),
        (OFFICIAL_FLAGS, "gpt-5.6-sol", "max", "max"),
        (OFFICIAL_FLAGS, "gpt-6-astra", "minimal", "none"),
        (OFFICIAL_FLAGS, "o3", "none", "low"),
        (OFFICIAL_FLAGS, "gpt-4.1", "low", None),
        (OFFICIAL_FLAGS, "gpt-5-chat-latest", "low", None),
        (GATEWAY_FLAGS["xai"], "grok-4.3", "minimal", "none"),
        (GATEWAY_FLAGS["xai"], "grok-4.5", "none", "low"),
        (GATEWAY_FLAGS["xai"], "grok-4.7", "max", "xhigh"),
        (GATEWAY_FLAGS["xai"], "grok-code-fast-1", "low", None),
        (GATEWAY_FLAGS["llamacpp"], "m", "low", None),
    ],
)
def test_an_effort_that_a_model_does_not_take_becomes_the_next_weaker_one(
    flags: ResponsesFlags | None, name: str, effort: str, sent: str | None
) -> None:
    got = encoded(flags, named(name), effort=effort)
    reasoning = json.loads(got.body).get("reasoning", {})
    assert reasoning.get("effort") == sent
    assert len(got.notices) == (sent is None)


@pytest.mark.rules("A1.19")
def test_a_model_that_does_not_think_gets_no_effort() -> None:
    got = encoded(None, Model(provider="p", id="m", thinking="none"), effort="high")
    assert "reasoning" not in json.loads(got.body)
    assert got.notices == ("The effort was not sent: 'm' takes none here.",)


def test_thinking_is_summed_up_where_the_gateway_does_it() -> None:
    assert body(OFFICIAL_FLAGS, THINKER)["reasoning"] == {"summary": "auto"}
    sent = body(OFFICIAL_FLAGS, named("gpt-5.4"), effort="high")
    assert sent["reasoning"] == {"effort": "high", "summary": "auto"}
    assert body(OFFICIAL_FLAGS, named("gpt-5.4"), effort="none")["reasoning"] == {"effort": "none"}
    assert "reasoning" not in body(OFFICIAL_FLAGS, named("gpt-4o"))
    assert "reasoning" not in body(None, THINKER)


@pytest.mark.rules("A1.19")
def test_a_thinking_budget_goes_where_there_is_a_place_for_it() -> None:
    router = ResponsesFlags(thinking_budget=True)
    assert body(router, thinking_budget=2000, effort="low")["reasoning"] == {"max_tokens": 2000}
    got = encoded(thinking_budget=2000)
    assert "reasoning" not in json.loads(got.body)
    assert got.notices == ("The thinking budget was not sent: 'm' takes none here.",)


@pytest.mark.rules("A1.19")
def test_models_that_think_are_not_told_how_to_sample() -> None:
    got = encoded(None, THINKER, temperature=0.5, top_p=0.9)
    sent = json.loads(got.body)
    assert "temperature" not in sent
    assert "top_p" not in sent
    assert len(got.notices) == 2
    assert (
        body(ResponsesFlags(thinkers_sample=True), THINKER, temperature=0.5)["temperature"] == 0.5
    )


@pytest.mark.rules("A1.19")
@pytest.mark.parametrize(
    ("fields", "key"),
    [
        ({"temperature": 1.0}, "temperature"),
        ({"top_p": 1.0}, "top_p"),
        ({"max_tokens": 5}, "max_output_tokens"),
        ({"effort": "low"}, "reasoning"),
        ({"thinking_budget": 5}, "reasoning"),
        ({"output": {}}, "text"),
        ({"stop": ("END",)}, "stop"),
    ],
)
def test_what_a_models_facts_refuse_is_left_out_with_a_notice(fields: _Json, key: str) -> None:
    flags = ResponsesFlags(stop=True, thinking_budget=True)
    assert key in body(flags, **fields)
    refusing = Model(provider="p", id="m", refuses=tuple(fields))
    got = encoded(flags, refusing, **fields)
    assert key not in json.loads(got.body)
    assert len(got.notices) == 1


@pytest.mark.rules("A1.19")
def test_what_the_api_has_no_place_for_is_left_out_with_a_notice() -> None:
    got = encoded(stop=("END",))
    assert "stop" not in json.loads(got.body)
    assert len(got.notices) == 1
    assert body(GATEWAY_FLAGS["llamacpp"], stop=("END",))["stop"] == ["END"]
    bare = encoded(ResponsesFlags(schema_output=False), output={})
    assert "text" not in json.loads(bare.body)
    assert len(bare.notices) == 1


def test_the_official_host_gets_no_limit_below_its_least() -> None:
    assert body(OFFICIAL_FLAGS, max_tokens=1)["max_output_tokens"] == 16
    assert body(OFFICIAL_FLAGS, max_tokens=17)["max_output_tokens"] == 17
    assert body(max_tokens=1)["max_output_tokens"] == 1


@pytest.mark.rules("A2.29")
def test_the_cache_key_is_sent_and_cut_to_what_the_api_takes() -> None:
    assert body(cache_key="session_1")["prompt_cache_key"] == "session_1"
    long, other = body(cache_key="x" * 65), body(cache_key="x" * 66)
    assert len(long["prompt_cache_key"]) == 64
    assert long["prompt_cache_key"] != other["prompt_cache_key"]
    assert long["prompt_cache_key"] == body(cache_key="x" * 65)["prompt_cache_key"]
    assert "prompt_cache_key" not in body(ResponsesFlags(cache_key=False), cache_key="x")


@pytest.mark.rules("A2.60", "A2.62")
def test_the_providers_own_search_is_a_tool_beside_ours() -> None:
    sent = body(tools=(ADD,), server_tools=("web_search",))
    assert sent["tools"][1:] == [{"type": "web_search"}]
    assert "include" not in sent
    assert body(server_tools=("web_search",))["tools"] == [{"type": "web_search"}]
    official = body(OFFICIAL_FLAGS, THINKER, server_tools=("web_search",))
    assert official["include"] == ["reasoning.encrypted_content", "web_search_call.action.sources"]
    assert "tools" not in body()


@pytest.mark.rules("A1.19", "A2.60")
def test_a_tool_that_the_provider_does_not_have_is_left_out_with_a_notice() -> None:
    for flags, tool in ((None, "google_search"), (GATEWAY_FLAGS["llamacpp"], "web_search")):
        got = encoded(flags, server_tools=(tool,))
        assert "tools" not in json.loads(got.body)
        assert got.notices == (f"The provider has no tool {tool!r} of its own here.",)


@pytest.mark.rules("A4.5", "A2.25")
def test_the_same_request_gives_the_same_bytes_and_always_utf8() -> None:
    fields: _Json = {"system": "half \ud83d", "tools": (ADD,), "cache_key": "k"}
    first = encoded(**fields).body
    assert first == encoded(**fields).body
    assert json.loads(first)["instructions"] == "half \ufffd"
