"""What tests of all dialects share: the recorded streams, and the rules of the APIs.

The rules say what each API asks of the conversation in a request, as its vendor documents it, or
says it when it refuses one. They share nothing with the code that they judge. They assert.
"""

import asyncio
import csv
import json
import re
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from towline_agent.providers.anthropic.encode import encode_request as encode_anthropic
from towline_agent.providers.anthropic.flags import AnthropicFlags
from towline_agent.providers.anthropic.history import HistoryEncoder as AnthropicHistory
from towline_agent.providers.base import Model, Request
from towline_agent.providers.gemini.contents import HistoryEncoder as GeminiHistory
from towline_agent.providers.gemini.encode import encode_request as encode_gemini
from towline_agent.providers.gemini.flags import GeminiFlags
from towline_agent.providers.openai_chat.encode import encode_request as encode_chat
from towline_agent.providers.openai_chat.flags import ChatFlags
from towline_agent.providers.openai_chat.messages import MessageEncoder
from towline_agent.providers.openai_responses.encode import encode_request as encode_responses
from towline_agent.providers.openai_responses.flags import GATEWAY_FLAGS, ResponsesFlags
from towline_agent.providers.openai_responses.history import HistoryEncoder as ResponsesHistory
from towline_protocol import Message, Opaque, Thinking, ToolCall

_Json = dict[str, Any]
_Own = frozenset[str]

_Stream = tuple[str, str, bytes]

_RECORDINGS: Final = Path(__file__).with_name("recordings")
_LOCAL: Final = Path(__file__).parents[3] / "packages/app/tests/local/recordings"
_APIS: Final = {
    "openai-chat": "openai_chat",
    "openai-responses": "openai_responses",
    "anthropic-messages": "anthropic",
    "gemini": "gemini",
    "/v1/chat/completions": "openai_chat",
    "/v1/responses": "openai_responses",
    "/v1/messages": "anthropic",
}
"""The dialects by their names in the index of recordings, and by the embedded server's paths."""
_ADDRESSES: Final = {"vertex": "https://aiplatform.googleapis.com/v1"}
"""Where a provider speaks otherwise than the rest of its dialect."""
_ADDRESS: Final = "https://example.test/v1"

_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_CHAT_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,40}")
_RESPONSES_ID: Final = re.compile(r"[!-~]{1,64}")
_ANTHROPIC_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_GEMINI_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]{0,63}")
_GEMINI_DATA: Final = {
    "text", "functionCall", "functionResponse", "inlineData", "fileData", "executableCode",
    "codeExecutionResult", "toolCall", "toolResponse",
}  # fmt: skip
_GEMINI_MARKS: Final = {"thought", "thoughtSignature", "videoMetadata", "partMetadata"}
_SECRET: Final = re.compile(r"(?<![\w/+-])(?=[\w/+-]*[0-9])[\w/+-]{20,}")
"""What looks like a proof or an id of a vendor's."""
_THOUGHTS: Final = ("thinking", "redacted_thinking")


def _refuse(word: str) -> Any:
    raise AssertionError(f"{word} is no JSON")


def _parse(text: str) -> Any:
    """JSON as a strict server reads it: no NaN, and no half of a character."""
    value: Any = json.loads(text, parse_constant=_refuse)
    json.dumps(value, ensure_ascii=False).encode()
    return value


def _check_texts(content: Any) -> None:
    """A text, or parts; neither they nor their texts are empty."""
    assert content
    parts: list[_Json] = [] if isinstance(content, str) else content
    assert all(part.get("text", "no text") for part in parts), parts


def _check_chat(body: _Json, own: _Own) -> None:
    """Chat Completions: tool messages right behind their calls, one for each."""
    messages: list[_Json] = body["messages"]
    waiting: list[str] = []
    used: set[str] = set()
    for message in messages:
        if message["role"] == "tool":
            waiting.remove(message["tool_call_id"])
            assert isinstance(message["content"], str)
            continue
        assert not waiting
        if message["role"] != "assistant":
            assert message["role"] in ("system", "user")
            _check_texts(message["content"])
            continue
        assert (message["content"] or "").strip() or message.get("tool_calls")
        assert message["content"] != ""
        for call in message.get("tool_calls", ()):
            function: dict[str, str] = call["function"]
            assert call["type"] == "function"
            assert call["id"] in own or _CHAT_ID.fullmatch(call["id"]), call
            assert call["id"] not in used, call
            used.add(call["id"])
            waiting.append(call["id"])
            assert _NAME.fullmatch(function["name"]), call
            assert isinstance(_parse(function["arguments"]), dict)
    assert not waiting
    assert messages[-1]["role"] in ("user", "tool")


