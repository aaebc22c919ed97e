"""Conversations that somebody hands in, however odd, and what of them goes to whom.

A library user may bring messages from anywhere: another program's, half a log's, made by hand. The
rules of the APIs stand in `conftest`; whether they would notice a fault is tried here too.
"""

import copy
import json
import re
from collections.abc import Callable, Sequence
from typing import Any, Final

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

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
    Transcript,
    Unknown,
)

_Json = dict[str, Any]
Judge = Callable[[str, Model, Sequence[Request]], list[str]]

MODELS: Final = {
    "openai_chat": Model(provider="openai_chat", id="m"),
    "openai_responses": Model(provider="openai_responses", id="m"),
    "anthropic": Model(provider="anthropic", id="m", thinking="budget"),
    "gemini": Model(provider="gemini", id="gemini-3.1-pro"),
}
STRANGERS: Final = {
    dialect: Model(provider="other", id=model.id, thinking=model.thinking)
    for dialect, model in MODELS.items()
}
each_dialect = pytest.mark.parametrize("dialect", MODELS)
PICTURE = Image(media_type="image/png", data="iVBORw0KGgo=")


def user(text: str) -> Message:
    return Message("user", (Text(text=text),))


def ask(*messages: Message) -> Request:
    return Request(model="m", messages=messages, effort="low", max_tokens=4096)


IDS = st.sampled_from(["call_1", "call_2", "call.3", "", "é" * 70]).map(CallId)
TEXTS = st.sampled_from(["", " ", "Hi.", "é😀", "\ud83d"]).map(lambda text: Text(text=text))
PICTURES = st.sampled_from(
    [
        PICTURE,
        Image(media_type="image/png", file="gone"),
        Image(media_type="image/bmp", data="Qk0="),
        File(name="a.pdf", media_type="application/pdf", data="JVBERi0="),
        File(name="", media_type="text/plain", data="SGk="),
        File(name="b.zip", media_type="application/zip", data="UEs="),
    ]
)
ODD = st.just(Unknown(name="new", raw={"type": "new"}))
SHOWN = st.one_of(TEXTS, TEXTS, PICTURES, ODD)
CALLS = st.builds(
    ToolCall,
    id=IDS,
    name=st.sampled_from(["look", "look", "", "do it"]),
    arguments=st.sampled_from(["{}", "", "{", '{"n": 1}']),
    wire_id=st.sampled_from([None, "", "call_2", "é" * 70]),
    signature=st.none(),
)
SUMMED = st.just(
    Opaque(dialect="openai_responses", raw={"type": "compaction", "encrypted_content": "x"})
)
"""What a vendor sums the conversation up into: for its own model nothing before it is sent."""
THOUGHTS = st.sampled_from(["", "Hm."]).map(lambda text: Thinking(text=text))
RESULTS = st.builds(
    ToolResult, call=IDS, content=st.lists(SHOWN, max_size=2).map(tuple), is_error=st.booleans()
)


def lists_of(*blocks: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Block, ...]]:
    return st.lists(st.one_of(*blocks), max_size=4).map(tuple)


MESSAGES = st.one_of(
    st.builds(Message, st.just("user"), lists_of(SHOWN), st.none()),
    st.builds(Message, st.just("user"), lists_of(SHOWN, RESULTS), st.none()),
    st.builds(Message, st.just("system"), lists_of(TEXTS), st.none()),
    st.builds(
        Message,
        st.just("assistant"),
        lists_of(TEXTS, THOUGHTS, CALLS, CALLS, ODD, SUMMED),
        st.sampled_from([None, *(model.name for model in MODELS.values())]),
    ),
    st.builds(Message, st.just("tool"), lists_of(RESULTS), st.none()),
)


@pytest.mark.rules("A2.25", "A2.40", "A2.47", "A4.40", "R37", "S14", "S16")
@each_dialect
@settings(max_examples=60, phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink])
@given(handed_in=st.lists(MESSAGES, max_size=7))
def test_any_messages_that_are_handed_in_are_sent_validly(
    dialect: str, handed_in: list[Message], judge: Judge
) -> None:
    history = Transcript(tuple(handed_in)).messages()
    judge(dialect, MODELS[dialect], [ask(*history, user("Go on."))])


