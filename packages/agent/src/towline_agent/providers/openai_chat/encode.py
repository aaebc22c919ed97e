"""From a neutral request to the JSON of Chat Completions. Pure: the same request, the same bytes.

What a gateway cannot take is left out and named in a notice (A1.19).
"""

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final, cast

import msgspec

from towline_agent.providers.base import Model, Request, ToolSpec
from towline_agent.providers.openai_chat.decode import DETAILS, DIALECT
from towline_agent.providers.openai_chat.flags import EFFORTS, ChatFlags
from towline_agent.providers.surrogates import mend
from towline_protocol import (
    Block,
    File,
    Image,
    Message,
    Opaque,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    block_text,
)

__all__ = ["Encoded", "encode_request"]

_Json = dict[str, Any]

_BASE62: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_SHORT_ID: Final = 9
_ERROR_MARK: Final = "Error: "
_ANSWER_NAME: Final = "answer"


class Encoded(msgspec.Struct, frozen=True, kw_only=True):
    """A request as bytes."""

    body: bytes
    """The JSON body."""
    notices: tuple[str, ...] = ()
    """What was left out and why, for people."""


def encode_request(
    request: Request, model: Model, flags: ChatFlags, *, stream: bool, official: bool
) -> Encoded:
    """The body of a request.

    Args:
        request: The neutral request.
        model: What is known of the model.
        flags: How the gateway speaks.
        stream: Whether the answer is to be streamed.
        official: Whether it goes to OpenAI's own host, which takes `max_completion_tokens` (A2.1).
    """
    notices: list[str] = []
    body: _Json = {"model": request.model, "messages": _Messages(request, flags, notices).encode()}
    body.update(_tools(request, model))
    if stream:
        body["stream"] = True
        if flags.usage_option:
            body["stream_options"] = {"include_usage": True}
    if request.max_tokens is not None:
        body["max_completion_tokens" if official else "max_tokens"] = request.max_tokens
    if request.temperature is not None:
        body["temperature"] = request.temperature
    if request.top_p is not None:
        body["top_p"] = request.top_p
    if request.stop:
        body["stop"] = list(request.stop)
    body.update(_thinking(request, flags, notices))
    if "tools" in body and request.model.startswith(flags.no_effort_with_tools):
        if request.effort not in (None, "none"):
            notices.append(f"{request.model!r} takes tools here only without thinking first.")
        body["reasoning_effort"] = "none"
    body.update(_output(request, flags, notices))
    return Encoded(body=_to_bytes(body), notices=tuple(dict.fromkeys(notices)))


def _to_bytes(body: _Json) -> bytes:
    try:
        return msgspec.json.encode(body)
    except UnicodeEncodeError:  # half a character in somebody's text (A2.25)
        return mend(json.dumps(body, ensure_ascii=False)).encode()


def _tools(request: Request, model: Model) -> _Json:
    choice = request.tool_choice
    if not request.tools or (choice == "none" and model.none_without_tools):
        return {}
    body: _Json = {"tools": [_tool(tool) for tool in request.tools]}
    if choice == "auto":  # the default of the API: what is not sent cannot be refused
        return body
    if choice in ("none", "required"):
        body["tool_choice"] = choice
    elif model.named_choice:
        body["tool_choice"] = {"type": "function", "function": {"name": choice}}
    else:
        body["tool_choice"] = "required"
    return body


def _tool(tool: ToolSpec) -> _Json:
    function: _Json = {"name": tool.name}
    if tool.description:
        function["description"] = tool.description
    function["parameters"] = tool.parameters
    return {"type": "function", "function": function}


def _thinking(request: Request, flags: ChatFlags, notices: list[str]) -> _Json:
    """Effort and budget, where the gateway has a place for them."""
    asked: _Json = {}
    if request.effort is not None:
        effort = _weaker(request.effort, flags.efforts) if flags.effort else None
        if effort is None:
            notices.append(f"The effort {request.effort!r} was not sent: this provider has none.")
        elif flags.effort == "reasoning":
            asked["effort"] = effort
        else:
            return {"reasoning_effort": effort, **_budget(request, flags, asked, notices)}
    return _budget(request, flags, asked, notices)


def _budget(request: Request, flags: ChatFlags, asked: _Json, notices: list[str]) -> _Json:
    if request.thinking_budget is not None:
        if flags.effort == "reasoning":  # one of both may be sent: the number is the finer one
            asked = {"max_tokens": request.thinking_budget}
        else:
            notices.append("The thinking budget was not sent: this provider takes none.")
    return {"reasoning": asked} if asked else {}


def _weaker(effort: str, known: tuple[str, ...]) -> str | None:
    """The effort itself, else the next weaker one, else the weakest."""
    if effort in known or effort not in EFFORTS:
        return effort if known else None
    weaker = [word for word in known if EFFORTS.index(word) < EFFORTS.index(effort)]
    return (weaker or list(known[:1]) or [None])[-1]


def _output(request: Request, flags: ChatFlags, notices: list[str]) -> _Json:
    if request.output is None:
        return {}
    if not flags.schema_output:
        notices.append("The answer's schema was not sent: this provider takes none.")
        return {}
    schema = {"name": _ANSWER_NAME, "schema": request.output}
    return {"response_format": {"type": "json_schema", "json_schema": schema}}


