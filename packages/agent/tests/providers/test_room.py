"""Room in the window that a provider makes itself: who is asked to, how, and what comes of it."""

import json
from collections.abc import Callable
from typing import Any, Final

import pytest

from towline_agent.providers.anthropic.flags import AnthropicFlags
from towline_agent.providers.anthropic.provider import Anthropic
from towline_agent.providers.base import Model, Piece, Request, StepAnswer, StepFailed
from towline_agent.providers.catalog import connect
from towline_agent.providers.gemini.provider import Gemini
from towline_agent.providers.openai_chat.provider import OpenAIChat
from towline_agent.providers.openai_responses.provider import OpenAIResponses
from towline_agent.providers.room import CLEARED, shown_from, start_tokens
from towline_agent.testing import Scripted, ScriptedTransport, event_stream
from towline_protocol import (
    CallId,
    Message,
    MessageEnded,
    MessageId,
    Opaque,
    Text,
    ToolCall,
    ToolResult,
    Transcript,
    strip_private,
)

_Json = dict[str, Any]

CLAUDE: Final = Model(provider="anthropic", id="claude-opus-5-5", window=1_000_000)
GPT: Final = Model(provider="openai", id="gpt-5", window=400_000, output_cap=128_000)
SUMMED: Final = {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAA" * 10}
BETA: Final = "context-management-2025-06-27"


def ignore(_: Piece) -> None:
    pass


def user(text: str) -> Message:
    return Message("user", (Text(text=text),))


def said(*blocks: Opaque | Text | ToolCall, model: str = "openai/gpt-5") -> Message:
    return Message("assistant", blocks, model)


def ask(*messages: Message) -> Request:
    return Request(model="m", messages=messages or (user("Hi"),))


def summed(**fields: Any) -> Opaque:
    return Opaque(dialect="openai_responses", raw={**SUMMED, **fields})


def claude(*script: Scripted | bytes, **options: Any) -> tuple[Anthropic, ScriptedTransport]:
    transport = ScriptedTransport(*script)
    given: _Json = {"api_key": "k", "facts": CLAUDE, **options}
    return Anthropic("claude-opus-5-5", transport=transport, **given), transport


def gpt(*script: Scripted | bytes, **options: Any) -> tuple[OpenAIResponses, ScriptedTransport]:
    transport = ScriptedTransport(*script)
    given: _Json = {"api_key": "k", "facts": GPT, **options}
    return OpenAIResponses("gpt-5", transport=transport, **given), transport


def bodies(transport: ScriptedTransport) -> list[_Json]:
    return [json.loads(call.body or b"") for call in transport.calls]


def claude_says(**end: Any) -> bytes:
    return event_stream(
        {"type": "message_start", "message": {"id": "m", "content": []}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "A"}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, **end},
        {"type": "message_stop"},
        done=False,
    )


def gpt_says(*items: _Json) -> bytes:
    words = {"type": "message", "content": [{"type": "output_text", "text": "Hello"}]}
    usage = {"input_tokens": 206_574, "output_tokens": 30}
    ended = [
        {"type": "response.output_item.done", "output_index": place, "item": item}
        for place, item in enumerate([*items, words])
    ]
    response = {"status": "completed", "output": [*items, words], "usage": usage}
    return event_stream(*ended, {"type": "response.completed", "response": response}, done=False)


def refusal(message: str) -> Scripted:
    body = {"error": {"message": message, "type": "invalid_request_error"}}
    return Scripted(status=400, parts=(json.dumps(body).encode(),))


