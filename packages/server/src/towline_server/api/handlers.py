"""The operations of the table, each as one function from a call to an answer."""

import math
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, cast

from starlette.requests import Request
from starlette.responses import Response

from towline_protocol import (
    AnswerPermission,
    Block,
    Claim,
    Claimed,
    CreateSession,
    Health,
    Identity,
    Interrupt,
    Interrupted,
    Limits,
    Pairing,
    PermissionAnswered,
    PermissionId,
    PromptAccepted,
    SendPrompt,
    SessionId,
    SessionInfo,
    SessionList,
    Text,
    UsageError,
    ViewAnswer,
    block_text,
    encode,
)
from towline_server.api.access import DEVICE_LIFE_S, Access
from towline_server.api.remember import Remember, Repeats
from towline_server.sessions.registry import Sessions

__all__ = ["HANDLERS", "Call", "Service"]

_WHEN: Final = ("auto", "queue", "steer", "reject")
_MAX_BLOCKS: Final = 64  # of a prompt (C6)
_MAX_PROMPT_BYTES: Final = 1_000_000  # as JSON: its event stays below the largest one (C6)
_MAX_WORD: Final = 200  # characters of a title, a model's name, a key
_MAX_PATH: Final = 4096  # what systems take
_MAX_NOTE: Final = 4000  # characters of what a person says to a decision or a stop
_PAGE: Final = 50
_MAX_PAGE: Final = 200


@dataclass(frozen=True, kw_only=True)
class Service:
    """What handlers work with."""

    sessions: Sessions
    """The sessions."""
    access: Access
    """Who is asking."""
    repeats: Repeats
    """Answers to requests that come again."""
    log: str
    """The lineage of the log."""
    version: str
    """The server's version."""
    server_name: str
    """What it calls itself."""
    address: Callable[[], str]
    """The address it is reached at, such as `http://127.0.0.1:4747`."""


@dataclass(frozen=True, kw_only=True)
class Call:
    """One request, checked: its body has the operation's type."""

    request: Request
    """The raw request."""
    service: Service
    """What to work with."""
    user: str
    """Who asks; empty for open operations."""
    body: Any
    """The decoded body; `None` when the operation has none."""
    remember: Remember | None = None
    """How to keep the answer to a request that may come again."""

    @property
    def session(self) -> SessionId:
        """The session in the path."""
        return SessionId(self.request.path_params["session"])


Handler = Callable[[Call], Awaitable[Any]]


async def _health(call: Call) -> Health:
    return Health(status="ok", server_version=call.service.version, pid=os.getpid())


async def _claim(call: Call) -> Claimed | Response:
    body = cast("Claim", call.body)
    access = call.service.access
    token = await access.claim(body.code, body.name)
    user = "owner"
    if not body.cookie:
        return Claimed(token=token, user=user)
    response = Response(encode(Claimed(user=user)), media_type="application/json")
    response.set_cookie(
        access.cookie,
        token,
        max_age=DEVICE_LIFE_S,
        httponly=True,
        samesite="strict",
        secure=call.request.url.scheme == "https",
        path="/",
    )
    return response


async def _pair(call: Call) -> Pairing:
    code, until = call.service.access.new_code()
    return Pairing(code=code, url=f"{call.service.address()}/#code={code}", expires_at=until)


async def _me(call: Call) -> Identity:
    return Identity(user=call.user, server_name=call.service.server_name)


async def _logout(call: Call) -> Response:
    await call.service.access.revoke(call.request)
    response = Response(status_code=204)
    response.delete_cookie(call.service.access.cookie, path="/")
    return response


async def _create_session(call: Call) -> SessionInfo:
    body = cast("CreateSession", call.body)
    _check_length(_MAX_PATH, cwd=body.cwd)
    _check_length(
        _MAX_WORD,
        agent=body.agent,
        model=body.model,
        title=body.title,
        mode=body.mode,
        key=body.key,
    )
    if body.prompt is not None:
        _check_content(body.prompt)
    session = await call.service.sessions.create(
        call.user,
        agent=body.agent,
        model=body.model,
        title=body.title,
        cwd=body.cwd,
        mode=body.mode,
        prompt=body.prompt,
        key=body.key,
        remember=call.remember,
    )
    return session.info()


