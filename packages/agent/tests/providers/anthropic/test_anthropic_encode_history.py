"""From a conversation to the messages that the Messages API takes."""

import base64
import json
from typing import Any

import pytest

from towline_agent.providers.anthropic.encode import encode_request
from towline_agent.providers.anthropic.flags import AnthropicFlags
from towline_agent.providers.anthropic.history import HistoryEncoder
from towline_agent.providers.base import Model, Request, ToolSpec
from towline_agent.providers.endpoint import Encoded
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
)

_Json = dict[str, Any]

MODEL = Model(provider="p", id="m")
HI = (Message("user", (Text(text="Hi"),)),)
PLAIN = AnthropicFlags(cache_marks=False)
SHORT = {"type": "ephemeral"}


def encoded(
    flags: AnthropicFlags = PLAIN,
    model: Model = MODEL,
    *,
    stream: bool = True,
    history: HistoryEncoder | None = None,
    **fields: Any,
) -> Encoded:
    given: _Json = {"model": model.id, "messages": HI, **fields}
    request = Request(**given)
    return encode_request(request, model, flags, stream=stream, history=history)


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


def own(**raw: Any) -> Opaque:
    return Opaque(dialect="anthropic", raw=raw)


@pytest.mark.rules("A4.5")
def test_the_bytes_of_a_message_depend_on_nothing_that_comes_later() -> None:
    history = [
        user("go"),
        assistant(Thinking(text="Hm", signature="s"), call("a", "w1")),
        tool(result("a", Text(text="1"))),
        assistant(Text(text="x"), own(citations=[{"type": "c"}]), call("b", "w1")),
        tool(result("b", Text(text="2"))),
        user("more"),
        assistant(call("c", "w1")),
        tool(result("c")),
    ]
    kept_history, before = HistoryEncoder(MODEL, PLAIN), b""
    for count in (1, 3, 5, 6, 8):
        sent = tuple(history[:count])
        kept = encoded(messages=sent, history=kept_history).body
        assert kept == encoded(messages=sent).body
        start = before.removesuffix(b"]}").removesuffix(b"]}")
        assert kept.startswith(start)
        before = kept


@pytest.mark.rules("A4.5")
def test_a_long_history_is_encoded_once() -> None:
    """A message whose content may be read but two times: as the last one, and as an earlier one."""

    class Counting(tuple[Block, ...]):
        reads = 0

        def __iter__(self) -> Any:
            Counting.reads += 1
            return super().__iter__()

    long = Counting((Text(text="go"),))
    history = HistoryEncoder(MODEL, AnthropicFlags())
    sent = [Message("user", long)]
    for step in range(20):
        encoded(AnthropicFlags(), messages=tuple(sent), history=history, trailing=f"t{step}")
        sent += [assistant(call(f"c{step}")), tool(result(f"c{step}"))]
    assert Counting.reads <= 4


@pytest.mark.rules("A2.37", "R31", "R33")
def test_signed_thinking_goes_back_as_it_came_and_unusable_thinking_not_at_all() -> None:
    (_, sent, _) = messages(
        user("go"),
        assistant(
            Thinking(text="", signature="only proof"),
            Thinking(text="unsigned"),
            Thinking(text="", redacted=True),
            Text(text="said"),
            Thinking(text=" as it was ", signature="s"),
            call("a"),
            Thinking(text="led to nothing", signature="s2"),
        ),
        tool(result("a")),
    )
    assert sent["content"] == [
        {"type": "thinking", "thinking": "", "signature": "only proof"},
        {"type": "text", "text": "said"},
        {"type": "thinking", "thinking": " as it was ", "signature": "s"},
        {"type": "tool_use", "id": "a", "name": "f", "input": {}},
    ]
    flags = AnthropicFlags(cache_marks=False, unsigned_thinking=True)
    (_, sent) = messages(
        user("go"), assistant(Thinking(text="unsigned"), Text(text="said")), flags=flags
    )
    assert sent["content"][0] == {"type": "thinking", "thinking": "unsigned", "signature": ""}


