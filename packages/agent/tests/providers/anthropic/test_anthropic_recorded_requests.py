"""Recorded requests, read into neutral words and encoded again, say the same (D23).

Equal are roles, order, ids, arguments as JSON values, results, proofs, vendor blocks, tool names
and schemas. Left out of account are sampling, cache marks, vendors' own keys, and whether a text
stands bare or as a part.
"""

import base64
import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from towline_agent.providers.anthropic.decode import MessagesDecoder
from towline_agent.providers.anthropic.encode import encode_request
from towline_agent.providers.anthropic.flags import AnthropicFlags
from towline_agent.providers.anthropic.history import HistoryEncoder
from towline_agent.providers.base import Model, Request, StepAnswer, ToolSpec
from towline_agent.providers.errors import Peer
from towline_protocol import (
    Block,
    CallId,
    File,
    Image,
    Message,
    Opaque,
    SseDecoder,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)

RECORDINGS = Path(__file__).parents[2] / "recordings"
LOCAL = Path(__file__).parents[5] / "packages/app/tests/local/recordings"
PEER = Peer(provider="p", model="m", url="https://example.test/v1")
_Json = dict[str, Any]

EXCEPTIONS = {"picture by address": "a picture of ours is bytes"}
"""Why some requests are not compared: the word that marks them, and the reason."""


def _cases() -> list[_Json]:
    with (RECORDINGS / "index.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["api"] == "anthropic-messages"]
    cases = [
        json.loads((RECORDINGS / row["provider"] / f"{row['id']}.json").read_text())
        | {"folder": RECORDINGS / row["provider"]}
        for row in rows
    ]
    return [case for case in cases if isinstance(case["request"].get("body"), dict)]


def _local_bodies() -> dict[str, _Json]:
    found: dict[str, _Json] = {}
    for path in sorted(LOCAL.glob("*.meta.json")):
        request = json.loads(path.read_text())["request"]
        if request["path"].split("?")[0] == "/v1/messages" and isinstance(request["body"], dict):
            found[path.name] = request["body"]
    return found


def _exception(body: _Json) -> str | None:
    text = json.dumps(body["messages"])
    return "picture by address" if '"type": "url"' in text else None


def _parts(content: Any) -> list[_Json]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _blocks(part: _Json) -> tuple[Block, ...]:
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


def _message(message: _Json) -> Message:
    blocks = tuple(block for part in _parts(message["content"]) for block in _blocks(part))
    results = any(isinstance(block, ToolResult) for block in blocks)
    return Message("tool" if results else message["role"], blocks)


def _neutral(body: _Json) -> Request:
    tools: list[_Json] = [tool for tool in body.get("tools", []) if "input_schema" in tool]
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


def _plain(body: _Json) -> _Json:
    """What must be equal."""
    tools: list[_Json] = [tool for tool in body.get("tools", []) if "input_schema" in tool]
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


def _plain_part(part: _Json) -> _Json:
    kept = {key: value for key, value in part.items() if key != "cache_control"}
    match kept["type"]:
        case "tool_result":
            content: list[_Json] = [_plain_part(inner) for inner in _parts(kept.get("content", []))]
            return {**kept, "content": content, "is_error": kept.get("is_error", False)}
        case "document":
            kept.pop("citations", None)
        case "tool_use":
            kept.pop("caller", None)
        case _:
            pass
    return kept


def _again(body: _Json) -> _Json:
    request = _neutral(body)
    model = Model(provider="p", id=request.model)
    return json.loads(encode_request(request, model, AnthropicFlags(), stream=True).body)


@pytest.mark.rules("A1.16", "A2.40", "A2.41", "A2.38", "A2.43", "D23")
def test_recorded_requests_come_out_as_they_were(show_figures: Callable[[str], None]) -> None:
    bodies = {case["id"]: case["request"]["body"] for case in _cases()} | _local_bodies()
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
    assert len(skipped) <= 0.05 * len(_cases())


def _answer(case: _Json) -> StepAnswer:
    decoder = MessagesDecoder(PEER, lambda _: None)
    response = case["response"]
    if "body_file" in response:
        for event in SseDecoder().feed((case["folder"] / response["body_file"]).read_bytes()):
            decoder.feed(event)
    else:
        decoder.read(json.dumps(response["body"]).encode())
    result = decoder.finish()
    assert isinstance(result, StepAnswer)
    return result


@pytest.mark.rules("A2.37", "A4.5", "D23")
def test_each_recorded_loop_goes_on_as_its_vendor_wants_it() -> None:
    loops: dict[str, dict[int, _Json]] = {}
    for case in _cases():
        sequence: _Json = case.get("sequence") or {}
        if sequence:
            loops.setdefault(sequence["group"], {})[sequence["step"]] = case
    assert len(loops) == 2
    for loop in loops.values():
        kept: HistoryEncoder | None = None
        for step in range(1, len(loop)):
            asked, after = loop[step]["request"]["body"], loop[step + 1]["request"]["body"]
            request = _neutral(asked)
            model = Model(provider="p", id=request.model)
            kept = kept or HistoryEncoder(model, AnthropicFlags())
            named = tuple(
                ToolCall(
                    id=CallId(f"call_{place}"),
                    name=block.name,
                    arguments=block.arguments,
                    wire_id=block.wire_id,
                )
                if isinstance(block, ToolCall)
                else block
                for place, block in enumerate(_answer(loop[step]).content)
            )
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
            replayed: list[_Json] = after["messages"][earlier + 1]["content"]
            assert answered == [part["tool_use_id"] for part in replayed]
            before, now = [_plain({"messages": messages})["messages"] for messages in sent]
            assert now[:earlier] == before
