"""Recorded requests, read into neutral words and encoded again, say the same (D23).

Equal are roles, order of parts, ids, arguments as JSON values, tool names and schemas, and the
proofs with the part that they came with. Left out of account are sampling, vendors' own tools,
null and false fields, the field in which a result's words stand, how a proof writes its base 64,
and whether a picture that a tool returned stands inside its result or behind the results (A2.47).
"""

import json
from collections.abc import Callable
from typing import Any, cast

import pytest
from recorded import PEER, Json, Recordings, load_loops, load_requests, name_calls

from towline_agent.providers.base import Model, Request, StepAnswer, ToolSpec
from towline_agent.providers.gemini.decode import GeminiDecoder
from towline_agent.providers.gemini.encode import encode_request
from towline_agent.providers.gemini.flags import GeminiFlags
from towline_protocol import (
    Block,
    CallId,
    Image,
    Message,
    Opaque,
    ResultBlock,
    Text,
    ToolCall,
    ToolResult,
)

RECORDED = Recordings("gemini", lambda _, told: GeminiDecoder(PEER, GeminiFlags(), told))
SIGNATURE = "thoughtSignature"
TYPES = ("", "string", "number", "integer", "boolean", "array", "object")
"""Types of a schema by the numbers that some clients send."""


def _cases() -> dict[str, Json]:
    return {case["id"]: case for case in load_requests("gemini")}


def _model(case: Json) -> str:
    return case["request"]["path"].rsplit("/", 1)[-1].partition(":")[0]


class _Reader:
    """Reads a recorded request into neutral words."""

    def __init__(self) -> None:
        self._calls: list[ToolCall] = []
        self._answered = 0

    def message(self, content: Json) -> Message:
        parts: list[Json] = content["parts"]
        if content.get("role") == "model":
            return Message("assistant", tuple(b for part in parts for b in self._said(part)))
        blocks = tuple(self._block(part) for part in parts)
        role = "tool" if any(isinstance(block, ToolResult) for block in blocks) else "user"
        return Message(role, blocks)

    def _said(self, part: Json) -> list[Block]:
        proof: str | None = part.get(SIGNATURE)
        if "functionCall" in part:
            call = part["functionCall"]
            made = ToolCall(
                id=CallId(f"c{len(self._calls)}"),
                name=call["name"],
                arguments=json.dumps(call["args"]),
                wire_id=call.get("id"),
                signature=proof,
            )
            self._calls.append(made)
            return [made]
        if "text" not in part:
            return [Opaque(dialect="gemini", raw=part)]
        signed = [Opaque(dialect="gemini", raw={SIGNATURE: proof})] if proof else []
        return [Text(text=part["text"]), *signed]

    def _block(self, part: Json) -> Block:
        if "text" in part:
            return Text(text=part["text"])
        answer = part["functionResponse"]
        call = self._calls[self._answered]
        self._answered += 1
        assert (call.name, call.wire_id) == (answer["name"], answer.get("id"))
        shown: list[ResultBlock] = [Text(text=_words(answer["response"]))]
        for inner in answer.get("parts", []):
            data = inner["inlineData"]
            shown.append(Image(media_type=data["mimeType"], data=data["data"]))
        return ToolResult(call=call.id, content=tuple(shown))


def _words(response: Json) -> str:
    """The words of a result, whatever the field that a client puts them into."""
    value: Any = response.get("output", response.get("result", response))
    return value if isinstance(value, str) else json.dumps(value)