def _check_responses(body: _Json, own: _Own) -> None:
    """Responses: no call without its output, no reasoning without what it led to, no id twice."""
    items: list[_Json] = body["input"]
    waiting: list[str] = []
    used: set[str] = set()
    ids = [item["id"] for item in items if "id" in item]
    assert len(ids) == len(set(ids))
    assert all(0 < len(id_) <= 64 for id_ in ids)
    for item, after in zip(items, [*items[1:], {"type": "end"}], strict=True):
        match item["type"]:
            case "function_call_output":
                waiting.remove(item["call_id"])
                assert isinstance(item["output"], str) or item["output"]
            case "function_call":
                assert _RESPONSES_ID.fullmatch(item["call_id"]), item
                assert item["call_id"] not in used, item
                used.add(item["call_id"])
                waiting.append(item["call_id"])
                assert _NAME.fullmatch(item["name"]), item
                assert isinstance(_parse(item["arguments"]), dict)
            case "reasoning":
                assert item.get("encrypted_content") or item.get("content")
                assert after["type"] not in ("function_call_output", "end")
                assert after.get("role", "assistant") == "assistant"
            case "message":
                _check_texts(item["content"])
                assert item["role"] == "assistant" or not waiting
            case kind:
                assert kind != "item_reference"  # nothing is stored there
    assert not waiting
    assert items[-1].get("role") == "user" or items[-1]["type"] == "function_call_output"


def _check_anthropic(body: _Json, own: _Own) -> None:
    """Messages: roles alternate, results come first and answer the calls right before them."""
    messages: list[_Json] = body["messages"]
    assert [message["role"] for message in messages] == [
        ("user", "assistant")[place % 2] for place in range(len(messages))
    ]
    # the model's own words last would be words to go on with, which new models refuse
    assert messages[-1]["content"][-1]["type"] != "text" or messages[-1]["role"] == "user"
    waiting: list[str] = []
    used: set[str] = set()
    for message in messages:
        parts: list[_Json] = message["content"]
        kinds = [part["type"] for part in parts]
        assert parts
        if message["role"] == "user":
            count = kinds.count("tool_result")
            assert kinds[:count] == ["tool_result"] * count
            assert sorted(part["tool_use_id"] for part in parts[:count]) == sorted(waiting)
        else:
            assert kinds[-1] not in _THOUGHTS
            _check_server_tools(parts)
        waiting = [part["id"] for part in parts if part["type"] == "tool_use"]
        assert len({*waiting} | used) == len(waiting) + len(used)
        used.update(waiting)
        for part in parts:
            _check_anthropic_part(part)
    assert not waiting
    if body.get("thinking", {}).get("type") == "enabled":
        _check_begun_thinking(messages)


def _check_anthropic_part(part: _Json) -> None:
    match part["type"]:
        case "text":
            assert part["text"].strip()
        case "thinking":
            assert part["signature"]
        case "redacted_thinking":
            assert part["data"]
        case "tool_use":
            assert _ANTHROPIC_ID.fullmatch(part["id"]), part
            assert _NAME.fullmatch(part["name"]), part
            assert isinstance(part["input"], dict)
        case "tool_result":
            content: str | list[_Json] = part.get("content", [])
            assert content or not part.get("is_error")
            for inner in [] if isinstance(content, str) else content:
                _check_anthropic_part(inner)
        case "image" | "document":
            assert part["source"]["data"]
        case _:
            pass  # the vendor's own


def _check_server_tools(parts: list[_Json]) -> None:
    """What the vendor ran itself stands in the same message as what came of it."""
    asked = [part["id"] for part in parts if part["type"] in ("server_tool_use", "mcp_tool_use")]
    answered = [
        part["tool_use_id"]
        for part in parts
        if part["type"].endswith("_tool_result") and part["type"] != "tool_result"
    ]
    assert sorted(asked) == sorted(answered)