@pytest.mark.rules("A4.40")
@pytest.mark.parametrize(
    ("name", "options", "manages"),
    [
        ("anthropic/claude-opus-5-5", {}, True),
        ("anthropic/claude-haiku-4-5", {}, True),
        ("anthropic/claude-3-haiku", {}, False),
        ("anthropic/claude-of-tomorrow", {}, False),  # nobody knows its window
        ("anthropic/claude-opus-5-5", {"base_url": "https://llm.example"}, False),
        ("anthropic+chat/claude-opus-5-5", {}, False),
        ("custom+anthropic/claude-opus-5-5", {"base_url": "https://llm.example"}, False),
        ("minimax/MiniMax-M3", {}, False),
        ("openai/gpt-5.4-nano", {}, True),
        ("openai/gpt-6.1-sol", {}, True),
        ("openai/gpt-5-chat-latest", {}, False),
        ("openai/gpt-4o", {}, False),
        ("openai/o3", {}, False),
        ("openai+chat/gpt-5", {}, False),
        ("openai+responses/gpt-5", {"base_url": "https://llm.example"}, False),
        ("azure/gpt-5", {"base_url": "https://x.openai.azure.com/openai/v1"}, False),
        ("openrouter+responses/openai/gpt-5", {}, False),
        ("gemini/gemini-3.8-flash", {}, False),
    ],
)
def test_only_the_makers_own_hosts_are_asked_to_make_room(
    name: str, options: _Json, *, manages: bool
) -> None:
    assert connect(name, {}, api_key="k", **options).model.manages_context is manages


@pytest.mark.rules("A4.40")
def test_a_provider_made_in_code_goes_by_its_host_and_its_flags() -> None:
    for host, manages in (("https://api.anthropic.com", True), ("https://llm.example", False)):
        assert claude(base_url=host)[0].model.manages_context is manages
    for host, manages in (("https://api.openai.com/v1", True), ("http://[", False)):
        assert gpt(base_url=host)[0].model.manages_context is manages
    assert not claude(flags=AnthropicFlags())[0].model.manages_context
    assert not claude(facts=Model(provider="a", id="claude-opus-5-5"))[0].model.manages_context


@pytest.mark.rules("A4.40", "A4.5")
async def test_anthropic_is_asked_alike_in_every_request() -> None:
    asked, transport = claude(claude_says(), claude_says(), extra_headers={"anthropic-beta": "x-1"})
    await asked.step(ask(), ignore)
    await asked.step(ask(user("Hi"), said(Text(text="Yes?")), user("Go on.")), ignore)
    first, second = bodies(transport)
    assert first["context_management"] == {
        "edits": [
            {
                "type": "clear_tool_uses_20250919",
                "trigger": {"type": "input_tokens", "value": 750_000},
                "keep": {"type": "tool_uses", "value": 16},
                "clear_at_least": {"type": "input_tokens", "value": 100_000},
            }
        ]
    }
    assert second["context_management"] == first["context_management"]
    assert transport.calls[0].headers["anthropic-beta"] == f"x-1,{BETA}"


@pytest.mark.rules("A4.40")
async def test_who_is_not_asked_gets_neither_field_nor_header() -> None:
    asked, transport = claude(claude_says(), base_url="https://llm.example")
    await asked.step(ask(), ignore)
    assert "context_management" not in bodies(transport)[0]
    assert "anthropic-beta" not in transport.calls[0].headers
    other, transport = gpt(gpt_says(), base_url="https://llm.example/v1")
    await other.step(ask(), ignore)
    assert "context_management" not in bodies(transport)[0]


@pytest.mark.rules("A4.40")
@pytest.mark.parametrize(
    ("management", "told"),
    [
        ({"applied_edits": [{"type": "clear", "cleared_tool_uses": 8}]}, CLEARED),
        ({"applied_edits": [{"cleared_thinking_turns": 3}, {"cleared_tool_uses": 1.0}]}, CLEARED),
        ({"applied_edits": [{"cleared_tool_uses": 0}]}, ""),
        ({"applied_edits": []}, ""),
        ({"applied_edits": "none"}, ""),
        (None, ""),
        (7, ""),
    ],
)
async def test_what_anthropic_left_out_is_told(management: Any, told: str) -> None:
    asked, _ = claude(claude_says(context_management=management))
    streamed = await asked.step(ask(), ignore)
    assert isinstance(streamed, StepAnswer)
    assert (streamed.made_room, streamed.used) == (told, None)
    document: _Json = {
        "content": [{"type": "text", "text": "A"}],
        "stop_reason": "end_turn",
        "context_management": management,
    }
    whole = Scripted(parts=(json.dumps(document).encode(),), headers={"content-type": "json"})
    asked, _ = claude(whole, stream=False)
    answer = await asked.step(ask(), ignore)
    assert isinstance(answer, StepAnswer)
    assert answer.made_room == told


