"""What a scripted server answers to what people say to a session."""

from typing import Final

from towline_client.testing.log import ScriptedSession
from towline_client.testing.reply import give, part_of, read_body, refuse
from towline_client.testing.stage import Handler, Stage
from towline_client.transport import Call, Reply
from towline_protocol import (
    TERMINAL_EVENTS,
    AnswerPermission,
    AnswerQuestion,
    Block,
    Compacted,
    CreateSession,
    Event,
    ForkSession,
    Interrupt,
    Interrupted,
    MessageEnded,
    MessageStarted,
    MessageView,
    Notice,
    PermissionAnswered,
    PromptAdmitted,
    PromptDelivered,
    PromptId,
    PromptWithdrawn,
    QuestionAnswered,
    QueueResumed,
    Resend,
    Reverted,
    SendPrompt,
    SessionView,
    ToolEnded,
    ToolProposed,
    ToolStarted,
    TurnId,
    TurnStarted,
    Withdrawn,
)

__all__ = ["TALK"]

_CLOSED: Final = "The session is closed; make a new one."
_FORKED: Final = (
    *TERMINAL_EVENTS,
    Compacted,
    MessageEnded,
    MessageStarted,
    PromptDelivered,
    Reverted,
    ToolEnded,
    ToolProposed,
    ToolStarted,
    TurnStarted,
)
"""What a fork takes over, beside the prompts that were delivered."""


def _send_prompt(stage: Stage, session: ScriptedSession, call: Call) -> Reply:
    if session.view.closed is not None:
        return refuse("gone", _CLOSED)
    asked = read_body(call, SendPrompt)
    key = call.headers.get("idempotency-key")
    return give(call, stage.admit(session, asked.content, when=asked.when, key=key))


def _interrupt(stage: Stage, session: ScriptedSession, call: Call) -> Reply:
    asked = read_body(call, Interrupt)
    running = session.view.turn
    if running is None or asked.turn not in (None, running.id):
        return give(call, Interrupted())
    return give(call, Interrupted(turn=stage.turns.stop(session, asked.reason)))


def _withdraw(stage: Stage, session: ScriptedSession, call: Call) -> Reply:
    del stage
    prompt = PromptId(part_of(call, 4))
    known = [envelope.event for envelope in session.events]
    if any(queued.prompt == prompt for queued in session.view.queue):
        session.emit(PromptWithdrawn(prompt=prompt))
    elif any(isinstance(event, PromptDelivered) and event.prompt == prompt for event in known):
        return refuse("gone", "The prompt has reached its turn; stop the turn instead.")
    elif PromptWithdrawn(prompt=prompt) not in known:
        return refuse("not_found", "No such prompt waits here; read the session's view.")
    return give(call, Withdrawn(prompt=prompt))


def _resume_queue(stage: Stage, session: ScriptedSession, call: Call) -> Reply:
    if session.view.closed is not None:
        return refuse("gone", _CLOSED)
    stage.turns.start(session)
    return give(call, QueueResumed(queued=len(session.view.queue)))


def _retry(stage: Stage, session: ScriptedSession, call: Call) -> Reply:
    last = session.view.last_turn
    if last is None:
        return refuse("rejected", "Nothing has run here yet; send a prompt.")
    return _say_again(stage, session, call, last.id, None)


def _resend(stage: Stage, session: ScriptedSession, call: Call) -> Reply:
    content = read_body(call, Resend).content
    return _say_again(stage, session, call, TurnId(part_of(call, 4)), content)


def _say_again(
    stage: Stage,
    session: ScriptedSession,
    call: Call,
    turn: TurnId,
    content: tuple[Block, ...] | None,
) -> Reply:
    refusal = _check_idle(session)
    if refusal is not None:
        return refusal
    found = [e for e in session.view.messages if e.role == "user" and e.turn == turn]
    if not found:
        return refuse("not_found", "There is no such turn in this session; read its view.")
    if _is_undone(session.view, found[0]):
        return refuse("rejected", "The turn is undone already; say it as a new prompt.")
    admitted = next(
        envelope.event
        for envelope in session.events
        if isinstance(envelope.event, PromptAdmitted) and envelope.event.prompt == found[0].id
    )
    session.emit(Reverted(to_turn=turn))
    key = call.headers.get("idempotency-key")
    said = content or admitted.content
    return give(call, stage.admit(session, said, key=key, position=0))


