"""From a neutral request to the JSON of Responses. Pure: the same request, the same bytes.

Nothing is stored at the vendor (A2.26), so each request carries the whole conversation. What a
gateway or a model cannot take is left out and named in a notice (A1.19).
"""

import hashlib
from typing import Any, Final

from towline_agent.providers.base import Model, Request, ToolSpec, nearest_effort
from towline_agent.providers.endpoint import Encoded
from towline_agent.providers.fragments import to_json
from towline_agent.providers.openai_responses.flags import ResponsesFlags
from towline_agent.providers.openai_responses.history import HistoryEncoder
from towline_agent.providers.room import COMPACTION, start_tokens

__all__ = ["encode_request"]

_Json = dict[str, Any]

_ENCRYPTED: Final = "reasoning.encrypted_content"
_SOURCES: Final = "web_search_call.action.sources"
_SEARCH: Final = "web_search"
_ANSWER_NAME: Final = "answer"
_LEAST_THRESHOLD: Final = 1_000
"""The API takes no smaller one."""
_KEY_MAX: Final = 64
"""Characters of a cache key that the API takes."""


def encode_request(
    request: Request,
    model: Model,
    flags: ResponsesFlags,
    *,
    stream: bool,
    history: HistoryEncoder | None = None,
    reasons: bool = False,
) -> Encoded:
    """The body of a request.

    Args:
        request: The neutral request.
        model: What is known of the model.
        flags: How the gateway speaks.
        stream: Whether the answer is to be streamed.
        history: Encodes the conversation; `None` for one that remembers nothing.
        reasons: Whether the model was seen to reason, whatever its facts and its name say.
    """
    controls = _Controls(request, model, flags, reasons)
    body = controls.encode()
    if stream:
        body["stream"] = True
    history = history or HistoryEncoder(model.name, flags)
    items = history.encode(request)
    return Encoded(
        body=b'%s,"input":[%s]}' % (to_json(body)[:-1], items),
        notices=tuple(dict.fromkeys([*controls.notices, *history.notices()])),
    )


class _Controls:
    """All of a request but its conversation."""

    def __init__(
        self, request: Request, model: Model, flags: ResponsesFlags, reasons: bool
    ) -> None:
        self.notices: list[str] = []
        self._request = request
        self._model = model
        self._flags = flags
        self._thinks = reasons or flags.thinks(model, request.model)

    def encode(self) -> _Json:
        request, flags = self._request, self._flags
        body: _Json = {"model": request.model, "store": False}
        if request.system:
            body["instructions"] = request.system
        body.update(self._tools())
        body.update(self._reasoning())
        body.update(self._sampling())
        include = self._include()
        if include:
            body["include"] = include
        if request.output is not None and self._takes("output", flags.schema_output):
            schema = {"type": "json_schema", "name": _ANSWER_NAME, "schema": request.output}
            body["text"] = {"format": schema}
        if request.cache_key and flags.cache_key:
            body["prompt_cache_key"] = _short_key(request.cache_key)
        if self._model.manages_context:
            threshold = max(_LEAST_THRESHOLD, start_tokens(self._model, self._set_aside()))
            body["context_management"] = [{"type": COMPACTION, "compact_threshold": threshold}]
        return body

    def _set_aside(self) -> int:
        """Tokens that OpenAI keeps free for the answer: all that the model could say."""
        return self._model.output_cap or 0

    def _takes(self, control: str, known: bool) -> bool:
        """Whether a control may be sent; else there is a notice (A1.19)."""
        if known and control not in self._model.refuses:
            return True
        name = control.replace("_", " ")
        self.notices.append(f"The {name} was not sent: {self._request.model!r} takes none here.")
        return False

    def _tools(self) -> _Json:
        choice, model = self._request.tool_choice, self._model
        if choice == "none" and model.none_without_tools:
            return {}
        tools = [_tool(tool) for tool in self._request.tools]
        for name in self._request.server_tools:
            if name == _SEARCH and self._flags.search is not None:
                tools.append({"type": self._flags.search})
            else:
                self.notices.append(f"The provider has no tool {name!r} of its own here.")
        if not tools:
            return {}
        if choice == "auto":  # the default of the API: what is not sent cannot be refused
            return {"tools": tools}
        if choice in ("none", "required"):
            return {"tools": tools, "tool_choice": choice}
        if not model.named_choice:
            return {"tools": tools, "tool_choice": "required"}
        return {"tools": tools, "tool_choice": {"type": "function", "name": choice}}

    def _reasoning(self) -> _Json:
        """Effort, budget and whether thinking is summed up."""
        request, flags = self._request, self._flags
        asked: _Json = {}
        if request.effort is not None:
            known = flags.known_efforts(request.model)
            if self._takes("effort", bool(known) and self._model.thinking != "none"):
                asked["effort"] = nearest_effort(request.effort, known)
        if request.thinking_budget is not None and self._takes(
            "thinking_budget", flags.thinking_budget
        ):
            asked = {"max_tokens": request.thinking_budget}  # one of both may be sent
        if self._thinks and flags.summary is not None and asked.get("effort") != "none":
            asked["summary"] = flags.summary
        return {"reasoning": asked} if asked else {}

    def _sampling(self) -> _Json:
        request, flags = self._request, self._flags
        body: _Json = {}
        if request.max_tokens is not None and self._takes("max_tokens", known=True):
            body["max_output_tokens"] = max(flags.least_tokens, request.max_tokens)
        samples = flags.thinkers_sample or not self._thinks
        for control in ("temperature", "top_p"):
            value = getattr(request, control)
            if value is not None and self._takes(control, samples):
                body[control] = value
        if request.stop and self._takes("stop", flags.stop):
            body["stop"] = list(request.stop)
        return body

    def _include(self) -> list[str]:
        wanted: list[str] = []
        if self._thinks and self._flags.encrypted:
            wanted.append(_ENCRYPTED)
        if _SEARCH in self._request.server_tools and self._flags.search_sources:
            wanted.append(_SOURCES)
        return wanted


def _tool(tool: ToolSpec) -> _Json:
    found: _Json = {"type": "function", "name": tool.name}
    if tool.description:
        found["description"] = tool.description
    # Unset, the API would make the schema strict, and refuse those that cannot be.
    return {**found, "parameters": tool.parameters, "strict": False}


def _short_key(key: str) -> str:
    return key if len(key) <= _KEY_MAX else hashlib.sha256(key.encode()).hexdigest()
