"""What a log says: the state of a session, and where a crash cut its turn (C5.4 to C5.6). Pure."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

import msgspec

from towline_agent import CallRecord, Rule, Spent, Start, parse_rule
from towline_protocol import (
    Broken,
    CallId,
    Envelope,
    Event,
    Limits,
    MessageId,
    PermissionId,
    PermissionRequested,
    PermissionResolved,
    Private,
    Process,
    PromptAdmitted,
    PromptId,
    SessionView,
    StepEnded,
    StepStarted,
    ToolEnded,
    ToolProposed,
    ToolStarted,
    Transcript,
    TurnCancelled,
    TurnStarted,
    decode_envelope,
    empty_view,
    parse_time,
    reduce,
)
from towline_server.errors import StoreCorrupt
from towline_server.store.records import StoredRow

__all__ = ["MAX_ATTEMPTS", "SERVER", "Loaded", "load", "take"]

MAX_ATTEMPTS: Final = 3
"""How often a turn is resumed before it fails (C5.4)."""
SERVER: Final = "server"
"""Who stops a turn when the server itself shuts down (C5.14)."""

_private: Final = msgspec.json.Decoder(tuple[Private, ...])


@dataclass(kw_only=True)
class Loaded:
    """A session as its log tells it."""

    view: SessionView = field(default_factory=empty_view)
    """What screens show."""
    transcript: Transcript = field(default_factory=Transcript)
    """What the provider sees."""
    rules: list[Rule] = field(default_factory=list[Rule])
    """What people allowed for the session."""
    requests: dict[PermissionId, PermissionRequested] = field(
        default_factory=dict[PermissionId, PermissionRequested]
    )
    """The open permission requests, the newest form of each."""
    resolved: dict[PermissionId, PermissionResolved] = field(
        default_factory=dict[PermissionId, PermissionResolved]
    )
    """Every resolution."""
    journal: dict[CallId, CallRecord] = field(default_factory=dict[CallId, CallRecord])
    """What the open turn's calls came to."""
    processes: dict[CallId, Process] = field(default_factory=dict[CallId, Process])
    """Programs that were running when the log ends."""
    spent: Spent = field(default_factory=Spent)
    """What the open turn has used."""
    stop_reason: str = ""
    """Why the last answer ended."""
    limits: dict[PromptId, Limits] = field(default_factory=dict[PromptId, Limits])
    """Bounds that waiting prompts ask for."""
    speaks: set[PromptId] = field(default_factory=set[PromptId])
    """Prompts that ask for words to read aloud, until their turns begin."""
    turn_speaks: bool = False
    """Whether the open turn was asked for them."""
    turn_limits: Limits | None = None
    """The bounds of the open turn."""
    held: bool = False
    """Whether somebody stopped a turn and has said nothing since: what waits is held (C2.11)."""

    @property
    def open_messages(self) -> tuple[MessageId, ...]:
        """Messages that a crash left half written."""
        return tuple(message.id for message in self.view.open_messages)

    def start(self, now_ms: int) -> Start | None:
        """How to resume the open turn; `None` when no turn is open."""
        turn = self.view.turn
        if turn is None:
            return None
        return Start(
            turn=turn.id,
            prompt=turn.prompt,
            attempt=turn.attempt + 1,
            journal=dict(self.journal),
            spent=self.spent,
            elapsed_s=max(0.0, (now_ms - parse_time(turn.started)) / 1000),
            stop_reason=self.stop_reason,
            speak=self.turn_speaks,
        )


def load(rows: Iterable[StoredRow]) -> Loaded:
    """Fold a whole log.

    Raises:
        StoreCorrupt: A row is no event, or a number is missing.
    """
    loaded = Loaded()
    for row in rows:
        envelope = decode_envelope(row.data)
        if isinstance(envelope, Broken):
            raise StoreCorrupt(
                f"Event {row.seq!r} of the log cannot be read ({envelope.reason}); restore the "
                "data folder from a copy."
            )
        take(loaded, envelope, _decode_private(row))
        if loaded.view.lost:
            raise StoreCorrupt(
                f"The log has a hole before event {row.seq!r}; restore the data folder from a copy."
            )
    return loaded


def _decode_private(row: StoredRow) -> tuple[Private, ...]:
    if row.private is None:
        return ()
    try:
        return _private.decode(row.private)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise StoreCorrupt(
            f"What is kept beside event {row.seq!r} of the log cannot be read; restore the data "
            "folder from a copy."
        ) from error


def take(loaded: Loaded, envelope: Envelope, private: tuple[Private, ...]) -> None:
    """Fold one stored event into the state."""
    loaded.view = reduce(loaded.view, envelope)
    loaded.transcript.add(envelope.event, private, envelope.turn)
    _fold_turn(loaded, envelope.event)
    _fold_call(loaded, envelope.event)


def _fold_turn(loaded: Loaded, event: Event) -> None:
    """What the open turn has used, and whether the next one is held back."""
    match event:
        case PromptAdmitted():
            loaded.held = False
            if event.limits is not None:
                loaded.limits[event.prompt] = event.limits
            if event.speak:
                loaded.speaks.add(event.prompt)
        case TurnStarted():
            loaded.limits.pop(event.prompt, None)
            loaded.turn_limits = event.limits
            loaded.turn_speaks = event.prompt in loaded.speaks
            loaded.speaks.discard(event.prompt)
            loaded.journal.clear()
            loaded.processes.clear()
            loaded.spent = Spent()
            loaded.stop_reason = ""
            loaded.held = False
        case TurnCancelled():
            loaded.held = event.by != SERVER  # its own end is nobody's wish
        case StepStarted(attempt=1):
            loaded.spent.steps += 1
        case StepEnded():
            loaded.spent.add(event.usage, event.cost)
            loaded.stop_reason = event.stop_reason
        case _:
            pass


def _fold_call(loaded: Loaded, event: Event) -> None:
    """What the open turn's calls came to, and what was asked of people."""
    match event:
        case PermissionRequested():
            loaded.requests[event.permission] = event
            _record(loaded, event.call, request=event)
        case PermissionResolved():
            _resolve(loaded, event)
        case ToolProposed():
            _record(loaded, event.call, proposed=True)
        case ToolStarted():
            _record(loaded, event.call, started=True)
            if event.process is not None:
                loaded.processes[event.call] = event.process
        case ToolEnded():
            loaded.journal.pop(event.call, None)
            loaded.processes.pop(event.call, None)
        case _:
            pass


def _record(loaded: Loaded, call: CallId, **changes: object) -> None:
    record = loaded.journal.get(call, CallRecord(call=call))
    loaded.journal[call] = msgspec.structs.replace(record, **changes)


def _resolve(loaded: Loaded, event: PermissionResolved) -> None:
    request = loaded.requests.pop(event.permission, None)
    if request is None:
        return
    loaded.resolved[event.permission] = event
    _record(loaded, request.call, decision=event)
    if event.option != "allow_session":
        return
    for option in request.options:
        if option.id == event.option and option.rule is not None:
            loaded.rules.append(parse_rule(option.rule))
