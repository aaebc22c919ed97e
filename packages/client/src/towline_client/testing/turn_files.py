"""What a scripted server answers about the files of turns: what its turns have told of them."""

from typing import Final

from towline_client.testing.log import ScriptedSession
from towline_client.testing.reply import give, part_of, read_body, refuse
from towline_client.testing.stage import Handler, Stage
from towline_client.transport import Call, Reply
from towline_protocol import (
    Checkpoint,
    CheckpointList,
    FileChange,
    FilesChanged,
    FilesReverted,
    PromptDelivered,
    Reverted,
    RevertTurn,
    TurnDiff,
    TurnId,
    TurnReverted,
)

__all__ = ["TURN_FILES"]


def _changes(session: ScriptedSession) -> dict[TurnId, tuple[str, list[FileChange]]]:
    """The time and the changes of each turn that was not undone."""
    found: dict[TurnId, tuple[str, list[FileChange]]] = {}
    for envelope in session.events:
        event = envelope.event
        if isinstance(event, FilesChanged) and envelope.turn is not None:
            found.setdefault(envelope.turn, (envelope.time, []))[1].extend(event.changes)
        elif isinstance(event, FilesReverted):
            for turn in [turn for turn in found if turn >= event.turn]:  # ids sort by time
                del found[turn]
    return found


def _list(stage: Stage, session: ScriptedSession, call: Call) -> Reply:
    del stage
    rows = [
        Checkpoint(turn=turn, time=time, files=len(changes))
        for turn, (time, changes) in _changes(session).items()
    ]
    return give(call, CheckpointList(checkpoints=tuple(rows[::-1])))


def _diff(stage: Stage, session: ScriptedSession, call: Call) -> Reply:
    del stage
    turn = TurnId(part_of(call, 4))
    if not _is_turn(session, turn):
        return refuse("not_found", "There is no such turn in this session; read its view.")
    changes = [
        change
        for envelope in session.events
        if isinstance(envelope.event, FilesChanged) and envelope.turn == turn
        for change in envelope.event.changes
    ]
    return give(call, TurnDiff(turn=turn, changes=tuple(changes)))


def _revert(stage: Stage, session: ScriptedSession, call: Call) -> Reply:
    del stage
    turn = TurnId(part_of(call, 4))
    asked = read_body(call, RevertTurn)
    if session.view.closed is not None:
        return refuse("gone", "The session is closed; make a new one.")
    if session.view.turn is not None:
        return refuse("conflict", "A turn runs; stop it or wait for its end, then try again.")
    if not _is_turn(session, turn):
        return refuse("not_found", "There is no such turn in this session; read its view.")
    undone = [changes for each, (_, changes) in _changes(session).items() if each >= turn]
    paths = tuple(sorted({change.path for changes in undone for change in changes}))
    if asked.conversation:
        session.emit(Reverted(to_turn=turn))
    if paths:
        session.emit(FilesReverted(turn=turn, files=paths))
    return give(call, TurnReverted(turn=turn, reverted=paths, conversation=asked.conversation))


def _is_turn(session: ScriptedSession, turn: TurnId) -> bool:
    events = [envelope.event for envelope in session.events]
    return any(isinstance(event, PromptDelivered) and event.turn == turn for event in events)


TURN_FILES: Final[dict[str, Handler]] = {
    "list_checkpoints": _list,
    "get_diff": _diff,
    "revert_turn": _revert,
}
"""Operation name to what answers it."""
