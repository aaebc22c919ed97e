"""A conversation as `contents`: calls, results, proofs, pictures, and bytes that stay."""

import base64
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

ADD = ToolSpec(
    name="add",
    description="Adds.",
    parameters={"type": "object", "properties": {"a": {"type": "integer"}}},
)
HI = (Message("user", (Text(text="Hi"),)),)
NEW, OLD = "gemini-3.8-flash", "gemini-2.5-flash"
DEEP = '{"a":' * 3000 + "1" + "}" * 3000
PICTURE = Image(media_type="image/png", data="QUJD")
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


def result(id_: str, *content: Text | Image | File | Unknown, error: bool = False) -> ToolResult:
    return ToolResult(call=CallId(id_), content=content, is_error=error)


def said(*content: Block, model: str | None = None) -> Message:
    return Message("assistant", content, model)


def signed(text: str) -> Opaque:
    return Opaque(dialect="gemini", raw={"thoughtSignature": text})


@pytest.mark.rules("A2.46", "A2.48", "R35")
def test_parallel_calls_share_a_content_and_so_do_their_results() -> None:
    sent = contents(
        *HI,
        said(
            Text(text="I add."),
            call("c1", "w1", name="f", arguments='{"a": 1}', signature="s1"),
            call("c2", None, name="g"),
        ),
        Message("tool", (result("c2", Text(text="two")), result("c1", Text(text="one")))),
    )
    assert sent[1:] == [
        {
            "role": "model",
            "parts": [
                {"text": "I add."},
                {
                    "functionCall": {"name": "f", "args": {"a": 1}, "id": "w1"},
                    "thoughtSignature": "s1",
                },
                {"functionCall": {"name": "g", "args": {}}},
            ],
        },
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"name": "f", "response": {"output": "one"}, "id": "w1"}},
                {"functionResponse": {"name": "g", "response": {"output": "two"}}},
            ],
        },
    ]


@pytest.mark.rules("R35")
def test_messages_of_the_model_and_results_that_follow_each_other_are_one_content() -> None:
    sent = contents(
        *HI,
        said(Text(text="a")),
        said(call("c1", "w1", signature="s")),
        said(call("c2", "w2", signature="t")),
        Message("tool", (result("c2", Text(text="2")),)),
        Message("tool", (result("c1", Text(text="1")),)),
        Message("user", (Text(text="Go on."),)),
        Message("user", (Text(text="Please."),)),
    )
    assert [entry["role"] for entry in sent] == ["user", "model", "user", "user", "user"]
    assert [part["functionResponse"]["id"] for part in sent[2]["parts"]] == ["w1", "w2"]
    assert len(sent[1]["parts"]) == 3


@pytest.mark.rules("A2.48")
def test_an_id_that_was_used_before_gives_way_to_ours() -> None:
    sent = contents(
        *HI,
        said(call("c1", "w", signature="s")),
        Message("tool", (result("c1"),)),
        said(call("c2", "w", signature="s"), call("c3", "")),
        Message("tool", (result("c2"), result("c3"))),
    )
    ids = [
        part["functionResponse"].get("id")
        for entry in (sent[2], sent[4])
        for part in entry["parts"]
    ]
    assert ids == ["w", "c2", None]
    assert [part["functionCall"].get("id") for part in sent[3]["parts"]] == ["c2", None]


@pytest.mark.rules("A2.46")
def test_a_call_without_a_proof_gets_the_documented_one_from_generation_3_on() -> None:
    dummy = "skip_thought_signature_validator"
    history = (
        *HI,
        said(call("c1", signature="alien"), call("c2", signature="alien"), model="openai/gpt"),
        Message("tool", (result("c1"), result("c2"))),
        said(call("c3"), model=f"gemini/{NEW}"),
        Message("tool", (result("c3"),)),
    )
    for name, expected in ((NEW, dummy), ("gemini-flash-latest", dummy), (OLD, None)):
        sent = contents(*history, name=name)
        proofs = [
            part.get("thoughtSignature") for entry in (sent[1], sent[3]) for part in entry["parts"]
        ]
        assert proofs == [expected, None, expected]


@pytest.mark.rules("A2.46")
def test_proofs_go_back_on_the_part_that_they_came_with() -> None:
    (_, sent) = contents(
        *HI,
        said(
            Thinking(text="thought", signature="s0"),
            Thinking(text="unsigned"),
            Text(text="a"),
            signed("s1"),
            Text(text="b"),
            Text(text=""),
            signed("s2"),
            signed("s3"),
            Opaque(dialect="gemini", raw={"toolCall": {"id": "1"}, "thoughtSignature": "s4"}),
            signed("s5"),
        ),
    )
    assert sent["parts"] == [
        {"text": "thought", "thought": True, "thoughtSignature": "s0"},
        {"text": "a", "thoughtSignature": "s1"},
        {"text": "b", "thoughtSignature": "s2"},
        {"text": "", "thoughtSignature": "s3"},
        {"toolCall": {"id": "1"}, "thoughtSignature": "s4"},
        {"text": "", "thoughtSignature": "s5"},
    ]


