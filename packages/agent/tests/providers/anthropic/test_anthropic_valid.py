"""Whatever a conversation holds, what is sent obeys the API's rules for messages."""

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from towline_agent.providers.anthropic.encode import encode_request
from towline_agent.providers.anthropic.flags import AnthropicFlags
from towline_agent.providers.anthropic.history import HistoryEncoder
from towline_agent.providers.base import Model, Request
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
)

MODEL = Model(provider="p", id="m", thinking="budget")
WORDS = st.sampled_from(["", " ", "\n", "Hi", "é😀", "\ud83d", "So. "])
MODELS = st.sampled_from([None, MODEL.name, "other/model"])
_Json = dict[str, Any]

_SAID = st.one_of(
    st.builds(Text, text=WORDS),
    st.builds(Thinking, text=WORDS, signature=st.sampled_from([None, "s"]), redacted=st.booleans()),
    st.sampled_from(
        [
            Opaque(dialect="anthropic", raw={"type": "compaction", "content": "all"}),
            Opaque(dialect="anthropic", raw={"citations": [{"type": "c"}]}),
            Opaque(dialect="anthropic", raw={}),
            Opaque(dialect="anthropic"),
            Opaque(dialect="gemini", raw={"type": "x"}),
        ]
    ),
)
_SHOWN = st.one_of(
    st.builds(Text, text=WORDS),
    st.builds(
        Image,
        media_type=st.sampled_from(["image/png", "image/bmp"]),
        data=st.sampled_from([None, "", "AA=="]),
    ),
    st.builds(
        File,
        name=WORDS,
        media_type=st.sampled_from(["application/pdf", "text/plain", "application/zip"]),
        data=st.sampled_from([None, "", "IA==", "SGk=", "!"]),
    ),
)
_CALL = st.tuples(
    st.sampled_from(["", None, "toolu_1", "toolu_2", "f:0", "é" * 80]),
    st.sampled_from(["", "{}", '{"a":1}', "{", "[]", '{"a":"\ud83d"}']),
    st.lists(_SHOWN, max_size=2),
    st.booleans(),
)
_EXCHANGE = st.tuples(
    st.lists(_SHOWN, max_size=2),
    st.lists(_SAID, max_size=3),
    st.lists(_CALL, max_size=3),
    st.lists(_SAID, max_size=1),
    MODELS,
    st.booleans(),
)


def _conversation(exchanges: list[Any]) -> tuple[Message, ...]:
    """Messages in which each call has one result, as the loop guarantees."""
    messages: list[Message] = []
    number = 0
    for shown, said, asked, more, model, steered in exchanges:
        if shown:
            messages.append(Message("user", tuple(shown)))
        blocks: list[Block] = list(said)
        results: list[Message] = []
        for wire_id, arguments, content, failed in asked:
            number += 1
            id_ = CallId(f"call.{number}")
            blocks.append(ToolCall(id=id_, name="f", arguments=arguments, wire_id=wire_id))
            answer = ToolResult(call=id_, content=tuple(content), is_error=failed)
            results.append(Message("tool", (answer,)))
        messages.append(Message("assistant", (*blocks, *more), model=model))
        if steered and results:
            messages.append(Message("user", (Text(text="wait"),)))
        messages.extend(results)
    return tuple(messages)


def _check(body: _Json) -> None:
    """The rules of the API, as its error messages state them."""
    sent: list[_Json] = body["messages"]
    roles = [message["role"] for message in sent]
    assert roles == [("user", "assistant")[at % 2] for at in range(len(sent))]
    used: set[str] = set()
    open_calls: list[str] = []
    for message in sent:
        parts: list[_Json] = message["content"]
        assert parts
        kinds = [part["type"] for part in parts]
        if message["role"] == "assistant":
            assert not open_calls
            assert kinds[-1] not in ("thinking", "redacted_thinking")
            open_calls = [part["id"] for part in parts if part["type"] == "tool_use"]
        else:
            count = kinds.count("tool_result")
            assert kinds[:count] == ["tool_result"] * count
            assert sorted(part["tool_use_id"] for part in parts[:count]) == sorted(open_calls)
            open_calls = []
        for part in parts:
            _check_part(part, used)


def _check_part(part: _Json, used: set[str]) -> None:
    match part["type"]:
        case "text":
            assert part["text"].strip()
        case "thinking":
            assert part["signature"]
        case "redacted_thinking":
            assert part["data"]
        case "tool_use":
            assert re.fullmatch("[A-Za-z0-9_-]{1,64}", part["id"])
            assert part["id"] not in used
            assert isinstance(part["input"], dict)
            used.add(part["id"])
        case "tool_result":
            content: str | list[_Json] = part.get("content", [])
            assert content or not part.get("is_error")
            for inner in [] if isinstance(content, str) else content:
                _check_part(inner, used)
        case "image" | "document":
            assert part["source"]["data"].strip()
        case kind:
            assert kind == "compaction"


@pytest.mark.rules("A2.37", "A2.38", "A2.40", "A2.41", "R17", "R31", "R33", "R37", "A2.25")
@given(st.lists(_EXCHANGE, max_size=4), WORDS, st.booleans())
def test_any_conversation_is_sent_validly_and_the_same_each_time(
    exchanges: list[Any], trailing: str, marks: bool
) -> None:
    messages = _conversation(exchanges)
    flags = AnthropicFlags(cache_marks=marks)
    history = HistoryEncoder(MODEL, flags)
    for count in range(len(messages) + 1):
        if count < len(messages) and messages[count].role == "tool":
            continue  # the loop sends all results at once
        request = Request(
            model="m", messages=messages[:count], trailing=trailing, effort="low", max_tokens=4096
        )
        kept = encode_request(request, MODEL, flags, stream=True, history=history).body
        assert kept == encode_request(request, MODEL, flags, stream=True).body
        if count and messages[count - 1].role != "assistant":
            _check(json.loads(kept))
