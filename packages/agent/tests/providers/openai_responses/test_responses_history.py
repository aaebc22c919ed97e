"""A conversation as the items of a request: each in its place, and nothing that is refused."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from towline_agent.providers.base import Model, Request
from towline_agent.providers.endpoint import Encoded
from towline_agent.providers.openai_responses.encode import encode_request
from towline_agent.providers.openai_responses.flags import ResponsesFlags
from towline_agent.providers.openai_responses.history import HistoryEncoder
from towline_protocol import (
    Block,
    CallId,
    Image,
    Message,
    Opaque,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Unknown,
    restore_private,
    strip_private,
)

MODEL = Model(provider="p", id="m")
_Json = dict[str, Any]


def encoded(
    *messages: Message,
    flags: ResponsesFlags | None = None,
    history: HistoryEncoder | None = None,
    replay: bool = True,
    trailing: str = "",
) -> Encoded:
    request = Request(model="m", messages=messages, trailing=trailing)
    flags = flags or ResponsesFlags()
    history = history or HistoryEncoder(MODEL.name, flags, replay=replay)
    return encode_request(request, MODEL, flags, stream=True, history=history)


def items(*messages: Message, **options: Any) -> list[_Json]:
    return json.loads(encoded(*messages, **options).body)["input"]


def user(*blocks: Block) -> Message:
    return Message("user", blocks)


def assistant(*blocks: Block, model: str | None = None) -> Message:
    return Message("assistant", blocks, model)


def results(*blocks: ToolResult) -> Message:
    return Message("tool", blocks)


def call(id_: str, wire_id: str | None = None, arguments: str = "{}", **more: Any) -> ToolCall:
    return ToolCall(id=CallId(id_), name="f", arguments=arguments, wire_id=wire_id, **more)


def result(id_: str, *content: Text) -> ToolResult:
    return ToolResult(call=CallId(id_), content=content)


def opaque(**raw: Any) -> Opaque:
    return Opaque(dialect="openai_responses", raw=raw)


def reasoning(id_: str = "rs_1", **more: Any) -> Opaque:
    return opaque(**{"type": "reasoning", "id": id_, "encrypted_content": "xyz", **more})


def head(id_: str = "msg_1", **more: Any) -> Opaque:
    part: _Json = {"type": "output_text", "annotations": []}
    return opaque(
        **{"type": "message", "id": id_, "status": "completed", "content": [part], **more}
    )


def said(*texts: str, **more: Any) -> _Json:
    parts: list[_Json] = [
        {"type": "output_text", "annotations": [], "text": text} for text in texts
    ]
    return {"type": "message", "role": "assistant", **more, "content": parts}


def asked(*texts: str, role: str = "user") -> _Json:
    parts = [{"type": "input_text", "text": text} for text in texts]
    return {"type": "message", "role": role, "content": parts}


def output(name: str, words: Any) -> _Json:
    return {"type": "function_call_output", "call_id": name, "output": words}


def kinds(sent: list[_Json]) -> list[str]:
    return [item["type"] for item in sent]


HI = user(Text(text="Hi"))


@pytest.mark.rules("A2.28", "A1.8")
def test_an_answer_goes_back_as_the_items_that_it_was() -> None:
    search = {"type": "web_search_call", "id": "ws_1", "action": {"type": "search", "null": None}}
    sent = items(
        HI,
        assistant(
            reasoning(summary=[{"type": "summary_text", "text": "Hm."}], content=[]),
            Thinking(text="Hm."),
            opaque(**search),
            reasoning("rs_2"),
            head(phase="commentary"),
            Text(text="I look."),
            call("our_1", "call_1", '{"a": 1}', signature='{"id":"fc_1","namespace":"n"}'),
        ),
        results(result("our_1", Text(text="done"))),
    )
    assert sent == [
        asked("Hi"),
        {
            "type": "reasoning",
            "id": "rs_1",
            "encrypted_content": "xyz",
            "summary": [{"type": "summary_text", "text": "Hm."}],
            "content": [],
        },
        search,
        {"type": "reasoning", "id": "rs_2", "encrypted_content": "xyz", "summary": []},
        said("I look.", id="msg_1", status="completed", phase="commentary"),
        {
            "type": "function_call",
            "id": "fc_1",
            "namespace": "n",
            "call_id": "call_1",
            "name": "f",
            "arguments": '{"a": 1}',
        },
        output("call_1", "done"),
    ]


@pytest.mark.rules("A1.11", "A2.28")
def test_what_is_private_comes_back_from_the_log_and_is_sent_again() -> None:
    blocks = (reasoning(), head(), Text(text="Hi"), call("a", "b", signature='{"id":"fc"}'))
    public, private = strip_private(blocks)
    again = assistant(*restore_private(public, private))
    assert items(again) == items(assistant(*blocks))
    assert kinds(items(assistant(*public))) == ["message", "function_call"]


@pytest.mark.rules("R33")
@pytest.mark.parametrize("rest", [(), (head(),), (Text(text=""),), (Thinking(text="x"),)])
def test_reasoning_never_goes_alone(rest: tuple[Block, ...]) -> None:
    assert kinds(items(HI, assistant(reasoning(), *rest), HI)) == ["message", "message"]
    sent = items(assistant(reasoning(), Text(text="Hi"), reasoning("rs_2"), *rest), HI)
    assert kinds(sent) == ["reasoning", "message", "message"]


@pytest.mark.rules("R31", "R33", "A2.26")
@pytest.mark.parametrize(
    "useless", [opaque(type="reasoning", id="rs_1", summary=[]), opaque(type="reasoning")]
)
def test_reasoning_that_says_nothing_is_left_out_and_the_ids_that_need_it_too(
    useless: Opaque,
) -> None:
    search = opaque(type="web_search_call", id="ws_1")
    compaction = opaque(type="compaction", id="cmp_1", encrypted_content="c")
    sent = items(
        assistant(
            useless,
            search,
            compaction,
            reasoning("rs_2"),
            head(phase="final_answer"),
            Text(text="Hi"),
            call("a", signature='{"id":"fc_1"}'),
        )
    )
    assert sent == [
        {"type": "compaction", "encrypted_content": "c"},
        {"type": "reasoning", "encrypted_content": "xyz", "summary": []},
        said("Hi", status="completed", phase="final_answer"),
        {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"},
    ]


@pytest.mark.rules("A2.28")
def test_reasoning_in_full_goes_back_as_it_came() -> None:
    raw = {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "x"}]}
    assert items(assistant(opaque(**raw), Text(text="Hi")))[0] == raw


@pytest.mark.rules("A2.32")
def test_what_another_models_vendor_understands_is_left_out() -> None:
    blocks = (
        reasoning(),
        Thinking(text="Hm."),
        opaque(type="web_search_call", id="ws_1"),
        head(phase="commentary"),
        Text(text="Hi"),
        call("a", "call_a", signature='{"id":"fc_1"}'),
    )
    for model in ("p/other", "q/m"):
        sent = items(assistant(*blocks, model=model), results(result("a", Text(text="ok"))))
        assert sent == [
            said("Hi"),
            {"type": "function_call", "call_id": "call_a", "name": "f", "arguments": "{}"},
            output("call_a", "ok"),
        ]
    for model in ("p/m", None):
        sent = kinds(items(assistant(*blocks, model=model)))
        assert sent == ["reasoning", "web_search_call", "message", "function_call"]


@pytest.mark.rules("A1.8", "A2.32")
def test_blocks_of_another_dialect_are_left_out() -> None:
    foreign = Opaque(dialect="anthropic", raw={"type": "reasoning", "encrypted_content": "x"})
    sent = items(
        assistant(
            foreign,
            Thinking(text="Hm.", signature="sig"),
            Opaque(dialect="openai_responses"),
            Opaque(dialect="openai_responses", raw="odd"),
            Unknown(name="odd", raw={}),
            Image(media_type="image/png", data="AA"),
            Text(text="Hi"),
            call("a", signature="EqQB+/=="),
            call("b", signature="{broken"),
            call("c", signature="[1]"),
        )
    )
    assert sent[0] == said("Hi")
    assert all("id" not in item for item in sent)
    assert kinds(sent) == ["message", *["function_call"] * 3]


@pytest.mark.rules("A2.28")
def test_no_items_id_goes_twice() -> None:
    one = assistant(reasoning(), head(), Text(text="a"), call("a", signature='{"id":"fc"}'))
    two = assistant(
        reasoning(encrypted_content="other"),
        opaque(type="web_search_call", id="ws"),
        opaque(type="web_search_call", id="ws"),
        head(),
        Text(text="b"),
        call("b", signature='{"id":"fc"}'),
    )
    sent = items(one, two)
    ids = [item["id"] for item in sent if "id" in item]
    assert sorted(ids) == ["fc", "msg_1", "rs_1", "ws"]
    assert kinds(sent)[3:] == ["reasoning", "web_search_call", "message", "function_call"]
    assert sent[3]["encrypted_content"] == "other"


@pytest.mark.rules("A2.28")
@pytest.mark.parametrize("id_", ["x" * 65, "", 7, None])
def test_an_id_that_the_api_refuses_is_left_out(id_: Any) -> None:
    sent = items(
        assistant(
            reasoning(id_), head(id_), Text(text="Hi"), call("a", signature=json.dumps({"id": id_}))
        )
    )
    assert kinds(sent) == ["reasoning", "message", "function_call"]
    assert all("id" not in item for item in sent)


def test_a_gateway_that_wants_no_ids_gets_none() -> None:
    sent = items(
        assistant(reasoning(), head(), Text(text="Hi"), call("a", signature='{"id":"fc"}')),
        flags=ResponsesFlags(item_ids=False),
    )
    assert kinds(sent) == ["reasoning", "message", "function_call"]
    assert all("id" not in item for item in sent)


def test_without_replay_encrypted_reasoning_stays_behind() -> None:
    raw = {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "x"}]}
    blocks = (reasoning(), opaque(**raw), head(), Text(text="Hi"))
    assert items(assistant(*blocks), replay=False) == [raw, said("Hi", status="completed")]


@pytest.mark.rules("A2.9", "C1.1")
def test_each_call_goes_under_an_id_of_its_own_and_its_result_follows_it() -> None:
    sent = items(
        assistant(call("our_1", "w")),
        results(result("our_1", Text(text="1"))),
        assistant(call("our_2", "w"), call("w", ""), call("our_4", "x" * 65)),
        results(
            result("our_2", Text(text="2")),
            result("w", Text(text="3")),
            result("our_4", Text(text="4")),
        ),
        assistant(call("with space " * 9)),
        results(result("with space " * 9, Text(text="5"))),
    )
    calls = [item["call_id"] for item in sent if item["type"] == "function_call"]
    answers = {item["call_id"]: item["output"] for item in sent if "output" in item}
    assert calls[:2] == ["w", "our_2"]
    assert calls[3] == "our_4"
    assert len(set(calls)) == 5
    assert all(len(name) <= 64 and " " not in name for name in calls)
    assert [answers[name] for name in calls] == ["1", "2", "3", "4", "5"]


def test_a_result_without_its_call_is_left_out_with_a_notice() -> None:
    got = encoded(HI, results(result("gone", Text(text="x"))))
    assert json.loads(got.body)["input"] == [asked("Hi")]
    assert got.notices == ("A result whose call is gone was left out.",)


@pytest.mark.rules("A1.6", "A2.12")
@pytest.mark.parametrize(
    ("arguments", "sent"),
    [
        ("", {}),
        ('{"a": 1}', {"a": 1}),
        ('{"a": ', {"broken_arguments": '{"a": '}),
        ("[1]", {"broken_arguments": "[1]"}),
        ("[" * 100_000, {"broken_arguments": "[" * 100_000}),
    ],
)
def test_broken_arguments_do_not_spoil_the_history(arguments: str, sent: Any) -> None:
    (item,) = items(assistant(call("a", arguments=arguments)))
    assert json.loads(item["arguments"]) == sent


@pytest.mark.rules("A2.31")
def test_a_vendors_call_that_nobody_answered_is_left_out() -> None:
    pending = opaque(type="custom_tool_call", id="ctc_1", call_id="c1", input="x")
    answered = opaque(type="shell_call", id="sh_1", call_id="c2")
    done = opaque(type="shell_call_output", id="sho_1", call_id="c2")
    served = opaque(type="tool_search_call", id="ts_1", call_id=None)
    sent = items(assistant(reasoning(), pending, answered, done, served, Text(text="Hi")))
    assert kinds(sent) == [
        "reasoning",
        "shell_call",
        "shell_call_output",
        "tool_search_call",
        "message",
    ]
    assert items(assistant(reasoning(), pending), HI) == [asked("Hi")]


@pytest.mark.rules("R37")
def test_empty_texts_and_messages_are_left_out() -> None:
    sent = items(
        user(Text(text="")),
        assistant(head(), Text(text=""), Text(text="")),
        assistant(),
        Message("tool", ()),
        user(Text(text=""), Text(text="Hi")),
    )
    assert sent == [asked("Hi")]


def test_texts_find_their_parts_and_those_without_go_as_another_message() -> None:
    parts = [{"type": "output_text", "annotations": [1]}, {"type": "refusal"}]
    two = head(content=parts)
    sent = items(assistant(two, Text(text="a"), Thinking(text="x"), Text(text="b"), Text(text="c")))
    assert sent == [
        {
            "type": "message",
            "role": "assistant",
            "id": "msg_1",
            "status": "completed",
            "content": [
                {"type": "output_text", "annotations": [1], "text": "a"},
                {"type": "refusal", "refusal": "b"},
            ],
        },
        said("c"),
    ]
    assert items(assistant(Text(text="a"), Text(text="b"))) == [said("a", "b")]
    assert items(assistant(Text(text="a"), call("x"), Text(text="b")))[2] == said("b")


def test_a_vendors_message_that_holds_its_words_goes_back_as_it_came() -> None:
    raw = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi"}]}
    assert items(assistant(opaque(**raw))) == [raw]


@pytest.mark.rules("A4.5", "A4.11")
def test_a_message_gives_the_same_bytes_whatever_follows_it() -> None:
    messages = (
        HI,
        assistant(reasoning(), head(), Text(text="a"), call("our_1", "w", signature='{"id":"f"}')),
        results(result("our_1", Text(text="ok"))),
        assistant(reasoning(), call("our_2", "w", signature='{"id":"f"}')),
        results(result("our_2", Text(text="ok"))),
        assistant(Text(text="done"), model="q/other"),
        HI,
    )
    history = HistoryEncoder(MODEL.name, ResponsesFlags())
    for end in range(1, len(messages) + 1):
        fresh = encoded(*messages[:end]).body
        assert encoded(*messages[:end], history=history).body == fresh
        assert fresh.startswith(encoded(*messages[: end - 1]).body[:-2])
        told = encoded(*messages[:end], history=history, trailing="now").body
        assert told.startswith(encoded(*messages[: end - 1]).body[:-2])
        assert b"now" in told
    assert encoded(*messages, replay=False).body != encoded(*messages).body
    assert encoded(*messages[:3], history=history).body == encoded(*messages[:3]).body


_RAW = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=5,
)
_OPAQUE = st.builds(
    opaque,
    type=st.sampled_from(["reasoning", "message", "web_search_call", "custom_tool_call", "odd"])
    | _RAW,
    id=st.sampled_from(["a", "b"]) | _RAW,
    call_id=_RAW,
    encrypted_content=st.sampled_from(["x", "", None]),
    content=_RAW | st.just([{"type": "output_text"}]),
    summary=_RAW,
)
_BLOCK = st.one_of(
    _OPAQUE,
    st.builds(Text, text=st.text(max_size=3)),
    st.builds(Thinking, text=st.text(max_size=3), signature=st.none() | st.text(max_size=3)),
    st.builds(call, st.just("a"), st.sampled_from(["a", "b", "", None]), st.text(max_size=3)),
    st.builds(Opaque, dialect=st.just("openai_responses"), raw=_RAW),
)


@pytest.mark.rules("A1.24", "R33", "R37")
@given(st.lists(st.lists(_BLOCK, max_size=5), max_size=4), st.booleans())
def test_whatever_a_history_holds_the_request_is_valid(
    content: list[list[Block]], replay: bool
) -> None:
    messages: list[Message] = [HI]
    for turn, given_blocks in enumerate(content):
        blocks = [
            call(f"{turn}_{place}", block.wire_id, block.arguments, signature='{"id":"fc"}')
            if isinstance(block, ToolCall)
            else block
            for place, block in enumerate(given_blocks)
        ]
        calls = [block for block in blocks if isinstance(block, ToolCall)]
        messages.append(assistant(*blocks))
        messages.append(results(*(result(block.id, Text(text="ok")) for block in calls)))
    sent = items(*messages, replay=replay)
    ids = [item["id"] for item in sent if isinstance(item.get("id"), str) and item["id"]]
    assert len(ids) == len(set(ids))
    names = [item["call_id"] for item in sent if item["type"] == "function_call"]
    assert len(names) == len(set(names))
    assert names == [item["call_id"] for item in sent if "output" in item]
    for item, following in zip(sent, [*sent[1:], {"type": "end"}], strict=True):
        if item["type"] == "reasoning":
            assert following["type"] not in ("end", "function_call_output")
            assert following.get("role") != "user"
        if item["type"] == "message" and item.get("role") == "assistant":
            assert item["content"]