def _own(dialect: str, raw: _Json) -> Opaque:
    return Opaque(dialect=dialect, raw=raw)


CALL = ToolCall(id=CallId("call_1"), name="look", arguments="{}", wire_id="wire_1")
PROOFS: Final = [f"proof-number-{number}-of-this-model" for number in range(5)]
PROVEN: Final[dict[str, tuple[Block, ...]]] = {
    "openai_chat": (
        Text(text="I look."),
        ToolCall(id=CALL.id, name="look", arguments="{}", wire_id="wire_1", signature=PROOFS[1]),
        _own("openai_chat", {"reasoning_details": [{"type": "x", "data": PROOFS[0]}]}),
    ),
    "openai_responses": (
        _own("openai_responses", {"type": "reasoning", "encrypted_content": PROOFS[0]}),
        Thinking(text="Hm."),
        _own("openai_responses", {"type": "web_search_call", "id": PROOFS[1]}),
        _own("openai_responses", {"type": "message", "id": PROOFS[2], "content": [{}]}),
        Text(text="I look."),
        ToolCall(
            id=CALL.id,
            name="look",
            arguments="{}",
            wire_id="wire_1",
            signature=json.dumps({"id": PROOFS[3]}),
        ),
    ),
    "anthropic": (
        Thinking(text="Hm.", signature=PROOFS[0]),
        Thinking(text="", signature=PROOFS[1], redacted=True),
        _own("anthropic", {"type": "server_tool_use", "id": PROOFS[2], "name": "s", "input": {}}),
        _own("anthropic", {"type": "s_tool_result", "tool_use_id": PROOFS[2], "content": []}),
        Text(text="I look."),
        CALL,
    ),
    "gemini": (
        Thinking(text="Hm.", signature=PROOFS[0]),
        _own("gemini", {"executableCode": {"code": "1"}, "thoughtSignature": PROOFS[1]}),
        Text(text="I look."),
        _own("gemini", {"thoughtSignature": PROOFS[2]}),
        ToolCall(id=CALL.id, name="look", arguments="{}", wire_id="wire_1", signature=PROOFS[3]),
    ),
}
"""What a model of each dialect says with all its proofs, which are numbered as they come."""


@pytest.mark.rules("A1.8", "A2.28", "A2.31", "A2.32", "A2.37", "A2.38", "A2.46")
@each_dialect
def test_what_a_model_has_proved_goes_back_to_it_in_order_and_to_nobody_else(
    dialect: str, judge: Judge
) -> None:
    answer = Message("assistant", PROVEN[dialect], model=MODELS[dialect].name)
    result = Message("tool", (ToolResult(call=CALL.id, content=(Text(text="seen"),)),))
    request = ask(user("Look."), answer, result, user("And?"))
    kept: set[str] = set()
    for body in judge(dialect, MODELS[dialect], [request]):
        found = list(dict.fromkeys(re.findall("|".join(PROOFS), body)))
        assert dialect == "openai_chat" or found == sorted(found)
        kept.update(found)
    told = re.findall("|".join(PROOFS), repr(PROVEN[dialect]))
    assert kept == set(told)
    for other, model in [(dialect, STRANGERS[dialect]), *MODELS.items()]:
        if model is not MODELS[dialect]:
            bodies = judge(other, model, [request])
            assert not any(proof in body for proof in PROOFS for body in bodies)
            assert all("seen" in body and "I look." in body for body in bodies)


# Whether the rules themselves would notice.