@pytest.mark.rules("A2.32", "A1.8", "R31")
def test_what_another_model_thought_and_proved_is_left_out() -> None:
    private = (
        Thinking(text="mine", signature="s"),
        Text(text="Hello"),
        signed("s"),
        Opaque(dialect="gemini", raw={"toolCall": {"id": "1"}}),
        Opaque(dialect="anthropic", raw={"type": "server_tool_use"}),
        Opaque(dialect="gemini"),
        Unknown(name="new", raw={}),
    )
    (_, foreign) = contents(*HI, said(*private, model="gemini/another"))
    assert foreign["parts"] == [{"text": "Hello"}]
    for ours in (None, f"gemini/{NEW}"):
        (_, sent) = contents(*HI, said(*private, model=ours))
        assert len(sent["parts"]) == 3
    public, _ = strip_private(private)
    (_, stripped) = contents(*HI, said(*public))
    assert stripped["parts"] == [{"text": "Hello"}]


@pytest.mark.rules("R37", "R31")
def test_what_is_empty_is_left_out() -> None:
    sent = contents(
        Message("user", (Text(text=""),)),
        *HI,
        said(Text(text=""), Thinking(text="hm")),
        Message("user", (Text(text=""), Text(text="More?"))),
    )
    assert sent == [
        {"role": "user", "parts": [{"text": "Hi"}]},
        {"role": "user", "parts": [{"text": "More?"}]},
    ]


@pytest.mark.rules("A2.47")
def test_results_come_first_and_their_pictures_after_them() -> None:
    pdf = File(name="a.pdf", media_type="application/pdf", data="QUJD")
    sent = contents(
        *HI,
        said(call("c1", signature="s"), call("c2", name="g")),
        Message("tool", (result("c1", Text(text="one"), PICTURE), result("c2", pdf))),
    )
    inline = {"inlineData": {"mimeType": "image/png", "data": "QUJD"}}
    assert sent[2]["parts"] == [
        {"functionResponse": {"name": "f", "response": {"output": "one"}}},
        {
            "functionResponse": {
                "name": "g",
                "response": {"output": "What it returned is shown below."},
            }
        },
        {"text": "Returned by f:"},
        inline,
        {"text": "Returned by g:"},
        {"text": "File a.pdf:"},
        {"inlineData": {"mimeType": "application/pdf", "data": "QUJD"}},
    ]
    alone = contents(
        *HI, said(call("c1", signature="s")), Message("tool", (result("c1", PICTURE),))
    )
    assert alone[2]["parts"][1:] == [inline]


@pytest.mark.rules("A2.47", "S33")
def test_a_failed_result_is_an_error_and_an_empty_one_is_empty() -> None:
    sent = contents(
        *HI,
        said(call("c1", signature="s"), call("c2")),
        Message(
            "tool", (result("c1", Text(text="no"), Text(text="file"), error=True), result("c2"))
        ),
    )
    responses = [part["functionResponse"]["response"] for part in sent[2]["parts"]]
    assert responses == [{"error": "no\nfile"}, {"output": ""}]


def test_words_beside_results_come_after_them() -> None:
    sent = contents(
        *HI,
        said(call("c1", signature="s")),
        Message("tool", (Text(text="Note."), result("c1", Text(text="one"), PICTURE))),
    )
    assert [next(iter(part)) for part in sent[2]["parts"]] == [
        "functionResponse",
        "inlineData",
        "text",
    ]


def test_a_result_without_its_call_before_it_goes_as_words() -> None:
    sent = contents(
        *HI,
        said(call("c1", "w1", signature="s")),
        Message("tool", (result("zz", Text(text="late")), result("c1", Text(text="one")))),
    )
    assert [next(iter(part)) for part in sent[2]["parts"]] == ["functionResponse", "text"]
    assert "late" in sent[2]["parts"][1]["text"]


def test_a_conversation_never_begins_with_the_model() -> None:
    sent = contents(said(call("c1", signature="s")), Message("tool", (result("c1"),)))
    assert [entry["role"] for entry in sent] == ["user", "model", "user"]


@pytest.mark.parametrize("arguments", ["[1]", "{broken", '"x"', "null", '{"a":' * 2000, DEEP])
def test_broken_arguments_do_not_spoil_the_history(arguments: str) -> None:
    sent = contents(*HI, said(call("c1", arguments=arguments)), Message("tool", (result("c1"),)))
    called = sent[1]["parts"][0]["functionCall"]
    assert called["args"] == {"broken_arguments": arguments}
    (_, empty) = contents(*HI, said(call("c1", arguments="")))
    assert empty["parts"][0]["functionCall"]["args"] == {}


