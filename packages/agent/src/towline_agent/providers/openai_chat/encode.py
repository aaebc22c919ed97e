"""From a neutral request to the JSON of Chat Completions. Pure: the same request, the same bytes.

What a gateway cannot take is left out and named in a notice (A1.19).
"""

from typing import Any, Final

from towline_agent.providers.base import Model, Request, nearest_effort
from towline_agent.providers.endpoint import Encoded
from towline_agent.providers.fragments import to_json
from towline_agent.providers.openai_chat.flags import ChatFlags
from towline_agent.providers.openai_chat.messages import MessageEncoder

__all__ = ["encode_request"]

_Json = dict[str, Any]

_ANSWER_NAME: Final = "answer"


def encode_request(
    request: Request,
    model: Model,
    flags: ChatFlags,
    *,
    stream: bool,
    official: bool,
    messages: MessageEncoder | None = None,
) -> Encoded:
    """The body of a request.

    Args:
        request: The neutral request.
        model: What is known of the model.
        flags: How the gateway speaks.
        stream: Whether the answer is to be streamed.
        official: Whether it goes to OpenAI's own host, which takes `max_completion_tokens` (A2.1).
        messages: Keeps what is encoded, for the next step.
    """
    messages = messages or MessageEncoder(model.name, flags)
    body: _Json = {"model": request.model, "messages": messages.encode(request)}
    notices, messages.notices = messages.notices, []
    body.update(_tools(request, model, messages))
    if stream:
        body["stream"] = True
        if flags.usage_option:
            body["stream_options"] = {"include_usage": True}
    if request.max_tokens is not None:
        theirs = official or flags.completion_tokens
        body["max_completion_tokens" if theirs else "max_tokens"] = request.max_tokens
    body.update(_sampling(request, model, flags, notices))
    if request.effort is not None or request.thinking_budget is not None:
        body.update(_thinking(request, model, flags, notices))
    if "tools" in body and request.model.startswith(flags.no_effort_with_tools):
        if request.effort not in (None, "none"):
            notices.append(f"{request.model!r} takes tools here only without thinking first.")
        body["reasoning_effort"] = "none"
    if request.output is not None:
        body.update(_output(request, flags, notices))
    if request.cache_key and flags.cache_key:
        body["prompt_cache_key"] = request.cache_key
    if request.server_tools:
        notices.append("The provider's own tools were not offered: this dialect has none.")
    return Encoded(body=to_json(body), notices=tuple(dict.fromkeys(notices)))


def _sampling(request: Request, model: Model, flags: ChatFlags, notices: list[str]) -> _Json:
    """What is set and not refused (A1.18, A1.19)."""
    if request.temperature is None and request.top_p is None and not request.stop:
        return {}
    asked: _Json = {
        "temperature": request.temperature,
        "top_p": request.top_p,
        "stop": list(request.stop) or None,
    }
    sent: _Json = {}
    for name, value in asked.items():
        if value is None:
            continue
        if name in model.refuses or name in flags.refuses:
            notices.append(f"The control {name!r} was not sent: {request.model!r} refuses it.")
        else:
            sent[name] = value
    return sent


def _tools(request: Request, model: Model, messages: MessageEncoder) -> _Json:
    choice = request.tool_choice
    if not request.tools or (choice == "none" and model.none_without_tools):
        return {}
    body: _Json = {"tools": messages.tools(request.tools)}
    if choice == "auto":  # the default of the API: what is not sent cannot be refused
        return body
    if choice in ("none", "required"):
        body["tool_choice"] = choice
    elif model.named_choice:
        body["tool_choice"] = {"type": "function", "function": {"name": choice}}
    else:
        body["tool_choice"] = "required"
    return body


def _thinking(request: Request, model: Model, flags: ChatFlags, notices: list[str]) -> _Json:
    """Effort and budget, where the gateway has a place for them."""
    asked: _Json = {}
    if request.effort is not None and (model.thinking == "none" or "effort" in model.refuses):
        notices.append(f"The effort was not sent: {request.model!r} does not think.")
    elif request.effort is not None:
        effort = (
            nearest_effort(request.effort, flags.efforts)
            if flags.effort and flags.efforts
            else None
        )
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


def _output(request: Request, flags: ChatFlags, notices: list[str]) -> _Json:
    if not flags.schema_output:
        notices.append("The answer's schema was not sent: this provider takes none.")
        return {}
    schema = {"name": _ANSWER_NAME, "schema": request.output}
    return {"response_format": {"type": "json_schema", "json_schema": schema}}
