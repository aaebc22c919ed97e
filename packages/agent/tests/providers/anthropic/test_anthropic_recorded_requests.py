"""Recorded requests, read into neutral words and encoded again, say the same (D23).

Equal are roles, order, ids, arguments as JSON values, results, proofs, vendor blocks, tool names
and schemas. Left out of account are sampling, cache marks, vendors' own keys, and whether a text
stands bare or as a part.
"""

import base64
import json
from collections.abc import Callable
from typing import Any

import pytest
from recorded import PEER, Json, Recordings, load_local, load_loops, load_requests, name_calls

from towline_agent.providers.anthropic.decode import MessagesDecoder
from towline_agent.providers.anthropic.encode import encode_request
from towline_agent.providers.anthropic.flags import AnthropicFlags
from towline_agent.providers.anthropic.history import HistoryEncoder
from towline_agent.providers.base import Model, Request, StepAnswer, ToolSpec
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

EXCEPTIONS = {"picture by address": "a picture of ours is bytes"}
"""Why some requests are not compared: the word that marks them, and the reason."""
RECORDED = Recordings("anthropic-messages", lambda _, told: MessagesDecoder(PEER, told))


def _local_bodies() -> dict[str, Json]:
    asked = load_local("/v1/messages").values()
    return {one.name: one.request["body"] for one in asked if isinstance(one.request["body"], dict)}


def _exception(body: Json) -> str | None:
    text = json.dumps(body["messages"])
    return "picture by address" if '"type": "url"' in text else None


def _parts(content: Any) -> list[Json]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _blocks(part: Json) -> tuple[Block, ...]:
    match part["type"]:
        case "text":
            cited: Block = Opaque(dialect="anthropic", raw={"citations": part.get("citations")})
            return (Text(text=part["text"]), *([cited] if part.get("citations") else []))
        case "image":
            source = part["source"]
            return (Image(media_type=source["media_type"], data=source["data"]),)
        case "document":
            source = part["source"]
            data = source["data"]
            if source["type"] == "text":
                data = base64.b64encode(data.encode()).decode()
            name = part.get("title") or ""
            return (File(name=name, media_type=source["media_type"], data=data),)
        case "tool_use":
            id_ = CallId(part["id"])
            arguments = json.dumps(part["input"])
            return (ToolCall(id=id_, name=part["name"], arguments=arguments, wire_id=id_),)
        case "tool_result":
            inner = [_blocks(inner)[0] for inner in _parts(part.get("content") or [])]
            content = tuple(block for block in inner if isinstance(block, Text | Image | File))
            failed: bool = part.get("is_error") or False
            return (ToolResult(call=CallId(part["tool_use_id"]), content=content, is_error=failed),)
        case "thinking":
            return (Thinking(text=part["thinking"], signature=part["signature"]),)
        case "redacted_thinking":
            return (Thinking(text="", signature=part["data"], redacted=True),)
        case _:
            return (Opaque(dialect="anthropic", raw=part),)


def _message(message: Json) -> Message:
    blocks = tuple(block for part in _parts(message["content"]) for block in _blocks(part))
    results = any(isinstance(block, ToolResult) for block in blocks)
    return Message("tool" if results else message["role"], blocks)


def _neutral(body: Json) -> Request:
    tools: list[Json] = [tool for tool in body.get("tools", []) if "input_schema" in tool]
    return Request(
        model=body.get("model", "m"),
        system="".join(part["text"] for part in _parts(body.get("system") or [])),
        messages=tuple(map(_message, body["messages"])),
        tools=tuple(
            ToolSpec(
                name=tool["name"],
                description=tool.get("description") or "",
                parameters=tool["input_schema"],
            )
            for tool in tools
        ),
        max_tokens=body.get("max_tokens"),
    )


