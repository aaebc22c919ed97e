"""The reducer's part for tool calls, permissions and questions."""

from collections.abc import Callable
from typing import Any, Final

import msgspec

from towline_protocol.events import (
    ClientCallClaimed,
    ClientCallOffered,
    Envelope,
    FileChange,
    FilesChanged,
    PermissionRequested,
    PermissionResolved,
    QuestionAsked,
    QuestionResolved,
    ToolEnded,
    ToolOutputDelta,
    ToolProgress,
    ToolProposed,
    ToolStarted,
)
from towline_protocol.frames import Partial
from towline_protocol.ids import CallId
from towline_protocol.view import CallView, Decision, SessionView

__all__ = ["FOLDS", "MAX_CHANGES", "MAX_DIFF", "MAX_OUTPUT", "partial"]

MAX_CHANGES: Final = 100
"""Changed files of one call that a view holds: nobody reads more in a card."""
MAX_DIFF: Final = 16_384
"""Code points of a file's diff that a view holds: some 400 lines. The whole stands in the event."""

MAX_OUTPUT: Final = 8192
"""Code points of a running call's output that a view holds: some 200 lines."""

_set = msgspec.structs.replace


def _proposed(view: SessionView, envelope: Envelope, event: ToolProposed) -> SessionView:
    call = CallView(
        call=event.call,
        tool=event.tool,
        title=event.title,
        effect=event.effect,
        arguments=event.arguments,
        status="pending",
        preview=event.preview,
        turn=envelope.turn,
        arguments_file=event.arguments_file,
    )
    kept = tuple(other for other in view.open_calls if other.call != event.call)
    return _set(view, open_calls=(*kept, call))


def _started(view: SessionView, envelope: Envelope, event: ToolStarted) -> SessionView:
    return _change(
        view,
        event.call,
        lambda call: _set(
            call,
            status="in_progress",
            started=call.started or envelope.time,
            child=event.child or call.child,
        ),
    )


def _progress(view: SessionView, envelope: Envelope, event: ToolProgress) -> SessionView:
    del envelope
    text, fraction = event.text, event.fraction
    return _change(view, event.call, lambda call: _set(call, progress=text, fraction=fraction))


def _output(view: SessionView, envelope: Envelope, event: ToolOutputDelta) -> SessionView:
    del envelope
    found = next((call for call in view.open_calls if call.call == event.call), None)
    if found is None:
        return view
    end = found.output_at + len(found.output)
    if event.at > end:
        return _set(view, lost=True)
    grown = found.output + event.text[end - event.at :]
    return _change(view, event.call, lambda call: _tail(call, call.output_at, grown))


def _tail(call: CallView, at: int, output: str) -> CallView:
    over = max(0, len(output) - MAX_OUTPUT)
    return _set(call, output_at=at + over, output=output[over:])


def _ended(view: SessionView, envelope: Envelope, event: ToolEnded) -> SessionView:
    if event.usage is not None:  # a sub-agent worked for it; its tokens stand in the turn's sum
        cost = None if view.cost is None or event.cost is None else view.cost + event.cost
        view = _set(view, cost=cost)
    ended = [call for call in view.open_calls if call.call == event.call]
    if not ended:
        return view
    call = _set(
        ended[0],
        status=event.status,
        progress=None,
        fraction=None,
        output="",
        output_at=0,
        content=event.content,
        is_error=event.is_error,
        duration_ms=event.duration_ms,
        artifacts=event.artifacts,
        files=event.files,
    )
    del envelope
    kept = tuple(other for other in view.open_calls if other.call != event.call)
    return _set(view, open_calls=kept, calls=(*view.calls, call))


def _offered(view: SessionView, envelope: Envelope, event: ClientCallOffered) -> SessionView:
    del envelope
    return _change(
        view,
        event.call,
        lambda call: _set(call, expires_at=event.expires_at, claimed_by=event.to),
    )


def _claimed(view: SessionView, envelope: Envelope, event: ClientCallClaimed) -> SessionView:
    del envelope
    return _change(view, event.call, lambda call: _set(call, claimed_by=event.by))


def _files(view: SessionView, envelope: Envelope, event: FilesChanged) -> SessionView:
    del envelope
    return _change(view, event.call, lambda call: _changed(call, event.changes))


def _changed(call: CallView, more: tuple[FileChange, ...]) -> CallView:
    changes = (*call.changes, *[_short(change) for change in more])
    truncated = call.changes_truncated or len(changes) > MAX_CHANGES
    return _set(call, changes=changes[:MAX_CHANGES], changes_truncated=truncated)


def _short(change: FileChange) -> FileChange:
    if change.diff is None or len(change.diff) <= MAX_DIFF:
        return change
    return _set(change, diff=change.diff[:MAX_DIFF], truncated=True)


def _requested(view: SessionView, envelope: Envelope, event: PermissionRequested) -> SessionView:
    del envelope
    requests = list(view.permissions)
    for place, request in enumerate(requests):
        if request.permission == event.permission:
            requests[place] = event  # its deadline moved (C5.8)
            return _set(view, permissions=tuple(requests))
    return _set(view, permissions=(*requests, event))


def _resolved(view: SessionView, envelope: Envelope, event: PermissionResolved) -> SessionView:
    asked = [r for r in view.permissions if r.permission == event.permission]
    view = _set(
        view,
        permissions=tuple(r for r in view.permissions if r.permission != event.permission),
    )
    if not asked:
        return view
    decision = Decision(option=event.option, by=event.by, note=event.note, time=envelope.time)
    return _change(view, asked[0].call, lambda call: _set(call, decision=decision))


def _asked(view: SessionView, envelope: Envelope, event: QuestionAsked) -> SessionView:
    del envelope
    questions = list(view.questions)
    for place, question in enumerate(questions):
        if question.question == event.question:
            questions[place] = event
            return _set(view, questions=tuple(questions))
    return _set(view, questions=(*questions, event))


def _answered(view: SessionView, envelope: Envelope, event: QuestionResolved) -> SessionView:
    del envelope
    return _set(view, questions=tuple(q for q in view.questions if q.question != event.question))


def _change(view: SessionView, id_: CallId, change: Callable[[CallView], CallView]) -> SessionView:
    if not any(call.call == id_ for call in view.open_calls):
        return view
    return _set(
        view,
        open_calls=tuple(change(call) if call.call == id_ else call for call in view.open_calls),
    )


def partial(view: SessionView, frame: Partial) -> SessionView:
    """A running call as it stands: replaces what was built from deltas."""
    if frame.call is None:
        return view
    view = _change(view, frame.call, lambda call: _tail(call, frame.at, frame.output))
    progress, fraction = frame.progress, frame.fraction
    return _change(view, frame.call, lambda call: _set(call, progress=progress, fraction=fraction))


FOLDS: Final[dict[type, Callable[[SessionView, Envelope, Any], SessionView]]] = {
    ToolProposed: _proposed,
    ToolStarted: _started,
    ToolProgress: _progress,
    ToolOutputDelta: _output,
    ToolEnded: _ended,
    ClientCallOffered: _offered,
    ClientCallClaimed: _claimed,
    FilesChanged: _files,
    PermissionRequested: _requested,
    PermissionResolved: _resolved,
    QuestionAsked: _asked,
    QuestionResolved: _answered,
}
"""Event type to its fold."""
