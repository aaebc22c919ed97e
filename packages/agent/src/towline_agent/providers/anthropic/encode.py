"""From a neutral request to the JSON of the Messages API. Pure: the same request, the same bytes.

What the model or the gateway cannot take is left out and named in a notice (A1.19).
"""

from typing import Any, Final

from towline_agent.providers.anthropic.flags import AnthropicFlags, claude_quirks
from towline_agent.providers.anthropic.history import HistoryEncoder
from towline_agent.providers.anthropic.schema import fit_schema
from towline_agent.providers.anthropic.thinking import ThinkingPlan, plan_thinking
from towline_agent.providers.base import Model, Request, ToolSpec
from towline_agent.providers.endpoint import Encoded
from towline_agent.providers.fragments import to_json
from towline_agent.providers.room import start_tokens
from towline_protocol import Message, block_text

__all__ = ["encode_request"]

_Json = dict[str, Any]

_LONG: Final = {"type": "ephemeral", "ttl": "1h"}
_LEAST_TOP_P: Final = 0.95
"""With thinking the API refuses less."""
_WEB_SEARCH: Final = "web_search"
_NEWEST: Final = 16
"""Results that are always shown: so many calls run together (A4.14), and a model that was not shown
what it has just asked for would ask again."""
_WORTH: Final = 0.1
"""Of the window that must be won: what was cached behind a result that goes is paid for again."""


def encode_request(
    request: Request,
    model: Model,
    flags: AnthropicFlags,
    *,
    stream: bool,
    history: HistoryEncoder | None = None,
    paused: bool = False,
) -> Encoded:
    """The body of a request.

    Args:
        request: The neutral request.
        model: What is known of the model.
        flags: How the gateway speaks.
        stream: Whether the answer is to be streamed.
        history: Keeps the JSON of what was sent before; `None` for nothing.
        paused: The last message is an answer that paused, to be gone on with (A2.39).
    """
    notices: dict[str, None] = {}
    plan = plan_thinking(request, model, flags)
    notices.update(dict.fromkeys(plan.notices))
    leading, messages = _split_system(request.messages)
    body: _Json = {"model": request.model, "max_tokens": plan.max_tokens}
    body.update(_system([request.system, *leading], flags))
    body.update(_tools(request, model, flags, notices))
    if stream:
        body["stream"] = True
    body.update(_sampling(request, model, plan, notices))
    if plan.thinking is not None:
        body["thinking"] = plan.thinking
    body.update(_output(request, flags, plan, notices))
    body.update(_room(model))
    history = history or HistoryEncoder(model, flags)
    written, left_out = history.encode(messages, request.trailing, paused=paused)
    notices.update(left_out)
    return Encoded(
        body=b"".join((to_json(body)[:-1], b',"messages":[', written, b"]}")),
        notices=tuple(notices),
    )


def _room(model: Model) -> _Json:
    """What is to be left out of a long conversation: the same in every request (A4.5, A4.40)."""
    if not model.manages_context or model.window is None:
        return {}
    edit = {
        "type": "clear_tool_uses_20250919",
        "trigger": {"type": "input_tokens", "value": start_tokens(model)},
        "keep": {"type": "tool_uses", "value": _NEWEST},
        "clear_at_least": {"type": "input_tokens", "value": int(_WORTH * model.window)},
    }
    return {"context_management": {"edits": [edit]}}


def _split_system(messages: tuple[Message, ...]) -> tuple[list[str], tuple[Message, ...]]:
    """System messages at the very start belong to the system prompt; the API has no such role."""
    count = 0
    while count < len(messages) and messages[count].role == "system":
        count += 1
    return [block_text(message.content) for message in messages[:count]], messages[count:]


def _system(parts: list[str], flags: AnthropicFlags) -> _Json:
    text = "\n\n".join(part for part in parts if part.strip())
    if not text:
        return {}
    if not flags.cache_marks:
        return {"system": text}
    return {"system": [{"type": "text", "text": text, "cache_control": _LONG}]}


def _tools(
    request: Request, model: Model, flags: AnthropicFlags, notices: dict[str, None]
) -> _Json:
    choice = request.tool_choice
    own: _Json = {}
    for name in request.server_tools:
        if name == _WEB_SEARCH and flags.web_search is not None:
            own[name] = {"type": flags.web_search, "name": name}
        else:
            notices[f"The tool {name!r} was left out: this provider has none of its own."] = None
    tools = [_tool(tool) for tool in request.tools if tool.name not in own]  # names are unique
    tools.extend(own.values())
    if not tools or (choice == "none" and model.none_without_tools):
        return {}
    if flags.cache_marks:
        tools[-1] = {**tools[-1], "cache_control": _LONG}
    chosen = _choice(choice, request, model, notices)
    return {"tools": tools, "tool_choice": chosen} if chosen else {"tools": tools}


def _tool(tool: ToolSpec) -> _Json:
    out: _Json = {"name": tool.name}
    if tool.description:
        out["description"] = tool.description
    out["input_schema"] = {"type": "object", **tool.parameters}
    return out


def _choice(choice: str, request: Request, model: Model, notices: dict[str, None]) -> _Json:
    """The choice of a tool; empty for the API's default, since what is not sent is not refused."""
    if choice == "none":
        return {"type": "none"}
    one_call: _Json = {"disable_parallel_tool_use": True} if model.one_call_per_step else {}
    if choice != "auto" and not claude_quirks(request.model).forced_choice:
        notices["The tool choice was left out: this model cannot be made to call a tool."] = None
        choice = "auto"
    if choice == "auto":
        return {"type": "auto", **one_call} if one_call else {}
    if choice == "required" or not model.named_choice:
        return {"type": "any", **one_call}
    return {"type": "tool", "name": choice, **one_call}


def _sampling(
    request: Request, model: Model, plan: ThinkingPlan, notices: dict[str, None]
) -> _Json:
    stop = [text for text in request.stop if text.strip()]  # white space is refused
    found: _Json = {
        "temperature": request.temperature,
        "top_p": request.top_p,
        "stop": stop or None,
    }
    sent: _Json = {}
    for control, value in found.items():
        if value is None:
            continue
        if control in model.refuses:
            notices[f"{control!r} was left out: this model refuses it."] = None
        elif plan.on and _spoils_thinking(control, value):
            notices[f"{control!r} was left out: a model that thinks refuses it."] = None
        else:
            sent["stop_sequences" if control == "stop" else control] = value
    if len(stop) < len(request.stop):
        notices["A stop text of white space was left out: this API refuses it."] = None
    return sent


def _spoils_thinking(control: str, value: Any) -> bool:
    if control == "top_p":
        return value < _LEAST_TOP_P
    return control == "temperature" and value != 1


def _output(
    request: Request, flags: AnthropicFlags, plan: ThinkingPlan, notices: dict[str, None]
) -> _Json:
    """`output_config`: effort and the schema of the answer."""
    config: _Json = {}
    if plan.effort is not None:
        config["effort"] = plan.effort
    if request.output is not None:
        able = flags.schema_output and claude_quirks(request.model).schema_output
        schema = fit_schema(request.output) if able else None
        if schema is not None:
            config["format"] = {"type": "json_schema", "schema": schema}
        elif able:
            notices["The answer's schema was not sent: it allows objects with any keys."] = None
        else:
            notices["The answer's schema was not sent: this model takes none."] = None
    return {"output_config": config} if config else {}