@pytest.mark.rules("A1.19")
def test_files_go_as_the_model_can_read_them() -> None:
    words = base64.b64encode("a,b\né".encode()).decode()
    sent = encoded(
        messages=(
            Message(
                "user",
                (
                    PICTURE,
                    File(name="t.csv", media_type="text/csv", data=words),
                    Image(media_type="image/svg+xml", data=words),
                    File(name="v.mp4", media_type="video/mp4", data="QUJD"),
                    Image(media_type="image/gif", data="QUJD"),
                    File(name="a.zip", media_type="application/zip", data="QUJD"),
                    Image(media_type="image/png", file="sha256:1"),
                    File(name="b.txt", media_type="text/plain", data="???"),
                ),
            ),
        )
    )
    parts = json.loads(sent.body())["contents"][0]["parts"]
    assert parts == [
        {"inlineData": {"mimeType": "image/png", "data": "QUJD"}},
        {"text": "File t.csv:\na,b\né"},
        {"text": "a,b\né"},
        {"text": "File v.mp4:"},
        {"inlineData": {"mimeType": "video/mp4", "data": "QUJD"}},
        {"text": "[a block of the kind image/gif, which you cannot read]"},
        {"text": "[a.zip of the kind application/zip, which you cannot read]"},
        {"text": "[a image/png block that is no longer there]"},
        {"text": "File b.txt:\n[its words cannot be read]"},
    ]
    assert len(sent.notices) == 3
    assert len(sent.body()) > sent.contents.chars[0] > 100


@pytest.mark.rules("A4.11", "A4.5")
def test_trailing_words_stand_behind_everything() -> None:
    results = Message("tool", (result("c1", Text(text="one"), PICTURE),))
    history = (*HI, said(call("c1", signature="s")), results)
    sent = contents(*history, trailing="<note>")
    assert sent[2]["parts"][-1] == {"text": "<note>"}
    assert contents(*history) == [*sent[:2], {"role": "user", "parts": sent[2]["parts"][:-1]}]
    assert contents(*HI, said(Text(text="a")), trailing="n")[-1] == {
        "role": "user",
        "parts": [{"text": "n"}],
    }


@pytest.mark.rules("A4.5")
def test_the_bytes_of_a_history_do_not_change_when_it_grows() -> None:
    kept = HistoryEncoder(Model(provider="gemini", id=NEW))
    history: list[Message] = [*HI]
    before = b""
    for step in range(6):
        sent = encoded(NEW, messages=tuple(history), history=kept, trailing=f"n{step}").contents
        assert sent.written.startswith(before)
        assert sent == encoded(NEW, messages=tuple(history), trailing=f"n{step}").contents
        before = encoded(NEW, messages=tuple(history)).contents.written[:-2]
        history.append(said(Text(text="é"), signed("s"), call(f"c{step}", f"w{step}")))
        history.append(Message("tool", (result(f"c{step}", Text(text="ok"), PICTURE),)))
        history.append(Message("user", (Text(text="More."),)))


@pytest.mark.rules("A2.56")
def test_a_conversation_is_cut_between_its_entries() -> None:
    picture = Image(media_type="image/png", data="A" * 100_000)
    history = (
        said(Text(text="Before.")),
        Message("user", (Text(text="]},{"), picture)),
        said(Text(text="a"), call("c1")),
        said(call("c2")),
        Message("tool", (result("c1", picture),)),
        Message("tool", (result("c2", Text(text="b" * 900)), Text(text="words"))),
    )
    sent = encoded(NEW, messages=history, trailing="n").contents
    whole = json.loads(b"[%s]" % sent.written)
    assert [entry["role"] for entry in whole] == list(sent.roles)
    assert sent.roles == ("user", "model", "user", "model", "user")
    for count in range(len(whole) + 1):
        assert json.loads(b"[%s]" % sent.first(count)) == whole[:count]
        assert json.loads(b"[%s]" % sent.after(count)) == whole[count:]
    assert all(chars < 10_000 for chars in sent.chars)
    assert sent.chars[4] > 6900


@pytest.mark.rules("A4.5")
def test_tools_are_declared_once() -> None:
    kept = HistoryEncoder(Model(provider="gemini", id=NEW))
    tools = (ADD,)
    first = kept.declare(tools)
    assert kept.declare(tools) is first
    assert kept.declare((ADD, ADD)) == first + b"," + first


@pytest.mark.rules("A2.25", "R55")
def test_halves_of_characters_never_leave() -> None:
    half = "a\ud83d"
    history = (
        Message("user", (Text(text=half),)),
        said(Text(text=half), call("c1", name=half, arguments=json.dumps({half: half}))),
        Message("tool", (result("c1", Text(text=half)),)),
    )
    tool = ToolSpec(name="f", description=half, parameters={"properties": {half: {"enum": [half]}}})
    sent = encoded(NEW, messages=history, system=half, trailing=half, tools=(tool,)).body()
    found = json.loads(sent.decode())
    assert found["contents"][0]["parts"] == [{"text": "a\ufffd"}]
    assert found["tools"][0]["functionDeclarations"][0]["parameters"]["properties"] == {
        "a\ufffd": {"type": "string", "enum": ["a\ufffd"]}
    }