_ITEM = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi"}]}
VALID: Final[dict[str, _Json]] = {
    "openai_chat": {
        "messages": [
            {"role": "user", "content": "Hi"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {
                        "id": "a",
                        "type": "function",
                        "function": {"name": "look", "arguments": "{}"},
                    }
                ],
            },
            {"role": "tool", "tool_call_id": "a", "content": ""},
        ]
    },
    "openai_responses": {
        "input": [
            _ITEM,
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"},
            {"type": "function_call", "call_id": "a", "name": "look", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "a", "output": ""},
        ]
    },
    "anthropic": {
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "Hi"}]},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "", "signature": "x"},
                    {"type": "tool_use", "id": "a", "name": "look", "input": {}},
                ],
            },
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a"}]},
        ],
        "thinking": {"type": "enabled"},
    },
    "gemini 3": {
        "contents": [
            {"role": "user", "parts": [{"text": "Hi"}]},
            {
                "role": "model",
                "parts": [{"functionCall": {"name": "look", "args": {}}, "thoughtSignature": "x"}],
            },
            {
                "role": "user",
                "parts": [{"functionResponse": {"name": "look", "response": {}}}],
            },
        ]
    },
}
FAULTS: Final[list[tuple[str, str, Callable[[list[_Json]], object]]]] = [
    ("openai_chat", "no result", lambda sent: sent.pop()),
    ("openai_chat", "two results", lambda sent: sent.append(sent[2])),
    ("openai_chat", "late result", lambda sent: sent.insert(2, sent[0])),
    ("openai_chat", "nothing said", lambda sent: sent[1].pop("tool_calls")),
    ("openai_chat", "long id", lambda sent: sent[1]["tool_calls"][0].update(id="a" * 41)),
    ("openai_chat", "empty", lambda sent: sent[0].update(content="")),
    ("openai_responses", "no result", lambda sent: sent.pop()),
    ("openai_responses", "no call", lambda sent: sent.pop(2)),
    ("openai_responses", "reasoning alone", lambda sent: sent.insert(2, _ITEM)),
    ("openai_responses", "no reasoning", lambda sent: sent[1].pop("encrypted_content")),
    ("openai_responses", "id twice", lambda sent: sent.insert(1, sent[1])),
    ("openai_responses", "broken", lambda sent: sent[2].update(arguments='{"n": NaN}')),
    ("anthropic", "no result", lambda sent: sent.pop()),
    ("anthropic", "words first", lambda sent: sent[2]["content"].insert(0, sent[0]["content"][0])),
    ("anthropic", "roles", lambda sent: sent.insert(0, sent[0])),
    ("anthropic", "blank", lambda sent: sent[0]["content"][0].update(text=" ")),
    ("anthropic", "no proof", lambda sent: sent[1]["content"][0].update(signature="")),
    ("anthropic", "no thought", lambda sent: sent[1]["content"].pop(0)),
    ("anthropic", "name", lambda sent: sent[1]["content"][1].update(name="do it")),
    ("gemini 3", "no result", lambda sent: sent.pop()),
    (
        "gemini 3",
        "other result",
        lambda sent: sent[2]["parts"][0]["functionResponse"].update(name="x"),
    ),
    ("gemini 3", "apart", lambda sent: sent.insert(2, sent[0])),
    ("gemini 3", "no proof", lambda sent: sent[1]["parts"][0].pop("thoughtSignature")),
    ("gemini 3", "empty", lambda sent: sent[0].update(parts=[{"text": ""}])),
    ("gemini 3", "model first", lambda sent: sent.pop(0)),
]


@pytest.mark.parametrize("api", VALID)
def test_the_rules_take_what_is_valid(api: str, check_rules: Callable[[str, _Json], None]) -> None:
    check_rules(api, VALID[api])


@pytest.mark.parametrize(("api", "fault", "spoil"), FAULTS, ids=[f"{a}-{f}" for a, f, _ in FAULTS])
def test_the_rules_notice_a_fault(
    api: str,
    fault: str,
    spoil: Callable[[list[_Json]], object],
    check_rules: Callable[[str, _Json], None],
) -> None:
    body = copy.deepcopy(VALID[api])
    spoil(body[next(iter(body))])
    with pytest.raises((AssertionError, ValueError)):
        check_rules(api, body)