@pytest.mark.rules("A4.40")
async def test_anthropics_own_words_of_an_edit_are_understood(
    recorded_streams: Callable[[str], list[tuple[str, str, bytes]]],
) -> None:
    """A recorded event in which nothing was left out, then the same with what the API documents."""
    _, _, stream = next(row for row in recorded_streams("anthropic") if "d2998a83" in row[0])
    assert stream.count(b'"applied_edits":[]') == 1
    edits = b'"applied_edits":[{"type":"clear_tool_uses_20250919","cleared_tool_uses":8}]'
    asked, _ = claude(stream, stream.replace(b'"applied_edits":[]', edits))
    for told in ("", CLEARED):
        answer = await asked.step(ask(), ignore)
        assert isinstance(answer, StepAnswer)
        assert answer.made_room == told


@pytest.mark.rules("A4.40")
async def test_openai_is_asked_to_sum_up_before_its_input_is_full() -> None:
    asked, transport = gpt(gpt_says())
    await asked.step(ask(), ignore)
    expected = [{"type": "compaction", "compact_threshold": 204_000}]  # of 400,000 less the answer
    assert bodies(transport)[0]["context_management"] == expected
    small, transport = gpt(gpt_says(), facts=Model(provider="openai", id="gpt-5", window=1_000))
    await small.step(ask(), ignore)
    assert bodies(transport)[0]["context_management"][0]["compact_threshold"] == 1_000


@pytest.mark.rules("A4.40")
def test_of_a_window_that_is_all_answer_no_part_is_set_aside() -> None:
    assert start_tokens(GPT, 128_000) == 204_000
    assert start_tokens(Model(provider="openai", id="gpt-5.3", window=128_000), 128_000) == 96_000


@pytest.mark.rules("A4.40", "A1.8")
async def test_a_summary_of_openais_is_told_kept_and_stands_for_all_before_it() -> None:
    asked, transport = gpt(gpt_says(SUMMED), gpt_says())
    long = (user("First."), said(Text(text="Old.")), user("Second."))
    answer = await asked.step(ask(*long), ignore)
    assert isinstance(answer, StepAnswer)
    assert answer.content == (summed(), Text(text="Hello"))
    assert "206,574 tokens" in answer.made_room
    assert answer.used == 30 + 10
    await asked.step(ask(*long, through_the_log(answer.content), user("Third.")), ignore)
    sent = bodies(transport)[1]["input"]
    assert [item["type"] for item in sent] == ["compaction", "message", "message"]
    assert sent[0] == SUMMED
    assert sent[-1]["content"][0]["text"] == "Third."


def through_the_log(content: tuple[Any, ...]) -> Message:
    """The message as it comes back from a log, whose private parts lie beside it."""
    public, private = strip_private(content)
    assert "gAAA" not in repr(public)
    log = Transcript()
    log.add(MessageEnded(message=MessageId("m"), content=public), private)
    return log.messages()[-1]


@pytest.mark.rules("A4.40")
async def test_a_call_beside_a_summary_keeps_its_result_and_a_systems_words_stay() -> None:
    call = ToolCall(id=CallId("c1"), name="look", arguments="{}", wire_id="c1")
    result = Message("tool", (ToolResult(call=CallId("c1"), content=(Text(text="It."),)),))
    rules = Message("system", (Text(text="Be kind."),))
    messages = (rules, user("First."), said(summed(), call), result)
    asked, transport = gpt(gpt_says(), gpt_says())
    await asked.step(ask(*messages), ignore)
    await asked.step(ask(*messages, said(Text(text="Done.")), user("More.")), ignore)
    first, second = (body["input"] for body in bodies(transport))
    kinds = ["message", "compaction", "function_call", "function_call_output"]
    assert [item["type"] for item in first] == kinds
    assert first[0]["role"] == "system"
    assert second[: len(first)] == first  # byte for byte the same beginning (A4.5)


