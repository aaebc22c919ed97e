"""Recorded requests, read into neutral words and encoded again, say the same (D23).

Equal are roles, the order of items, ids, arguments as JSON values, tool names and schemas. Left out
of account are sampling, vendors' own keys and tools, and whether a text stands bare or as a part.
"""

import json
from collections.abc import Callable
from typing import Any

import pytest
from recorded import PEER, Json, Recordings, load_requests, name_calls

from towline_agent.providers.base import Model, Request, StepAnswer, ToolSpec
from towline_agent.providers.openai_responses.decode import ResponsesDecoder
from towline_agent.providers.openai_responses.encode import encode_request
from towline_agent.providers.openai_responses.flags import ResponsesFlags
from towline_protocol import (
    Block,
    Image,
    Message,
    Opaque,
    Text,
    ToolCall,
    ToolResult,
)

EXCEPTIONS = {"picture by address": "a picture of ours is bytes"}
"""Why some requests are not compared: the word that marks them, and the reason."""
RECORDED = Recordings("openai-responses", lambda _, told: ResponsesDecoder(PEER, told))


def _exception(body: Json) -> str | None:
    marked = '"image_url": "http' in json.dumps(body["input"])
    return "picture by address" if marked else None


def _input(body: Json) -> list[Json]:
    found: Any = body["input"]
    return [{"role": "user", "content": found}] if isinstance(found, str) else found


def _parts(content: Any) -> list[Json]:
    return [{"type": "input_text", "text": content}] if isinstance(content, str) else content


def _blocks(content: Any) -> list[Block]:
    blocks: list[Block] = []
    for part in _parts(content):
        if part["type"] == "input_image":
            media_type, _, data = part["image_url"].removeprefix("data:").partition(";base64,")
            blocks.append(Image(media_type=media_type, data=data))
        else:
            blocks.append(Text(text=part["text"]))
    return blocks


def _opaque(raw: Json) -> Opaque:
    return Opaque(dialect="openai_responses", raw=raw)


def _said(item: Json) -> list[Block]:
    """The blocks of an item that the model wrote."""
    if item.get("type") == "function_call":
        signature = json.dumps({"id": item["id"]}) if "id" in item else None
        return [
            ToolCall(
                id=item["call_id"],
                name=item["name"],
                arguments=item["arguments"],
                wire_id=item["call_id"],
                signature=signature,
            )
        ]
    if item.get("type", "message") != "message":
        return [_opaque(item)]
    blocks = _blocks(item["content"])
    if "id" not in item:
        return blocks
    parts = [{k: v for k, v in part.items() if k != "text"} for part in item["content"]]
    return [_opaque({**item, "content": parts}), *blocks]


def _messages(items: list[Json]) -> tuple[Message, ...]:
    messages: list[Message] = []
    for item in items:
        if item.get("type") == "function_call_output":
            texts = [block for block in _blocks(item["output"]) if isinstance(block, Text | Image)]
            result = ToolResult(call=item["call_id"], content=tuple(texts))
            messages.append(Message("tool", (result,)))
        elif item.get("role") in ("user", "system", "developer"):
            role = "user" if item["role"] == "user" else "system"
            messages.append(Message(role, tuple(_blocks(item["content"]))))
        elif messages and messages[-1].role == "assistant":
            said = (*messages[-1].content, *_said(item))
            messages[-1] = Message("assistant", said)
        else:
            messages.append(Message("assistant", tuple(_said(item))))
    return tuple(messages)


def _neutral(body: Json, messages: tuple[Message, ...]) -> Request:
    tools: list[Json] = body.get("tools") or []
    return Request(
        model=body["model"],
        system=body.get("instructions") or "",
        messages=messages,
        tools=tuple(
            ToolSpec(
                name=tool["name"],
                description=tool.get("description") or "",
                parameters=tool["parameters"],
            )
            for tool in tools
            if tool["type"] == "function"
        ),
        max_tokens=body.get("max_output_tokens"),
        server_tools=tuple("web_search" for tool in tools if tool["type"] == "web_search"),
    )


def _encode(body: Json, messages: tuple[Message, ...]) -> Json:
    encoded = encode_request(
        _neutral(body, messages),
        Model(provider="p", id=body["model"]),
        ResponsesFlags(),
        stream=bool(body.get("stream")),
    )
    assert encoded.notices == ()
    return json.loads(encoded.body)


def _plain(body: Json, *, ids: bool = True) -> Json:
    """What must be equal; without ids, calls are named in their order."""
    names: dict[str, str] = {}
    tools: list[Json] = body.get("tools") or []
    kept = [tool for tool in tools if tool["type"] in ("function", "web_search")]
    return {
        "model": body["model"],
        "system": body.get("instructions") or "",
        "items": [_plain_item(item, names, ids) for item in _input(body)],
        "tools": [
            [tool.get("name"), tool.get("description") or "", tool.get("parameters")]
            for tool in kept
        ],
        "limit": body.get("max_output_tokens"),
        "stream": bool(body.get("stream")),
    }


