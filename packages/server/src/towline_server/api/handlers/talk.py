"""What people say to a session."""

from typing import Final, cast

from towline_protocol import (
    ForkSession,
    Interrupt,
    Interrupted,
    PromptAccepted,
    PromptId,
    QueueResumed,
    Resend,
    SendPrompt,
    SessionInfo,
    TurnId,
    UsageError,
    Withdrawn,
)
from towline_server.api.handlers.call import (
    MAX_NOTE,
    MAX_WORD,
    Call,
    Handler,
    check_length,
    check_limits,
    take_content,
)
from towline_server.sessions.inbox import WHEN, Said

__all__ = ["HANDLERS"]


async def _send_prompt(call: Call) -> PromptAccepted:
    body = cast("SendPrompt", call.body)
    if body.when not in WHEN:
        raise UsageError(f"There is no when={body.when!r}; it is one of: {', '.join(WHEN)}.")
    check_limits(body.limits)
    session = await call.service.sessions.get(call.user, call.session, live=True)
    with session.in_use():
        taken = await take_content(call, body.content, cwd=session.log.view.cwd)
        said = Said(
            content=taken.content,
            notices=taken.notices,
            when=body.when,
            key=call.key,
            limits=body.limits,
            speak=body.speak,
        )
        return await session.admit(said, call.remember)


async def _withdraw_prompt(call: Call) -> Withdrawn:
    session = await call.service.sessions.get(call.user, call.session)
    prompt = PromptId(call.request.path_params["prompt"])
    await session.withdraw(prompt)
    return Withdrawn(prompt=prompt)


async def _resume_queue(call: Call) -> QueueResumed:
    session = await call.service.sessions.get(call.user, call.session, live=True)
    await session.resume_queue()
    return QueueResumed(queued=session.info().queued)


async def _retry(call: Call) -> PromptAccepted:
    session = await call.service.sessions.get(call.user, call.session, live=True)
    return await session.say_again(None, key=call.key, remember=call.remember)


async def _resend(call: Call) -> PromptAccepted:
    body = cast("Resend", call.body)
    check_limits(body.limits)
    turn = TurnId(call.request.path_params["turn"])
    session = await call.service.sessions.get(call.user, call.session, live=True)
    with session.in_use():
        taken = await take_content(call, body.content, cwd=session.log.view.cwd)
        said = Said(
            content=taken.content,
            notices=taken.notices,
            key=call.key,
            limits=body.limits,
            speak=body.speak,
        )
        return await session.say_again(turn, said, remember=call.remember)


async def _interrupt(call: Call) -> Interrupted:
    body = cast("Interrupt", call.body)
    check_length(MAX_NOTE, reason=body.reason)
    session = await call.service.sessions.get(call.user, call.session)
    with session.in_use():
        return Interrupted(turn=await session.runner.stop(call.user, body.reason, body.turn))


async def _compact_session(call: Call) -> SessionInfo:
    session = await call.service.sessions.get(call.user, call.session, live=True)
    await session.compact()
    return await call.service.sessions.info(call.user, call.session)


async def _fork_session(call: Call) -> SessionInfo:
    body = cast("ForkSession", call.body)
    check_length(MAX_WORD, title=body.title)
    fork = await call.service.sessions.fork(
        call.user, call.session, turn=body.turn, title=body.title, remember=call.remember
    )
    return fork.info()


HANDLERS: Final[dict[str, Handler]] = {
    "send_prompt": _send_prompt,
    "withdraw_prompt": _withdraw_prompt,
    "resume_queue": _resume_queue,
    "retry": _retry,
    "resend": _resend,
    "interrupt": _interrupt,
    "compact_session": _compact_session,
    "fork_session": _fork_session,
}
"""Operation name to handler."""