def _schema(schema: Any) -> Any:
    """A schema with its types as JSON Schema writes them."""
    if isinstance(schema, list):
        return [_schema(item) for item in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    found = {key: _schema(value) for key, value in cast("Json", schema).items()}
    kind = found.get("type")
    if isinstance(kind, int):
        found["type"] = TYPES[kind]
    elif isinstance(kind, str):
        found["type"] = kind.lower()
    return found


def _declared(body: Json) -> list[Json]:
    found: list[Json] = []
    for tool in _items(body, "tools"):
        found.extend(_items(tool, "functionDeclarations"))
    return found


def _items(found: Json, key: str) -> list[Json]:
    return found.get(key) or []


def _system(body: Json) -> str:
    system: Json = body.get("systemInstruction") or {}
    return "".join(part["text"] for part in _items(system, "parts"))


def _neutral(case: Json) -> Request:
    body = case["request"]["body"]
    reader = _Reader()
    return Request(
        model=_model(case),
        system=_system(body),
        messages=tuple(map(reader.message, body["contents"])),
        tools=tuple(
            ToolSpec(
                name=tool["name"],
                description=tool["description"],
                parameters=_schema(tool["parameters"]),
            )
            for tool in _declared(body)
        ),
    )


def _plain(body: Json) -> Json:
    """What must be equal."""
    tools: list[Any] = []
    for tool in _declared(body):
        schema = _schema(tool.get("parameters") or {"properties": {}})
        named = {key: value for key, value in schema.items() if value}
        tools.append([tool["name"], tool["description"], named if "properties" in named else {}])
    return {
        "system": _system(body),
        "contents": [
            [content.get("role", "user"), _plain_parts(content["parts"])]
            for content in body["contents"]
        ],
        "tools": tools,
    }


def _plain_parts(parts: list[Json]) -> list[Any]:
    plain: list[Any] = []
    shown: list[Any] = []
    for part in parts:
        proof = part.get(SIGNATURE)
        signed = [] if proof is None else [proof.replace("-", "+").replace("_", "/")]
        if "text" in part:
            plain.append(["text", part["text"], *signed])
        elif "functionCall" in part:
            call = part["functionCall"]
            plain.append(["call", call["name"], call["args"], call.get("id"), *signed])
        elif "functionResponse" in part:
            answer = part["functionResponse"]
            plain.append(["result", answer["name"], answer.get("id"), _words(answer["response"])])
            shown.extend(_media(inner) for inner in answer.get("parts", []))
        elif "inlineData" in part:
            plain.append(_media(part))
        else:
            (kind,) = part.keys() - {SIGNATURE, "thought"}
            plain.append([kind, part[kind].get("id"), *signed])
    return [*plain, *shown]


def _media(part: Json) -> list[str]:
    return ["media", part["inlineData"]["mimeType"], part["inlineData"]["data"]]


def _encoded(request: Request, case: Json) -> Json:
    facts = Model(provider=case["provider"], id=request.model)
    flags = GeminiFlags(vertex=case["provider"] == "vertex")
    return json.loads(encode_request(request, facts, flags).body())


@pytest.mark.rules("A1.16", "A2.45", "A2.46", "A2.47", "A2.48", "R35", "D23")
def test_recorded_requests_come_out_as_they_were(show_figures: Callable[[str], None]) -> None:
    cases = _cases()
    wrong = [
        key
        for key, case in cases.items()
        if _plain(_encoded(_neutral(case), case)) != _plain(case["request"]["body"])
    ]
    right = len(cases) - len(wrong)
    show_figures(f"recorded Gemini requests: {right} of {len(cases)} equal, 0 not compared")
    assert wrong == []
    assert len(cases) >= 21


def _answer(case: Json) -> StepAnswer:
    result, _ = RECORDED.result(case)
    assert isinstance(result, StepAnswer)
    return result


def _follow(first: Json, second: Json) -> None:
    """What was decoded goes back as the next recorded request has it."""
    blocks = name_calls(_answer(first).content)
    earlier = _neutral(first)
    answers = tuple(
        ToolResult(call=block.id, content=()) for block in blocks if isinstance(block, ToolCall)
    )
    model = f"{second['provider']}/{_model(second)}"
    history = (*earlier.messages, Message("assistant", blocks, model))
    if answers:
        history = (*history, Message("tool", answers[::-1]))
    request = Request(model=_model(second), messages=history)
    sent: list[Json] = _encoded(request, second)["contents"]
    recorded: list[Json] = second["request"]["body"]["contents"]
    at = len(earlier.messages)
    assert sent[at]["role"] == recorded[at]["role"] == "model"
    assert _plain_parts(sent[at]["parts"]) == _plain_parts(recorded[at]["parts"]), second["id"]
    if answers:
        assert [part[:3] for part in _plain_parts(sent[at + 1]["parts"])] == [
            part[:3] for part in _plain_parts(recorded[at + 1]["parts"]) if part[0] == "result"
        ]


@pytest.mark.rules("A1.8", "A2.32", "A2.46", "A2.48", "R35", "D23")
def test_what_a_model_said_goes_back_as_its_vendor_wants_it() -> None:
    pairs = [
        (loop[step], loop[step + 1])
        for loop in load_loops(RECORDED.cases)
        for step in loop
        if step + 1 in loop
    ]
    assert len(pairs) >= 2
    for first, second in pairs:
        _follow(first, second)


@pytest.mark.rules("A1.8", "A2.46", "D23")
def test_what_the_providers_own_tools_did_goes_back_unchanged() -> None:
    """Two recordings of one conversation that the index does not name as a loop."""
    grounded = [
        case
        for case in _cases().values()
        if any("fileSearch" in tool for tool in _items(case["request"]["body"], "tools"))
    ]
    assert len(grounded) == 2
    first, second = sorted(grounded, key=lambda case: len(case["request"]["body"]["contents"]))
    _follow(first, second)