@pytest.mark.rules("A4.40", "A2.32")
@pytest.mark.parametrize(
    "block",
    [
        said(summed(), model="openai/gpt-6.1-sol"),
        said(summed(encrypted_content="")),
        said(summed(type="reasoning"), Text(text="Hm.")),
        said(Opaque(dialect="openai_responses"), Text(text="Hm.")),
        Message("user", (summed(), Text(text="I am no vendor."))),
    ],
)
def test_what_says_nothing_to_the_model_stands_for_nothing(block: Message) -> None:
    assert shown_from((user("First."), block, user("Second.")), "openai/gpt-5") == 0


@pytest.mark.rules("A4.40", "A2.32")
async def test_another_accounts_summary_stays_behind_and_all_is_sent_again() -> None:
    asked, transport = gpt(refusal("The encrypted content could not be verified."), gpt_says())
    answer = await asked.step(
        ask(user("First."), said(summed(), Text(text="Old.")), user("Go on.")), ignore
    )
    assert isinstance(answer, StepAnswer)
    sent = bodies(transport)
    assert [item["type"] for item in sent[0]["input"]] == ["compaction", "message", "message"]
    texts = [item["content"][0]["text"] for item in sent[1]["input"]]
    assert texts == ["First.", "Old.", "Go on."]


@pytest.mark.rules("A4.40")
@pytest.mark.parametrize("make", [Anthropic, OpenAIChat, Gemini])
async def test_other_dialects_are_sent_the_whole_conversation(
    make: type[Anthropic] | type[OpenAIChat] | type[Gemini],
) -> None:
    transport = ScriptedTransport(Scripted(status=500, parts=(b"{}",)))
    asked = make("m", api_key="k", base_url="https://llm.example", transport=transport)
    await asked.step(ask(user("First."), said(summed(), Text(text="Old.")), user("Go on.")), ignore)
    sent = transport.calls[0].body or b""
    assert b"First." in sent
    assert b"Old." in sent
    assert b"gAAA" not in sent


@pytest.mark.rules("A4.40")
@pytest.mark.parametrize(
    "message",
    [
        "context_management: Extra inputs are not permitted",
        "Unexpected value(s) `context-management-2025-06-27` for the `anthropic-beta` header",
    ],
)
async def test_a_claude_that_is_refused_for_it_is_asked_without_from_then_on(message: str) -> None:
    asked, transport = claude(refusal(message), claude_says(), claude_says())
    for _ in range(2):
        assert isinstance(await asked.step(ask(), ignore), StepAnswer)
    assert ["context_management" in body for body in bodies(transport)] == [True, False, False]
    assert [BETA in call.headers.get("anthropic-beta", "") for call in transport.calls] == [
        True,
        False,
        False,
    ]
    assert not asked.model.manages_context


@pytest.mark.rules("A4.40")
async def test_a_gpt_that_is_refused_for_it_is_asked_without_from_then_on() -> None:
    message = "Unsupported parameter: 'context_management' is not supported with this model."
    asked, transport = gpt(refusal(message), gpt_says(), gpt_says())
    for _ in range(2):
        assert isinstance(await asked.step(ask(), ignore), StepAnswer)
    assert ["context_management" in body for body in bodies(transport)] == [True, False, False]
    assert not asked.model.manages_context


@pytest.mark.rules("A4.40")
async def test_a_refusal_for_something_else_is_told_at_once() -> None:
    for asked, transport in (claude(refusal("No.")), gpt(refusal("No."))):
        assert isinstance(await asked.step(ask(), ignore), StepFailed)
        assert len(transport.calls) == 1
        assert asked.model.manages_context