def _plain_item(item: Json, names: dict[str, str], ids: bool) -> Any:
    kind: str = item.get("type", "message")
    id_: Any = item.get("id") if ids else None
    if kind == "function_call":
        name = item["call_id"] if ids else names.setdefault(item["call_id"], str(len(names)))
        return [kind, id_, name, item["name"], json.loads(item["arguments"])]
    if kind == "function_call_output":
        name = item["call_id"] if ids else names.get(item["call_id"])
        return [kind, name, [_plain_part(part) for part in _parts(item["output"])]]
    if kind == "message":
        role = "system" if item["role"] == "developer" else item["role"]
        return [
            role,
            id_,
            item.get("phase"),
            [_plain_part(part) for part in _parts(item["content"])],
        ]
    if kind == "reasoning":
        return [kind, id_, item["encrypted_content"], item["summary"]]
    return item


def _plain_part(part: Json) -> Any:
    return part.get("image_url") or part["text"]


@pytest.mark.rules("A1.16", "A1.17", "A2.28", "D23")
def test_recorded_requests_come_out_as_they_were(show_figures: Callable[[str], None]) -> None:
    compared, skipped, wrong = 0, 0, list[str]()
    cases = load_requests("openai-responses")
    for case in cases:
        body = case["request"]["body"]
        if _exception(body) is not None:
            skipped += 1
            continue
        compared += 1
        if _plain(_encode(body, _messages(_input(body)))) != _plain(body):
            wrong.append(case["id"])
    right = compared - len(wrong)
    show_figures(
        f"recorded Responses requests: {right} of {compared} equal, "
        f"{skipped} of {len(cases)} not compared: {', '.join(EXCEPTIONS.values())}"
    )
    assert wrong == []
    assert skipped <= 0.05 * len(cases)


def _answer(case: Json) -> StepAnswer:
    result, _ = RECORDED.result(case)
    assert isinstance(result, StepAnswer)
    return result


def _continued() -> list[tuple[Json, Json]]:
    """Recordings whose request goes on where the answer of another one ended."""
    cases = load_requests("openai-responses")
    return [
        (first, second)
        for first in cases
        for second in cases
        if len(_input(second["request"]["body"])) > len(_input(first["request"]["body"]))
        and _input(second["request"]["body"])[: len(_input(first["request"]["body"]))]
        == _input(first["request"]["body"])
    ]


def _group(case: Json) -> str:
    sequence: Json = case.get("sequence") or {}
    return sequence.get("group", "")


@pytest.mark.rules("A2.28", "A1.8", "D23")
def test_each_turn_of_a_recorded_loop_replays_the_one_before_it() -> None:
    pairs = _continued()
    groups = {_group(case) for case in load_requests("openai-responses")} - {""}
    assert groups <= {_group(first) for first, _ in pairs}
    for first, second in pairs:
        before, after = first["request"]["body"], second["request"]["body"]
        earlier = len(_input(before))
        answer = Message("assistant", name_calls(_answer(first).content))
        calls = [block for block in answer.content if isinstance(block, ToolCall)]
        recorded = [
            item for item in _input(after)[earlier:] if item.get("type") == "function_call_output"
        ]
        results = tuple(ToolResult(call=call.id, content=(Text(text="ok"),)) for call in calls)
        history = (*_messages(_input(before)), answer, Message("tool", results))
        sent = _encode(after, history)
        replayed = _input(after)
        assert len(sent["input"]) == len(replayed), first["id"]
        assert len(calls) == len(recorded) > 0
        for ours, theirs in zip(sent["input"][earlier:], replayed[earlier:], strict=True):
            _check(ours, theirs)
        # what an answer holds goes back under the id it came with, results under their calls'
        names = {item["call_id"] for item in sent["input"] if item["type"] == "function_call"}
        assert {
            item["call_id"] for item in sent["input"] if item["type"] == "function_call_output"
        } <= names
    assert len(pairs) >= 4


def _check(ours: Json, theirs: Json) -> None:
    """An item that we send again is the one that was recorded."""
    assert ours["type"] == theirs.get("type", "message")
    if ours["type"] == "function_call_output":
        return
    if "id" in theirs:
        assert ours["id"] == theirs["id"]
    for key in ("encrypted_content", "summary", "name", "phase", "status", "role"):
        if key in theirs:
            assert ours[key] == theirs[key], key
    if ours["type"] == "function_call":
        assert json.loads(ours["arguments"]) == json.loads(theirs["arguments"])
    if ours["type"] == "message":
        assert len(ours["content"]) == len(theirs["content"])