async def _list_sessions(call: Call) -> SessionList:
    query = call.request.query_params
    limit = _number(query.get("limit"), _PAGE, _MAX_PAGE)
    return await call.service.sessions.page(call.user, limit, query.get("after"))


async def _get_session(call: Call) -> SessionInfo:
    return (await call.service.sessions.get(call.user, call.session)).info()


async def _get_view(call: Call) -> ViewAnswer:
    session = await call.service.sessions.get(call.user, call.session)
    view = session.view()
    return ViewAnswer(log=call.service.log, seq=view.seq, view=view)


async def _send_prompt(call: Call) -> PromptAccepted:
    body = cast("SendPrompt", call.body)
    if body.when not in _WHEN:
        raise UsageError(f"There is no when={body.when!r}; it is one of: {', '.join(_WHEN)}.")
    _check_content(body.content)
    _check_limits(body.limits)
    session = await call.service.sessions.get(call.user, call.session)
    return await session.admit(
        body.content,
        when=body.when,
        key=call.request.headers.get("idempotency-key"),
        limits=body.limits,
        speak=body.speak,
        remember=call.remember,
    )


async def _interrupt(call: Call) -> Interrupted:
    body = cast("Interrupt", call.body)
    _check_length(_MAX_NOTE, reason=body.reason)
    session = await call.service.sessions.get(call.user, call.session)
    return Interrupted(turn=session.interrupt(call.user, body.reason, body.turn))


async def _answer_permission(call: Call) -> PermissionAnswered:
    body = cast("AnswerPermission", call.body)
    _check_length(_MAX_NOTE, note=body.note)
    session = await call.service.sessions.get(call.user, call.session)
    option = await session.requests.resolve(
        PermissionId(call.request.path_params["permission"]),
        option=body.option,
        digest=body.digest,
        by=call.user,
        note=body.note,
        remember=call.remember,
    )
    return PermissionAnswered(option=option)


def _check_limits(limits: Limits | None) -> None:
    """Refuse bounds in which nothing can run."""
    if limits is None:
        return
    for name in limits.__struct_fields__:
        bound: float | None = getattr(limits, name)
        if bound is not None and not 0 < bound < math.inf:
            raise UsageError(f"limits.{name} is {bound!r}; it must be more than 0.")


def _check_content(content: tuple[Block, ...]) -> None:
    """Refuse a prompt that says nothing, or too much (C6)."""
    if not content or len(content) > _MAX_BLOCKS:
        raise UsageError(f"A prompt has 1 to {_MAX_BLOCKS} blocks; this one has {len(content)}.")
    if not all(isinstance(block, Text) for block in content):
        raise UsageError("This server takes text blocks only; leave images and files out.")
    size = len(encode(content))
    if size > _MAX_PROMPT_BYTES:
        raise UsageError(
            f"A prompt has at most {_MAX_PROMPT_BYTES} bytes; this one has {size}. Put long text "
            "into a file that the agent can read."
        )
    if not block_text(content).strip():
        raise UsageError("The prompt is empty; say something.")


def _check_length(most: int, **values: str | None) -> None:
    """Refuse text that is longer than its use needs: all of it is kept for ever."""
    for name, value in values.items():
        if value is not None and len(value) > most:
            raise UsageError(f"{name} has at most {most} characters; this one has {len(value)}.")


def _number(text: str | None, usual: int, most: int) -> int:
    if text is None:
        return usual
    if not text.isascii() or not text.isdigit() or len(text) > 9 or not 1 <= int(text) <= most:
        raise UsageError(f"limit={text[:20]!r} is no number from 1 to {most}.")
    return int(text)


HANDLERS: Final[dict[str, Handler]] = {
    "health": _health,
    "claim": _claim,
    "pair": _pair,
    "me": _me,
    "logout": _logout,
    "create_session": _create_session,
    "list_sessions": _list_sessions,
    "get_session": _get_session,
    "get_view": _get_view,
    "send_prompt": _send_prompt,
    "interrupt": _interrupt,
    "answer_permission": _answer_permission,
}
"""Operation name to handler; `follow` is a stream and stands in `stream.py`."""
