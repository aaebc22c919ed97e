"""What a scripted server answers to clients that run tools (C5.12)."""

import base64
import hashlib
from typing import Final

from towline_client.testing.log import ScriptedSession, time_at
from towline_client.testing.reply import give, part_of, read_body, refuse
from towline_client.testing.stage import Handler, Stage
from towline_client.transport import Call, Reply
from towline_protocol import (
    CallId,
    CallView,
    ClaimCall,
    ClientBlock,
    ClientCall,
    ClientCallClaimed,
    ClientCallEnded,
    DeclareTools,
    Image,
    ReportProgress,
    SendResult,
    SessionCreated,
    SessionUpdated,
    ToolDeclaration,
    ToolEnded,
    ToolProgress,
    ToolsDeclared,
    ToolStarted,
)

__all__ = ["CLIENT_CALLS"]


def _declare(stage: Stage, session: ScriptedSession, call: Call) -> Reply:
    del stage
    if session.view.closed is not None:
        return refuse("gone", "The session is closed; make a new one.")
    asked = read_body(call, DeclareTools)
    declaration = ToolDeclaration(reader=asked.reader, tools=asked.tools)
    session.emit(SessionUpdated(tools=declaration))
    return give(call, ToolsDeclared(reader=asked.reader, tools=_declared(session)))


def _declared(session: ScriptedSession) -> tuple[str, ...]:
    """The names of all tools that clients run, each once."""
    by_reader: dict[str | None, tuple[str, ...]] = {}
    for envelope in session.events:
        match envelope.event:
            case SessionCreated(tools=tools):
                by_reader[None] = tuple(tool.name for tool in tools)
            case SessionUpdated(tools=ToolDeclaration(reader=reader, tools=tools)):
                by_reader[reader] = tuple(tool.name for tool in tools)
            case _:
                pass
    return tuple(dict.fromkeys(name for names in by_reader.values() for name in names))


def _claim(stage: Stage, session: ScriptedSession, call: Call) -> Reply:
    del stage
    asked = read_body(call, ClaimCall)
    found = _find(session, call)
    if isinstance(found, Reply):
        return found
    if found.claimed_by not in (None, asked.reader):
        return refuse("conflict", f"The client {found.claimed_by!r} has this call; drop it.")
    if found.claimed_by is None:
        session.emit(ClientCallClaimed(call=found.call, by=asked.reader), found.turn)
        session.emit(ToolStarted(call=found.call), found.turn)
    claimed = ClientCall(
        call=found.call,
        tool=found.tool,
        arguments=found.arguments,
        by=asked.reader,
        expires_at=found.expires_at or time_at(9000),
    )
    return give(call, claimed)


def _report(stage: Stage, session: ScriptedSession, call: Call) -> Reply:
    del stage
    asked = read_body(call, ReportProgress)
    found = _find(session, call, reader=asked.reader)
    if isinstance(found, Reply):
        return found
    progress = ToolProgress(call=found.call, text=asked.text, fraction=asked.fraction)
    session.emit(progress, found.turn)
    return give(call, None)


def _send(stage: Stage, session: ScriptedSession, call: Call) -> Reply:
    asked = read_body(call, SendResult)
    content = tuple(_keep(stage, block) for block in asked.content)
    id_ = CallId(part_of(call, 4))
    status = "failed" if asked.is_error else "completed"
    for ended in session.view.calls:
        if ended.call == id_ and (ended.content, ended.status) == (content, status):
            return give(call, ClientCallEnded(call=id_, status=status))  # the same once more
    found = _find(session, call, reader=asked.reader)
    if isinstance(found, Reply):
        return found
    ended = ToolEnded(call=id_, status=status, content=content, is_error=asked.is_error)
    session.emit(ended, found.turn)
    stage.turns.settle(id_, session.view.calls[-1])
    return give(call, ClientCallEnded(call=id_, status=status))


def _find(session: ScriptedSession, call: Call, *, reader: str | None = None) -> CallView | Reply:
    """The open call that is meant, or why it cannot be; with a reader it must be theirs."""
    id_ = CallId(part_of(call, 4))
    if any(ended.call == id_ for ended in session.view.calls):
        return refuse("gone", "The call has ended; drop it.")
    found = next((it for it in session.view.open_calls if it.call == id_), None)
    if found is None or found.expires_at is None:
        return refuse("not_found", "No such call was offered; read the session's view.")
    if reader is not None and found.claimed_by is None:
        detail = "Nobody has claimed the call; claim it first."
        return refuse("conflict", detail, reason="not_claimed")
    if reader is not None and found.claimed_by != reader:
        return refuse("conflict", "The call is not yours; claim it first.")
    return found


def _keep(stage: Stage, block: ClientBlock) -> ClientBlock:
    """A picture's bytes become a file: none stand in an event (C1.10)."""
    if not isinstance(block, Image) or block.data is None:
        return block
    data = base64.b64decode(block.data)
    file = hashlib.sha256(data).hexdigest()
    stage.files[file] = data
    return Image(media_type=block.media_type, file=file)


CLIENT_CALLS: Final[dict[str, Handler]] = {
    "declare_tools": _declare,
    "claim_call": _claim,
    "report_progress": _report,
    "send_result": _send,
}
"""Operation name to what answers it."""