def _is_undone(view: SessionView, said: MessageView) -> bool:
    """Whether a later mark takes back the turn of a message: ids of turns sort by time."""
    return any(
        entry.mark is not None
        and entry.mark.kind == "reverted"
        and entry.seq > said.seq
        and entry.mark.text <= (said.turn or "")
        for entry in view.messages
    )


def _check_idle(session: ScriptedSession) -> Reply | None:
    if session.view.closed is not None:
        return refuse("gone", _CLOSED)
    if session.view.turn is not None:
        return refuse("conflict", "A turn runs; stop it or wait for its end, then try again.")
    return None


def _compact(stage: Stage, session: ScriptedSession, call: Call) -> Reply:
    del stage
    refusal = _check_idle(session)
    if refusal is not None:
        return refusal
    session.emit(Notice(code="compacting", message="The conversation is being summed up."))
    said = [entry for entry in session.view.messages if entry.id is not None]
    if said:
        summary = f"{len(said)} messages."
        session.emit(
            Compacted(upto=said[-1].id, summary=summary, before_tokens=1000, after_tokens=100)
        )
    return give(call, session.info)


def _fork(stage: Stage, session: ScriptedSession, call: Call) -> Reply:
    asked = read_body(call, ForkSession)
    ends = {
        envelope.turn: envelope.seq or 0
        for envelope in session.events
        if isinstance(envelope.event, TERMINAL_EVENTS)
    }
    if asked.turn is not None and asked.turn not in ends:
        running = session.view.turn
        if running is not None and running.id == asked.turn:
            return refuse("conflict", "The turn still runs; wait for its end, then fork.")
        return refuse("not_found", "There is no such turn in this session; read its view.")
    end = max(ends.values(), default=0) if asked.turn is None else ends[asked.turn]
    view = session.view
    new = CreateSession(
        agent=view.agent,
        model=view.model,
        mode=view.mode,
        title=asked.title or view.title,
        cwd=view.cwd,
        labels=view.labels,
    )
    fork = stage.add(new, session.log, forked_from=session.id)
    taken = session.events[:end]
    delivered = {e.event.prompt for e in taken if isinstance(e.event, PromptDelivered)}
    for envelope in taken:
        if _is_taken(envelope.event, delivered):
            fork.emit(envelope.event, envelope.turn)
    return give(call, fork.info)


def _is_taken(event: Event, delivered: set[PromptId]) -> bool:
    if isinstance(event, PromptAdmitted):
        return event.prompt in delivered
    return isinstance(event, _FORKED)


def _decide(stage: Stage, session: ScriptedSession, call: Call) -> Reply:
    asked = read_body(call, AnswerPermission)
    for request in session.view.permissions:
        if request.permission != part_of(call, 4):
            continue
        if request.digest != asked.digest:
            return refuse("conflict", "The digest is another one; read the request again.")
        if stage.turns.settle(request.permission, asked.option):
            return give(call, PermissionAnswered(option=asked.option))
    return refuse("gone", "The request was answered already; nothing was changed.")


def _hear(stage: Stage, session: ScriptedSession, call: Call) -> Reply:
    asked = read_body(call, AnswerQuestion)
    if not session.view.questions or not stage.turns.settle(part_of(call, 4), asked.answers):
        return refuse("gone", "The question was answered already; nothing was changed.")
    return give(call, QuestionAnswered(answers=asked.answers))


TALK: Final[dict[str, Handler]] = {
    "send_prompt": _send_prompt,
    "interrupt": _interrupt,
    "withdraw_prompt": _withdraw,
    "resume_queue": _resume_queue,
    "retry": _retry,
    "resend": _resend,
    "compact_session": _compact,
    "fork_session": _fork,
    "answer_permission": _decide,
    "answer_question": _hear,
}
"""Operation name to what answers it."""
