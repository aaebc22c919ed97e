"""What people say to a session."""

from typing import Final, cast

from towline_protocol import Interrupt, Interrupted, PromptAccepted, SendPrompt, UsageError
from towline_server.api.handlers.call import (
    MAX_NOTE,
    Call,
    Handler,
    check_content,
    check_length,
    check_limits,
)

__all__ = ["HANDLERS"]

_WHEN: Final = ("auto", "queue", "steer", "reject")


async def _send_prompt(call: Call) -> PromptAccepted:
    body = cast("SendPrompt", call.body)
    if body.when not in _WHEN:
        raise UsageError(f"There is no when={body.when!r}; it is one of: {', '.join(_WHEN)}.")
    check_content(body.content)
    check_limits(body.limits)
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
    check_length(MAX_NOTE, reason=body.reason)
    session = await call.service.sessions.get(call.user, call.session)
    return Interrupted(turn=session.interrupt(call.user, body.reason, body.turn))


HANDLERS: Final[dict[str, Handler]] = {
    "send_prompt": _send_prompt,
    "interrupt": _interrupt,
}
"""Operation name to handler."""