class _Messages:
    """The messages of one request."""

    def __init__(self, request: Request, flags: ChatFlags, notices: list[str]) -> None:
        self._request = request
        self._flags = flags
        self._notices = notices
        self._ids = _wire_ids(request.messages, short=flags.short_call_ids)
        self._names: dict[str, str] = {}
        self._out: list[_Json] = []
        self._pictures: list[_Json] = []

    def encode(self) -> list[_Json]:
        if self._request.system:
            self._out.append({"role": "system", "content": self._request.system})
        for message in self._request.messages:
            results = [block for block in message.content if isinstance(block, ToolResult)]
            for result in results:
                self._add_result(result)
            rest = [block for block in message.content if not isinstance(block, ToolResult)]
            if not results or rest:
                self._show_pictures()
            if message.role == "assistant":
                self._add_assistant(rest)
            elif rest:
                self._add_parts("system" if message.role == "system" else "user", rest)
        self._show_pictures()
        return self._out

    def _add_assistant(self, blocks: Sequence[Block]) -> None:
        text = block_text(tuple(blocks))
        calls = [self._call(block) for block in blocks if isinstance(block, ToolCall)]
        if not text and not calls:
            return  # nothing that this dialect can say (R37)
        message: _Json = {"role": "assistant", "content": text or None}
        message.update(self._replayed(blocks))
        if calls:
            message["tool_calls"] = calls
        self._out.append(message)

    def _replayed(self, blocks: Sequence[Block]) -> _Json:
        """The thinking that the gateway wants back; by default none."""
        field = self._flags.replay
        if field is None:
            return {}
        if field == DETAILS:
            ours = (b.raw for b in blocks if isinstance(b, Opaque) and b.dialect == DIALECT)
            kept: Any = next(ours, None)
            return cast("_Json", kept) if isinstance(kept, dict) else {}
        thought = "".join(block.text for block in blocks if isinstance(block, Thinking))
        return {field: thought} if thought else {}

    def _call(self, call: ToolCall) -> _Json:
        self._names[call.id] = call.name
        encoded: _Json = {
            "id": self._ids[call.id],
            "type": "function",
            "function": {"name": call.name, "arguments": _arguments(call.arguments)},
        }
        if call.signature and self._flags.call_signatures:
            encoded["extra_content"] = {"google": {"thought_signature": call.signature}}
        return encoded

    def _add_result(self, result: ToolResult) -> None:
        texts = [block.text for block in result.content if isinstance(block, Text) and block.text]
        others = [block for block in result.content if isinstance(block, Image | File)]
        text = "\n".join(texts)
        if others:
            name = self._names.get(result.call, "the tool")
            text = text or "[what it returned is shown below]"
            self._pictures.append(_text(f"Returned by {name}:"))
            self._pictures.extend(self._part(block) for block in others)
        if result.is_error and not text.startswith(_ERROR_MARK):
            text = _ERROR_MARK + text
        if self._flags.wrap_results:
            text = json.dumps({"result": text}, ensure_ascii=False)
        id_ = self._ids.get(result.call, result.call)
        self._out.append({"role": "tool", "tool_call_id": id_, "content": text})

    def _show_pictures(self) -> None:
        """In one message after the run of tool messages, which hold text alone (A2.5)."""
        if self._pictures:
            self._out.append({"role": "user", "content": self._pictures})
            self._pictures = []

    def _add_parts(self, role: str, blocks: Sequence[Block]) -> None:
        parts = [
            self._part(block)
            for block in blocks
            if isinstance(block, Image | File) or (isinstance(block, Text) and block.text)
        ]
        if len(parts) == 1 and "text" in parts[0]:
            self._out.append({"role": role, "content": parts[0]["text"]})
        elif parts:
            self._out.append({"role": role, "content": parts})

    def _part(self, block: Text | Image | File) -> _Json:
        if isinstance(block, Text):
            return _text(block.text)
        if block.data is None:
            self._notices.append(f"A {block.media_type} block without its bytes was left out.")
            return _text(f"[a {block.media_type} block that is no longer there]")
        url = f"data:{block.media_type};base64,{block.data}"
        if isinstance(block, Image):
            return {"type": "image_url", "image_url": {"url": url}}
        return {"type": "file", "file": {"filename": block.name, "file_data": url}}


def _text(text: str) -> _Json:
    return {"type": "text", "text": text}


def _arguments(text: str) -> str:
    """Arguments that a server can parse: some refuse a whole history for one broken call."""
    if not text:
        return "{}"
    try:
        value: Any = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    return text if isinstance(value, dict) else json.dumps({"broken_arguments": text})


def _wire_ids(messages: tuple[Message, ...], *, short: bool) -> dict[str, str]:
    """Our call ids to those on the wire: the provider's own where it names one call alone."""
    calls = [block for message in messages for block in message.content]
    found = [block for block in calls if isinstance(block, ToolCall)]
    seen = Counter(call.wire_id for call in found)
    ids = {
        call.id: call.wire_id if call.wire_id and seen[call.wire_id] == 1 else call.id
        for call in found
    }
    return {id_: _shorten(wire) if short else wire for id_, wire in ids.items()}


def _shorten(id_: str) -> str:
    """An id of nine letters and digits: itself if it is one, else made from its hash."""
    if len(id_) == _SHORT_ID and id_.isascii() and id_.isalnum():
        return id_
    number = int.from_bytes(hashlib.sha256(id_.encode()).digest())
    return "".join(_BASE62[number // 62**place % 62] for place in range(_SHORT_ID))
