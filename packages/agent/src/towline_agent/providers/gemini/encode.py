"""From a neutral request to the JSON of `generateContent`. Pure: the same request, the same bytes.

What the API or the model does not take is left out and named in a notice (A1.19).
"""

import hashlib
from typing import Any, Final

import msgspec

from towline_agent.providers.base import Model, Request
from towline_agent.providers.fragments import to_json
from towline_agent.providers.gemini.contents import Contents, HistoryEncoder
from towline_agent.providers.gemini.family import Family, family_of
from towline_agent.providers.gemini.flags import GeminiFlags
from towline_agent.providers.gemini.schema import fit_schema
from towline_agent.providers.gemini.thinking import ask_to_think

__all__ = ["Prompt", "encode_request"]

_Json = dict[str, Any]

_SEARCH: Final = "web_search"
_MAX_STOPS: Final = 5
"""Stop sequences that the API takes."""
_CHARS_PER_TOKEN: Final = 4
"""The usual estimate (A3.28)."""


class Prompt(msgspec.Struct, frozen=True, kw_only=True):
    """A request in the pieces that a cache may hold (A2.56)."""

    head: bytes
    """System words, tools and their choice, as members of an object without its braces."""
    contents: Contents
    """The conversation."""
    tail: bytes
    """What is sent anew with each request, as members of an object without its braces."""
    notices: tuple[str, ...]
    """What was left out and why, for people."""

    def body(self, cached: str = "", count: int = 0) -> bytes:
        """The body of the request.

        Args:
            cached: The name of what holds the head and the first contents; empty for none.
            count: How many contents that holds.
        """
        head = b'"cachedContent":%s' % to_json(cached) if cached else self.head
        contents = b'"contents":[%s]' % self.contents.after(count)
        return b"{%s}" % b",".join(filter(None, (head, contents, self.tail)))

    def prefix(self, count: int) -> bytes:
        """The head and the first contents, as members of an object without its braces."""
        contents = b'"contents":[%s]' % self.contents.first(count) if count else b""
        return b",".join(filter(None, (self.head, contents)))

    def digest(self, count: int) -> bytes:
        """What tells whether two prefixes of so many contents are the same."""
        return hashlib.sha256(self.prefix(count)).digest()

    def tokens(self, count: int | None = None) -> int:
        """About how many tokens the head and the first contents have; `None` counts all."""
        return (len(self.head) + sum(self.contents.chars[:count])) // _CHARS_PER_TOKEN

    @property
    def settled(self) -> int:
        """How many contents come before what the person or the tools said last."""
        roles = self.contents.roles
        count = len(roles)
        while count and roles[count - 1] == "user":
            count -= 1
        return count


def encode_request(
    request: Request, model: Model, flags: GeminiFlags, history: HistoryEncoder | None = None
) -> Prompt:
    """A request in Gemini's words.

    Args:
        request: The neutral request.
        model: What is known of the model.
        flags: How the address speaks.
        history: Keeps what was encoded before; `None` encodes all.
    """
    family = family_of(model)
    history = history or HistoryEncoder(model)
    contents, notices = history.encode(request.messages, request.trailing)
    searches = _may_search(request, family, notices)
    return Prompt(
        head=_head(request, model, flags, history, searches=searches),
        contents=contents,
        tail=_tail(request, model, family, notices, searches=searches),
        notices=tuple(dict.fromkeys(notices)),
    )


def _head(
    request: Request, model: Model, flags: GeminiFlags, history: HistoryEncoder, *, searches: bool
) -> bytes:
    head: list[bytes] = []
    if request.system:
        system = {"parts": [{"text": request.system}]}
        head.append(b'"systemInstruction":%s' % to_json(system))
    tools: list[bytes] = []
    config: _Json = {}
    if request.tools and not (request.tool_choice == "none" and model.none_without_tools):
        tools.append(b'{"functionDeclarations":[%s]}' % history.declare(request.tools))
        choice = _choice(request.tool_choice, model)
        if choice is not None:
            config["functionCallingConfig"] = choice
    if searches:
        tools.append(b'{"googleSearch":{}}')
        if len(tools) > 1 and not flags.vertex:
            config["includeServerSideToolInvocations"] = True  # else both are refused together
    if tools:
        head.append(b'"tools":[%s]' % b",".join(tools))
    if config:
        head.append(b'"toolConfig":%s' % to_json(config))
    return b",".join(head)


def _choice(choice: str, model: Model) -> _Json | None:
    """Which tools must or may be called; the default of the API is not sent."""
    if choice == "auto":
        return None
    if choice == "none":
        return {"mode": "NONE"}
    if choice == "required" or not model.named_choice:
        return {"mode": "ANY"}
    return {"mode": "ANY", "allowedFunctionNames": [choice]}


def _may_search(request: Request, family: Family, notices: list[str]) -> bool:
    """Whether Google's search is offered: from generation 3 on beside functions too (A2.61)."""
    asked = False
    for name in request.server_tools:
        if name != _SEARCH:
            notices.append(f"The provider's tool {name!r} was left out: Gemini has none here.")
        elif request.tools and not family.newest:
            notices.append(
                f"Google's search was left out: {request.model!r} takes it only without tools."
            )
        else:
            asked = True
    return asked


def _tail(
    request: Request, model: Model, family: Family, notices: list[str], *, searches: bool
) -> bytes:
    config: _Json = {}
    for key, name, value in (
        ("temperature", "temperature", request.temperature),
        ("topP", "top_p", request.top_p),
        ("stopSequences", "stop", list(request.stop[:_MAX_STOPS]) or None),
    ):
        if value is None:
            continue
        if name in model.refuses:
            notices.append(f"{name!r} was not sent: {request.model!r} does not take it.")
        else:
            config[key] = value
    if len(request.stop) > _MAX_STOPS:
        notices.append(f"Only the first {_MAX_STOPS} stop sequences were sent.")
    asked = ask_to_think(request, model, family, notices)
    if asked.max_tokens is not None:
        config["maxOutputTokens"] = asked.max_tokens
    if asked.config is not None:
        config["thinkingConfig"] = asked.config
    config.update(_output(request, model, family, notices, searches=searches))
    return b'"generationConfig":%s' % to_json(config) if config else b""


def _output(
    request: Request, model: Model, family: Family, notices: list[str], *, searches: bool
) -> _Json:
    """The form of the answer; before generation 3 not together with tools."""
    if request.output is None:
        return {}
    if "output" in model.refuses or ((request.tools or searches) and not family.newest):
        notices.append(
            f"The answer's schema was not sent: {request.model!r} takes none together with tools."
        )
        return {}
    schema = fit_schema(request.output)
    form: _Json = {"responseMimeType": "application/json"}
    if schema != {"type": "object"}:
        form["responseSchema"] = schema
    return form