def _check_begun_thinking(messages: list[_Json]) -> None:
    """Thinking is on only where the tool loop that goes on began with it."""
    place = len(messages) - 1
    while place > 0 and messages[place]["content"][0]["type"] == "tool_result":
        place -= 2
    began = messages[place + 1 : place + 2]
    assert not began or began[0]["content"][0]["type"] in _THOUGHTS


def _check_gemini(body: _Json, own: _Own) -> None:
    """`generateContent`: the functions of a turn are answered in the next, in the same order."""
    contents: list[_Json] = body["contents"]
    assert contents[0]["role"] == contents[-1]["role"] == "user"
    waiting: list[tuple[str, str | None]] = []
    before = "model"
    ids: list[str] = []
    for content in contents:
        parts: list[_Json] = content["parts"]
        assert parts
        for part in parts:
            _check_gemini_part(part)
        calls: list[_Json] = [part["functionCall"] for part in parts if "functionCall" in part]
        results = [part["functionResponse"] for part in parts if "functionResponse" in part]
        assert [(result["name"], result.get("id")) for result in results] == waiting
        assert all("functionResponse" in part for part in parts[: len(results)])
        if content["role"] == "model":
            assert before == "user"
            assert not results
        else:
            assert content["role"] == "user"
            assert not calls
        waiting = [(call["name"], call.get("id")) for call in calls]
        ids.extend(id_ for _, id_ in waiting if id_ is not None)
        before = content["role"]
    assert len(ids) == len(set(ids))


def _check_gemini_part(part: _Json) -> None:
    assert len(part.keys() & _GEMINI_DATA) == 1, part
    assert part.keys() <= _GEMINI_DATA | _GEMINI_MARKS, part
    assert part.get("text", "no text") or part.get("thoughtSignature"), part
    call: _Json = part.get("functionCall", {"name": "none", "args": {}})
    assert _GEMINI_NAME.fullmatch(call["name"]), part
    assert isinstance(call["args"], dict)
    assert isinstance(part.get("functionResponse", {"response": {}})["response"], dict)
    assert part.get("inlineData", {"data": "some"})["data"], part


def _check_gemini_3(body: _Json, own: _Own) -> None:
    """From generation 3 on, each step since a person spoke last proves its first call besides."""
    _check_gemini(body, own)
    for content in reversed(body["contents"]):
        parts: list[_Json] = content["parts"]
        if content["role"] == "user" and not any("functionResponse" in part for part in parts):
            break
        calls = [part for part in parts if "functionCall" in part]
        assert not calls or calls[0].get("thoughtSignature"), calls


_RULES: Final[dict[str, Callable[[_Json, _Own], None]]] = {
    "openai_chat": _check_chat,
    "openai_responses": _check_responses,
    "anthropic": _check_anthropic,
    "gemini": _check_gemini,
    "gemini 3": _check_gemini_3,
}


class _Judge:
    """Sends a conversation in one way in which a dialect can be spoken, and judges the body."""

    def __init__(self, rules: str, model: Model, encode: Callable[[Request, bool], bytes]) -> None:
        self._rules = _RULES[rules]
        self._name = model.name
        self._encode = encode

    def judge(self, request: Request) -> str:
        body = self._encode(request, True)
        assert body == self._encode(request, False)  # what was kept changes nothing
        text = body.decode()
        own = [message for message in request.messages if message.model in (None, self._name)]
        ids = {b.wire_id for m in own for b in m.content if isinstance(b, ToolCall) and b.wire_id}
        self._rules(_parse(text), frozenset(ids))
        assert json.dumps(request.trailing, ensure_ascii=False)[1:-1] in text
        for message in request.messages:
            if message not in own:
                named = {block.wire_id for block in message.content if isinstance(block, ToolCall)}
                kept = set(_secrets(message)) - named  # ids of calls are nobody's secret
                assert not [secret for secret in kept if secret in text]
        return text


def _secrets(message: Message) -> Iterator[str]:
    """What only the one who wrote a message understands."""
    for block in message.content:
        match block:
            case Thinking(signature=str(proof)) | ToolCall(signature=str(proof)):
                yield from _SECRET.findall(proof)
            case Opaque(raw=dict()):
                yield from _SECRET.findall(json.dumps(block.raw))
            case _:
                pass