@pytest.mark.rules("A2.38", "A1.8")
def test_redacted_thinking_and_vendor_blocks_go_back_in_their_places() -> None:
    use = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "q"}}
    found: _Json = {"type": "web_search_tool_result", "tool_use_id": "s", "content": []}
    compaction = {"type": "compaction", "content": "all"}
    (_, sent, _) = messages(
        user("go"),
        assistant(
            own(**compaction),
            Thinking(text="", signature="xyz", redacted=True),
            own(**use),
            own(**found),
            Text(text="So."),
            own(citations=[{"type": "c"}]),
            own(citations=[{"type": "after no text"}]),
            own(),
            Opaque(dialect="gemini", raw={"type": "text", "text": "no"}),
            Opaque(dialect="anthropic", raw="odd"),
            Unknown(name="x", raw={}),
            Text(text="Done."),
        ),
        user("more"),
    )
    assert sent["content"] == [
        compaction,
        {"type": "redacted_thinking", "data": "xyz"},
        use,
        found,
        {"type": "text", "text": "So.", "citations": [{"type": "after no text"}]},
        {"type": "text", "text": "Done."},
    ]


@pytest.mark.rules("A2.32")
def test_what_another_model_proved_or_kept_is_left_out() -> None:
    said = (
        Thinking(text="Hm", signature="s"),
        Thinking(text="", signature="x", redacted=True),
        own(type="compaction", content="all"),
        Text(text="So."),
        own(citations=[{"type": "c"}]),
        call("a", "toolu_1", signature='{"type":"code_execution_20250825","tool_id":"s"}'),
    )

    def sent(model: str | None) -> list[_Json]:
        answer = assistant(*said, model=model)
        return messages(user("go"), answer, tool(result("a")))[1]["content"]

    use: _Json = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}}
    assert sent("other/model") == [{"type": "text", "text": "So."}, use]
    assert len(sent("p/m")) == len(sent(None)) == 5
    assert sent("p/m")[-1]["caller"] == {"type": "code_execution_20250825", "tool_id": "s"}


@pytest.mark.rules("R37")
def test_empty_text_is_left_out_and_so_is_a_message_left_empty() -> None:
    sent = messages(
        user("a", " \n"),
        assistant(Text(text=""), Thinking(text="x")),
        user("b"),
        assistant(Text(text=" "), call("c")),
        tool(result("c", Text(text=" "))),
    )
    text = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    assert sent[0] == {"role": "user", "content": text}
    assert [part["type"] for part in sent[1]["content"]] == ["tool_use"]
    assert sent[2]["content"] == [{"type": "tool_result", "tool_use_id": "c"}]


@pytest.mark.rules("A2.40")
def test_roles_alternate_and_results_come_first() -> None:
    sent = messages(
        assistant(Text(text="from before")),
        user("one"),
        user("two"),
        assistant(Text(text="x")),
        assistant(call("a"), call("b")),
        Message("system", (Text(text="steer"),)),
        tool(result("a")),
        tool(result("b")),
    )
    assert [message["role"] for message in sent] == [
        "user",
        "assistant",
        "user",
        "assistant",
        "user",
    ]
    assert [part["type"] for part in sent[-1]["content"]] == ["tool_result", "tool_result", "text"]
    assert messages() == []
    assert messages(trailing="t") == [{"role": "user", "content": [{"type": "text", "text": "t"}]}]


@pytest.mark.rules("A1.6", "R17", "R37")
@pytest.mark.parametrize(
    ("arguments", "sent"),
    [
        ('{"a": 1}', {"a": 1}),
        ("", {}),
        ("  ", {}),
        ('{"a": 1', {"broken_arguments": '{"a": 1'}),
        ("[1]", {"broken_arguments": "[1]"}),
        ('{"a":1}{"b":2}', {"broken_arguments": '{"a":1}{"b":2}'}),
        ('{"n": 123456789012345678901234567890}', {"n": 123456789012345678901234567890}),
        ('{"a":' * 500 + "1" + "}" * 500, None),
    ],
)
def test_arguments_go_as_an_object_even_when_they_are_none(
    arguments: str, sent: _Json | None
) -> None:
    (_, message, _) = messages(user("go"), assistant(call("a", None, arguments)), tool(result("a")))
    (use,) = message["content"]
    assert use["input"] == (sent if sent is not None else {"broken_arguments": arguments})


def test_each_call_has_an_id_of_its_own_that_the_api_takes() -> None:
    sent = messages(
        user("go"),
        assistant(call("call.1", "toolu_1"), call("call.2", "toolu_1"), call("call.3", "f:0")),
        tool(result("call.1"), result("call.2"), result("call.3")),
        assistant(call("x" * 90, ""), call("y" * 90, "z" * 90)),
        tool(result("x" * 90), result("y" * 90)),
        assistant(call("call_2")),
        tool(result("call_2"), result("gone/1")),
    )
    ids = [part["id"] for m in sent for part in m["content"] if part["type"] == "tool_use"]
    assert ids == ["toolu_1", "call_2", "call_3", "x" * 64, "y" * 64, "call_2_2"]
    answered = [p["tool_use_id"] for m in sent for p in m["content"] if "tool_use_id" in p]
    assert answered == [*ids, "gone_1"]


