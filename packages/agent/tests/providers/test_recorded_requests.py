"""Recorded requests, read into neutral words and encoded again, say the same (D23).

Equal are roles, order, ids, arguments as JSON values, tool names and schemas. Left out of account
are sampling, cache marks, vendors' own keys and tools, and whether a text stands bare or as a part.
"""

import json
from collections.abc import Callable
from typing import Any

import pytest
from recorded import PEER, Json, Recordings, is_stream, load_loops, load_requests, name_calls

from towline_agent.providers.base import Model, Request, StepAnswer, ToolSpec
from towline_agent.providers.openai_chat.decode import ChatDecoder
from towline_agent.providers.openai_chat.encode import encode_request
from towline_agent.providers.openai_chat.flags import ChatFlags
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

EXCEPTIONS = {
    "audio": "sound is no block of ours",
    "document_url": "Mistral's own part for documents",
    "picture by address": "a picture of ours is bytes",
}
"""Why some requests are not compared: the word that marks them, and the reason."""


def _exception(body: Json) -> str | None:
    text = json.dumps(body["messages"])
    marks = {
        "audio": '"input_audio"',
        "document_url": '"document_url"',
        "picture by address": '"url": "http',
    }
    return next((name for name, mark in marks.items() if mark in text), None)


def _block(part: Json) -> Block:
    match part["type"]:
        case "text":
            return Text(text=part["text"])
        case "image_url":
            media_type, _, data = (
                part["image_url"]["url"].removeprefix("data:").partition(";base64,")
            )
            return Image(media_type=media_type, data=data)
        case "file":
            media_type, _, data = (
                part["file"]["file_data"].removeprefix("data:").partition(";base64,")
            )
            return File(name=part["file"]["filename"], media_type=media_type, data=data)
        case other:
            raise AssertionError(other)


def _content(content: Any) -> list[Block]:
    if not content:
        return []
    return [Text(text=content)] if isinstance(content, str) else [_block(part) for part in content]


def _message(message: Json) -> Message:
    role: str = "system" if message["role"] == "developer" else message["role"]
    blocks = _content(message.get("content"))
    if role == "tool":
        texts = tuple(block for block in blocks if isinstance(block, Text))
        return Message("tool", (ToolResult(call=message["tool_call_id"], content=texts),))
    calls: list[Json] = message.get("tool_calls") or []
    for call in calls:
        function = call["function"]
        id_ = CallId(call["id"])
        blocks.append(
            ToolCall(id=id_, name=function["name"], arguments=function["arguments"], wire_id=id_)
        )
    return Message(role, tuple(blocks))


def _neutral(body: Json) -> Request:
    tools: list[Json] = body.get("tools") or []
    functions: list[Json] = [tool["function"] for tool in tools if "function" in tool]
    return Request(
        model=body["model"],
        messages=tuple(map(_message, body["messages"])),
        tools=tuple(
            ToolSpec(
                name=function["name"],
                description=function.get("description") or "",
                parameters=function.get("parameters") or {},
            )
            for function in functions
        ),
        max_tokens=body.get("max_tokens") or body.get("max_completion_tokens"),
    )


def _plain(body: Json) -> Json:
    """What must be equal."""
    messages: list[Any] = []
    for message in body["messages"]:
        content: Any = message.get("content") or []
        parts: list[Any] = (
            [{"type": "text", "text": content}] if isinstance(content, str) else content
        )
        calls: list[Json] = message.get("tool_calls") or []
        messages.append(
            {
                "role": "system" if message["role"] == "developer" else message["role"],
                "parts": [_plain_part(part) for part in parts],
                "calls": [
                    [
                        call["id"],
                        call["function"]["name"],
                        json.loads(call["function"]["arguments"]),
                    ]
                    for call in calls
                ],
                "result": message.get("tool_call_id"),
            }
        )
    tools: list[Json] = body.get("tools") or []
    shown: list[Any] = [
        [
            tool["function"]["name"],
            tool["function"].get("description") or "",
            tool["function"].get("parameters") or {},
        ]
        for tool in tools
        if "function" in tool
    ]
    limit = body.get("max_tokens") or body.get("max_completion_tokens")
    return {"model": body["model"], "messages": messages, "tools": shown, "limit": limit}


def _plain_part(part: Json) -> Any:
    if part["type"] == "image_url":
        return ["image", part["image_url"]["url"]]
    return part.get("file") or part["text"]


@pytest.mark.rules("A1.16", "A1.17", "D23")
def test_recorded_requests_come_out_as_they_were(show_figures: Callable[[str], None]) -> None:
    compared, skipped, wrong = 0, 0, list[str]()
    cases = load_requests("openai-chat")
    for case in cases:
        body = case["request"]["body"]
        if _exception(body) is not None:
            skipped += 1
            continue
        compared += 1
        again = encode_request(
            _neutral(body),
            Model(provider="p", id=body["model"]),
            ChatFlags(),
            stream=bool(body.get("stream")),
            official=case["request"]["host"] == "api.openai.com",
        )
        if _plain(json.loads(again.body)) != _plain(body):
            wrong.append(case["id"])
    right = compared - len(wrong)
    show_figures(
        f"recorded Chat Completions requests: {right} of {compared} equal, "
        f"{skipped} of {len(cases)} not compared: {', '.join(EXCEPTIONS.values())}"
    )
    assert wrong == []
    assert skipped <= 0.05 * len(cases)


def _answer(case: Json, flags: ChatFlags) -> StepAnswer:
    recorded = Recordings("openai-chat", lambda _, told: ChatDecoder(PEER, flags, told))
    result, _ = recorded.result(case)
    assert isinstance(result, StepAnswer)
    return result


@pytest.mark.rules("A1.8", "A2.15", "D23")
def test_what_a_model_said_goes_back_as_its_vendor_wants_it() -> None:
    flags_of = {
        "openrouter": ChatFlags(replay="reasoning_details"),
        "deepseek": ChatFlags(replay="reasoning_content"),
        "avian": ChatFlags(replay="reasoning_content"),
        "xai": ChatFlags(replay="reasoning_content"),
        "llamacpp": ChatFlags(replay="reasoning_content"),
    }
    streamed = [case for case in load_requests("openai-chat") if is_stream(case)]
    compared = 0
    for loop in load_loops(streamed):
        for step, case in sorted(loop.items()):
            if step + 1 not in loop:
                continue
            flags = flags_of.get(case["provider"], ChatFlags())
            answer = _answer(case, flags)
            named = name_calls(answer.content)
            request = Request(model="m", messages=(Message("assistant", named),))
            model = Model(provider="p", id="m")
            body = encode_request(request, model, flags, stream=True, official=False).body
            (sent,) = json.loads(body)["messages"]
            earlier = len(case["request"]["body"]["messages"])
            replayed = loop[step + 1]["request"]["body"]["messages"][earlier]
            if not sent.get("tool_calls"):
                continue  # a new prompt, not the next step of a tool loop
            compared += 1
            for key in ("reasoning_details", "reasoning_content"):
                if key in replayed:
                    assert sent[key] == replayed[key], case["id"]
            assert _calls(sent) == _calls(replayed), case["id"]
    assert compared >= 9


def _calls(message: Json) -> list[Any]:
    calls: list[Json] = message.get("tool_calls") or []
    return [
        [call["id"], call["function"]["name"], json.loads(call["function"]["arguments"])]
        for call in calls
    ]