def _plain(body: Json) -> Json:
    """What must be equal."""
    tools: list[Json] = [tool for tool in body.get("tools", []) if "input_schema" in tool]
    return {
        "model": body.get("model", "m"),
        "system": "".join(part["text"] for part in _parts(body.get("system") or [])),
        "messages": [
            [message["role"], [_plain_part(part) for part in _parts(message["content"])]]
            for message in body["messages"]
        ],
        "tools": [
            [tool["name"], tool.get("description") or "", tool["input_schema"]] for tool in tools
        ],
        "limit": body.get("max_tokens", 8192),
    }


def _plain_part(part: Json) -> Json:
    kept = {key: value for key, value in part.items() if key != "cache_control"}
    match kept["type"]:
        case "tool_result":
            content: list[Json] = [_plain_part(inner) for inner in _parts(kept.get("content", []))]
            return {**kept, "content": content, "is_error": kept.get("is_error", False)}
        case "document":
            kept.pop("citations", None)
        case "tool_use":
            kept.pop("caller", None)
        case _:
            pass
    return kept


def _again(body: Json) -> Json:
    request = _neutral(body)
    model = Model(provider="p", id=request.model)
    return json.loads(encode_request(request, model, AnthropicFlags(), stream=True).body)


@pytest.mark.rules("A1.16", "A2.40", "A2.41", "A2.38", "A2.43", "D23")
def test_recorded_requests_come_out_as_they_were(show_figures: Callable[[str], None]) -> None:
    bodies = {
        case["id"]: case["request"]["body"] for case in load_requests("anthropic-messages")
    } | _local_bodies()
    skipped = [name for name, body in bodies.items() if _exception(body) is not None]
    compared = {name: body for name, body in bodies.items() if name not in skipped}
    wrong = [name for name, body in compared.items() if _plain(_again(body)) != _plain(body)]
    right = len(compared) - len(wrong)
    show_figures(
        f"recorded Messages requests: {right} of {len(compared)} equal, {len(skipped)} of "
        f"{len(bodies)} not compared: {', '.join(EXCEPTIONS.values())}"
    )
    assert wrong == []
    assert len(compared) > 40
    assert len(skipped) <= 0.05 * len(load_requests("anthropic-messages"))


def _answer(case: Json) -> StepAnswer:
    result, _ = RECORDED.result(case)
    assert isinstance(result, StepAnswer)
    return result


@pytest.mark.rules("A2.37", "A4.5", "D23")
def test_each_recorded_loop_goes_on_as_its_vendor_wants_it() -> None:
    loops = load_loops(RECORDED.cases)
    assert len(loops) == 2
    for loop in loops:
        kept: HistoryEncoder | None = None
        for step in range(1, len(loop)):
            asked, after = loop[step]["request"]["body"], loop[step + 1]["request"]["body"]
            request = _neutral(asked)
            model = Model(provider="p", id=request.model)
            kept = kept or HistoryEncoder(model, AnthropicFlags())
            named = name_calls(_answer(loop[step]).content)
            calls = [block for block in named if isinstance(block, ToolCall)]
            results = tuple(
                ToolResult(call=call.id, content=(Text(text="40 C"),)) for call in calls
            )
            history = (
                *request.messages,
                Message("assistant", named, model=model.name),
                Message("tool", results),
            )
            sent = [
                json.loads(
                    encode_request(
                        Request(model=model.id, messages=messages),
                        model,
                        AnthropicFlags(),
                        stream=True,
                        history=kept,
                    ).body
                )["messages"]
                for messages in (request.messages, history)
            ]
            earlier = len(asked["messages"])
            wanted = [_plain_part(part) for part in after["messages"][earlier]["content"]]
            assert [_plain_part(part) for part in sent[1][earlier]["content"]] == wanted
            answered = [part["tool_use_id"] for part in sent[1][earlier + 1]["content"]]
            replayed: list[Json] = after["messages"][earlier + 1]["content"]
            assert answered == [part["tool_use_id"] for part in replayed]
            before, now = [_plain({"messages": messages})["messages"] for messages in sent]
            assert now[:earlier] == before