def file(name: str, media_type: str, data: str | bytes | None) -> File:
    if data is not None:
        data = base64.b64encode(data.encode() if isinstance(data, str) else data).decode()
    return File(name=name, media_type=media_type, data=data)


@pytest.mark.rules("A2.41", "A1.4", "A1.5")
def test_pictures_and_documents_go_along_in_messages_and_results() -> None:
    picture = Image(media_type="image/png", data="AA==")
    pdf = file("a.pdf", "application/pdf", b"%PDF")
    blocks = (
        picture,
        pdf,
        file("", "text/csv; charset=utf-8", "a,b"),
        file("p.png", "image/png", b"x"),
    )
    wanted = [
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}},
        {
            "type": "document",
            "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERg=="},
            "title": "a.pdf",
        },
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "a,b"}},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "eA=="}},
    ]
    sent = messages(user("see", *blocks), assistant(call("a")), tool(result("a", *blocks)))
    assert sent[0]["content"][1:] == wanted
    assert sent[2]["content"] == [{"type": "tool_result", "tool_use_id": "a", "content": wanted}]


@pytest.mark.rules("A2.41", "A1.19")
@pytest.mark.parametrize(
    ("block", "words"),
    [
        (Image(media_type="image/png", file="hash"), "no longer there"),
        (Image(media_type="image/tiff", data="AA=="), "cannot be shown"),
        (file("a", "application/pdf", None), "no longer there"),
        (file("a", "application/zip", b"PK"), "cannot be shown"),
        (file("a", "text/plain", b"\xff\xfe"), "cannot be shown"),
        (File(name="a", media_type="text/plain", data="!"), "cannot be shown"),
    ],
)
def test_what_cannot_be_shown_is_named(block: Image | File, words: str) -> None:
    sent = encoded(messages=(user(block),))
    (part,) = json.loads(sent.body)["messages"][0]["content"]
    assert words in part["text"]
    assert len(sent.notices) == 1


def test_an_empty_file_is_named_and_a_gateway_without_documents_gets_words() -> None:
    (part,) = messages(user(file("a.txt", "text/plain", "")))[0]["content"]
    assert part == {"type": "text", "text": "[the file 'a.txt' is empty]"}
    flags = AnthropicFlags(cache_marks=False, documents=False)
    sent = messages(
        user(file("a.md", "text/markdown", "# A"), file("b", "application/pdf", b"%")), flags=flags
    )
    assert [part["type"] for part in sent[0]["content"]] == ["text", "text"]
    assert sent[0]["content"][0]["text"] == "a.md:\n# A"


@pytest.mark.rules("A1.7")
def test_results_say_whether_they_failed() -> None:
    sent = messages(
        user("go"),
        assistant(call("a"), call("b"), call("c")),
        tool(result("a", error=True), result("b", Text(text="no"), error=True), result("c")),
    )
    first, second, third = sent[2]["content"]
    assert first["is_error"]
    assert first["content"].strip()
    assert (second["is_error"], second["content"]) == (True, "no")
    assert third == {"type": "tool_result", "tool_use_id": "c"}


def test_an_answer_to_go_on_with_ends_in_no_space() -> None:
    history = (user("go"), assistant(Text(text="So ")))
    assert messages(*history)[1]["content"] == [{"type": "text", "text": "So"}]
    assert messages(*history, user("x"))[1]["content"] == [{"type": "text", "text": "So "}]
    sent = messages(*history, flags=AnthropicFlags(), trailing="<now>")
    assert [part.get("cache_control") for part in sent[0]["content"]] == [SHORT]
    assert sent[1]["content"] == [{"type": "text", "text": "So "}]
    assert sent[2] == {"role": "user", "content": [{"type": "text", "text": "<now>"}]}


@pytest.mark.rules("A2.25", "R55")
def test_half_a_character_in_anybodys_text_is_replaced() -> None:
    sent = encoded(
        system="\ud83d",
        messages=(
            user("a\ud83d"),
            assistant(Text(text="\ude00"), call("x", None, '{"a":"\ud83d"}')),
            tool(result("x", Text(text="\ud83d"))),
        ),
        tools=(ToolSpec(name="t", description="\ud83d", parameters={"a": "\ud83d"}),),
        trailing="\ud83d",
    )
    text = sent.body.decode()
    assert "\ufffd" in text
    assert json.loads(text)["messages"][1]["content"][1]["input"] == {"a": "\ufffd"}