def _chat(model: Model, flags: ChatFlags) -> _Judge:
    kept = MessageEncoder(model.name, flags)

    def encode(request: Request, keep: bool) -> bytes:
        messages = kept if keep else None
        sent = encode_chat(request, model, flags, stream=True, official=False, messages=messages)
        return sent.body

    return _Judge("openai_chat", model, encode)


def _responses(model: Model, flags: ResponsesFlags) -> _Judge:
    kept = ResponsesHistory(model.name, flags)

    def encode(request: Request, keep: bool) -> bytes:
        history = kept if keep else None
        return encode_responses(request, model, flags, stream=True, history=history).body

    return _Judge("openai_responses", model, encode)


def _anthropic(model: Model, flags: AnthropicFlags) -> _Judge:
    kept = AnthropicHistory(model, flags)

    def encode(request: Request, keep: bool) -> bytes:
        history = kept if keep else None
        return encode_anthropic(request, model, flags, stream=True, history=history).body

    return _Judge("anthropic", model, encode)


def _gemini(model: Model, flags: GeminiFlags) -> _Judge:
    kept = GeminiHistory(model)

    def encode(request: Request, keep: bool) -> bytes:
        return encode_gemini(request, model, flags, kept if keep else None).body()

    return _Judge("gemini 3" if model.id.startswith("gemini-3") else "gemini", model, encode)


_WAYS: Final[dict[str, list[Callable[[Model], _Judge]]]] = {
    "openai_chat": [
        lambda model: _chat(model, ChatFlags()),
        lambda model: _chat(model, ChatFlags(replay="reasoning_details", short_call_ids=True)),
        lambda model: _chat(
            model, ChatFlags(replay="reasoning_content", call_signatures=True, wrap_results=True)
        ),
    ],
    "openai_responses": [
        lambda model: _responses(model, ResponsesFlags()),
        lambda model: _responses(model, GATEWAY_FLAGS["llamacpp"]),
    ],
    "anthropic": [
        lambda model: _anthropic(model, AnthropicFlags()),
        lambda model: _anthropic(model, AnthropicFlags(cache_marks=False, documents=False)),
    ],
    "gemini": [lambda model: _gemini(model, GeminiFlags())],
}


@pytest.fixture(scope="session")
def judge() -> Callable[[str, Model, Sequence[Request]], list[str]]:
    """Sends the requests of a session to a model, in all ways in which its dialect can be spoken.

    It holds each body against the rules of the API. What another model wrote must not come with
    its proofs. Returns the bodies.
    """

    def send(dialect: str, model: Model, requests: Sequence[Request]) -> list[str]:
        judges = [make(model) for make in _WAYS[dialect]]
        return [made.judge(request) for made in judges for request in requests]

    return send


@pytest.fixture
def pass_hour(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Has an hour go by at once for all that waits in the running loop, on its own thread."""

    def pass_hour() -> None:
        loop = asyncio.get_running_loop()
        later_s = loop.time() - time.monotonic() + 3600
        monkeypatch.setattr(loop, "time", lambda: time.monotonic() + later_s)

    return pass_hour


@pytest.fixture(scope="session")
def check_rules() -> Callable[[str, _Json], None]:
    """Holds a body against the rules of an API."""
    return lambda api, body: _RULES[api](body, frozenset())


@pytest.fixture(scope="session")
def recorded_streams() -> Callable[[str], list[_Stream]]:
    """The recorded answers of a dialect that were streamed: names, addresses and bytes."""
    found: dict[str, list[_Stream]] = {dialect: [] for dialect in _APIS.values()}
    with (_RECORDINGS / "index.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["api"] in _APIS]
    for row in rows:
        folder = _RECORDINGS / row["provider"]
        response = json.loads((folder / f"{row['id']}.json").read_text())["response"]
        if "body_file" in response:
            address = _ADDRESSES.get(row["provider"], _ADDRESS)
            body = (folder / response["body_file"]).read_bytes()
            found[_APIS[row["api"]]].append((row["id"], address, body))
    for path in sorted(_LOCAL.glob("*.sse")):
        request: _Json = json.loads(path.with_suffix(".meta.json").read_text())["request"]
        dialect = _APIS.get(request["path"].partition("?")[0])
        if dialect is not None:
            found[dialect].append((path.stem, _ADDRESS, path.read_bytes()))
    return lambda dialect: found[dialect]
