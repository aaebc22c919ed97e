"""What a log says: the state of a session, and where a crash cut its turn (C5.4 to C5.6). Pure."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import msgspec

from towline_agent import EXACT, CallRecord, Rule, Spent, Start, exact_rule, parse_rule
from towline_protocol import (
    Broken,
    CallId,
    CommandArtifact,
    Compacted,
    Envelope,
    Event,
    FilesReverted,
    Limits,
    MessageId,
    Notice,
    PermissionId,
    PermissionRequested,
    PermissionResolved,
    Private,
    Process,
    PromptAdmitted,
    PromptDelivered,
    PromptId,
    PromptWithdrawn,
    QuestionAsked,
    QuestionId,
    QuestionResolved,
    Reverted,
    SessionClosed,
    SessionCreated,
    SessionId,
    SessionView,
    StepEnded,
    StepStarted,
    ToolEnded,
    ToolProposed,
    ToolStarted,
    Transcript,
    TurnCancelled,
    TurnCompleted,
    TurnFailed,
    TurnId,
    TurnStarted,
    Usage,
    block_text,
    decode_envelope,
    empty_view,
    parse_time,
    reduce,
)
from towline_server.auth.reserved_name import SERVER
from towline_server.errors import StoreCorrupt
from towline_server.sessions.meter import Meter
from towline_server.sessions.offer import ClientState
from towline_server.store.failures import MEND
from towline_server.store.records import StoredRow

__all__ = [
    "JOBS_KEPT",
    "MAX_ATTEMPTS",
    "OPENING_CHARS",
    "ORPHANED",
    "Loaded",
    "Piece",
    "load",
    "read_piece",
    "take",
]

OPENING_CHARS: Final = 1000
"""Characters of the first prompt by which a session is found."""
JOBS_KEPT: Final = 256
"""Jobs of a session that are looked for after a crash; a few of the last ones ran at most."""
MAX_ATTEMPTS: Final = 3
"""How often a turn is resumed before it fails (C5.4)."""
ORPHANED: Final = "nobody was attached any more"
"""Why the server stops a turn that nobody watches (C5.13)."""

_private: Final = msgspec.json.Decoder(tuple[Private, ...])


class Piece(NamedTuple):
    """One event of a log, with what is kept beside it."""

    envelope: Envelope
    """The event."""
    private: tuple[Private, ...] = ()
    """What only a provider needs."""


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
    questions: dict[QuestionId, QuestionAsked] = field(
        default_factory=dict[QuestionId, QuestionAsked]
    )
    """The open questions, the newest form of each."""
    answered: dict[QuestionId, QuestionResolved] = field(
        default_factory=dict[QuestionId, QuestionResolved]
    )
    """Every answer to a question."""
    clients: ClientState = field(default_factory=ClientState)
    """What clients can run, and what they are running."""
    journal: dict[CallId, CallRecord] = field(default_factory=dict[CallId, CallRecord])
    """What the open turn's calls came to."""
    processes: dict[CallId, Process] = field(default_factory=dict[CallId, Process])
    """Programs that were running when the log ends."""
    children: dict[CallId, SessionId] = field(default_factory=dict[CallId, SessionId])
    """The sub-agents' sessions that work for open calls (D5)."""
    jobs: dict[CallId, Process] = field(default_factory=dict[CallId, Process])
    """Programs that ran on when their calls ended (A5.20), the last `JOBS_KEPT`; whether they have
    ended, no event tells."""
    spent: Spent = field(default_factory=Spent)
    """What the open turn has used."""
    meter: Meter = field(default_factory=Meter)
    """What it has told of that."""
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
    own_limits: Limits | None = None
    """The bounds of turns that name none, as the session was made with."""
    opening: str = ""
    """The start of its first prompt's text: it is found by these words."""
    delivered: set[PromptId] = field(default_factory=set[PromptId])
    """Prompts that reached a turn."""
    withdrawn: set[PromptId] = field(default_factory=set[PromptId])
    """Prompts that were taken back."""
    turns: dict[TurnId, int] = field(default_factory=dict[TurnId, int])
    """Every turn that was begun, with the number of the event that brought its prompt."""
    undone: list[range] = field(default_factory=list[range])
    """The numbers of the events that the conversation went back behind."""
    reverts: list[FilesReverted] = field(default_factory=list[FilesReverted])
    """What was put back since the last turn ended."""
    tidying: bool = False
    """Whether a summary was asked for outside of a turn, and nothing has told what came of it."""
    held: bool = False
    """Whether somebody stopped a turn and has said nothing since: what waits is held (C2.11)."""

    @property
    def open_messages(self) -> tuple[MessageId, ...]:
        """Messages that a crash left half written."""
        return tuple(message.id for message in self.view.open_messages)

    @property
    def only_waits(self) -> bool:
        """Whether the open turn did nothing but wait for a person when its server ended.

        Such an end is no attempt that failed: a question outlives any number of upgrades (S20).
        """
        asked = len(self.view.questions)
        if not asked and not self.view.permissions:
            return False
        # the tool that asks has started itself, and nothing else may have; a sub-agent's session
        # knows by itself whether it only waits
        running = sum(
            record.started for call, record in self.journal.items() if call not in self.children
        )
        return running <= asked and not self.view.open_messages

    def start(self, now_ms: int) -> Start | None:
        """How to resume the open turn; `None` when no turn is open."""
        turn = self.view.turn
        if turn is None:
            return None
        return Start(
            turn=turn.id,
            prompt=turn.prompt,
            attempt=max(1, turn.attempt if self.only_waits else turn.attempt + 1),
            journal=dict(self.journal),
            spent=self.spent,
            elapsed_s=max(0.0, (now_ms - parse_time(turn.started)) / 1000),
            stop_reason=self.stop_reason,
            speak=self.turn_speaks,
        )


def load(rows: Iterable[StoredRow], loaded: Loaded | None = None) -> Loaded:
    """Fold a log, or its next page.

    Args:
        rows: Its events, in order.
        loaded: What the pages before came to, which is changed; `None` for the first one.

    Raises:
        StoreCorrupt: A row is no event, or a number is missing.
    """
    loaded = loaded or Loaded()
    for row in rows:
        take(loaded, *read_piece(row))
        if loaded.view.lost:
            raise _corrupt(f"The log has a hole before event {row.seq!r}", "hole")
    return loaded


def read_piece(row: StoredRow) -> Piece:
    """A row as the event it holds.

    Raises:
        StoreCorrupt: It is none.
    """
    envelope = decode_envelope(row.data)
    if isinstance(envelope, Broken):
        raise _corrupt(
            f"Event {row.seq!r} of the log cannot be read ({envelope.reason})", "unreadable"
        )
    if envelope.seq != row.seq:
        raise _corrupt(f"Event {row.seq!r} of the log says that it is another one", "misplaced")
    try:
        parse_time(envelope.time)
    except (ValueError, OverflowError) as error:
        raise _corrupt(
            f"Event {row.seq!r} of the log has no time that can be read", "unreadable"
        ) from error
    return Piece(envelope) if row.private is None else Piece(envelope, _decode_private(row))


def _decode_private(row: StoredRow) -> tuple[Private, ...]:
    try:
        return _private.decode(row.private or b"")
    except (msgspec.DecodeError, UnicodeError) as error:
        raise _corrupt(
            f"What is kept beside event {row.seq!r} of the log cannot be read", "unreadable"
        ) from error


def _corrupt(what: str, reason: str) -> StoreCorrupt:
    return StoreCorrupt(f"{what}; {MEND}", reason=reason)


def take(loaded: Loaded, envelope: Envelope, private: tuple[Private, ...]) -> None:
    """Fold one stored event into the state."""
    event = envelope.event
    loaded.view = reduce(loaded.view, envelope)
    loaded.transcript.add(event, private, envelope.turn)
    loaded.meter.take(event)
    loaded.clients.take(event)
    for fold in _FOLDS.get(type(event), ()):
        fold(loaded, event)
    if type(event) in _PLACED:
        _fold_tidying(loaded, envelope)
        _fold_undone(loaded, event, envelope.seq or 0)


def _fold_tidying(loaded: Loaded, envelope: Envelope) -> None:
    """Whether a summary that was asked for outside of a turn is still due; and whose jobs are."""
    match envelope.event:
        case Notice(code="compacting") if envelope.turn is None:
            loaded.tidying = True
        case Compacted() | Notice(code="not_compacted") | SessionClosed():
            loaded.tidying = False
        case Notice(code="forked"):
            loaded.jobs.clear()  # what was copied runs for another session
        case _:
            pass


def _fold_prompt(loaded: Loaded, event: Event) -> None:
    """What was said, and where it went."""
    match event:
        case SessionCreated():
            loaded.own_limits = event.limits
        case PromptAdmitted() if not loaded.opening:
            loaded.opening = block_text(event.content)[:OPENING_CHARS]
        case PromptDelivered():
            loaded.delivered.add(event.prompt)
        case PromptWithdrawn():
            loaded.withdrawn.add(event.prompt)
            loaded.limits.pop(event.prompt, None)
            loaded.speaks.discard(event.prompt)
        case _:
            pass


def _fold_undone(loaded: Loaded, event: Event, seq: int) -> None:
    """Where turns begin, and what was undone."""
    if type(event) is PromptDelivered:
        loaded.turns.setdefault(event.turn, seq)
    elif type(event) is Reverted and event.to_turn in loaded.turns:
        first = loaded.turns[event.to_turn]
        if not any(first in undone for undone in loaded.undone):
            loaded.undone.append(range(first, seq))


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
            loaded.children.clear()
            loaded.spent = Spent()
            loaded.stop_reason = ""
            loaded.held = False
        case TurnCancelled():
            # The server's own end is nobody's wish; but what nobody watches shall not go on.
            loaded.held = event.by != SERVER or event.reason == ORPHANED
        case StepStarted():
            loaded.spent.steps += event.attempt == 1
            if event.failed is not None:
                loaded.spent.add(event.failed, event.failed_cost)
        case Compacted(usage=Usage() as usage):
            loaded.spent.add(usage, event.cost)
        case StepEnded():
            loaded.spent.add(event.usage, event.cost)
            loaded.stop_reason = event.stop_reason
        case _:
            pass


def _fold_reverts(loaded: Loaded, event: Event) -> None:
    """What the next turn is to be reminded of."""
    if isinstance(event, FilesReverted):
        loaded.reverts.append(event)
    else:
        loaded.reverts.clear()


def _fold_call(loaded: Loaded, event: Event) -> None:
    """What the open turn's calls came to, and what was asked of people."""
    match event:
        case PermissionRequested():
            loaded.requests[event.permission] = event
            _record(loaded, event.call, request=event)
        case PermissionResolved():
            _resolve(loaded, event)
        case QuestionAsked():
            loaded.questions[event.question] = event
        case QuestionResolved():
            loaded.questions.pop(event.question, None)
            loaded.answered[event.question] = event
        case ToolProposed():
            _record(loaded, event.call, proposed=True)
        case ToolStarted():
            _record(loaded, event.call, started=True)
            if event.process is not None:
                loaded.processes[event.call] = event.process
            if event.child is not None:
                loaded.children[event.call] = event.child
        case ToolEnded():
            _fold_call_end(loaded, event)
        case _:
            pass


def _fold_call_end(loaded: Loaded, event: ToolEnded) -> None:
    loaded.journal.pop(event.call, None)
    loaded.children.pop(event.call, None)
    _keep_job(loaded, event, loaded.processes.pop(event.call, None))
    if event.usage is not None:
        loaded.spent.add(event.usage, event.cost)


def _keep_job(loaded: Loaded, event: ToolEnded, process: Process | None) -> None:
    jobs = (found.job for found in event.artifacts if isinstance(found, CommandArtifact))
    if process is not None and any(jobs):
        loaded.jobs[event.call] = process
        if len(loaded.jobs) > JOBS_KEPT:
            del loaded.jobs[next(iter(loaded.jobs))]


def _record(loaded: Loaded, call: CallId, **changes: object) -> None:
    record = loaded.journal.get(call, CallRecord(call=call))
    loaded.journal[call] = msgspec.structs.replace(record, **changes)


def _resolve(loaded: Loaded, event: PermissionResolved) -> None:
    request = loaded.requests.pop(event.permission, None)
    if request is None:
        return
    loaded.resolved[event.permission] = event
    _record(loaded, request.call, decision=event)
    if event.option not in ("allow_session", "allow_always"):
        return
    for option in request.options:
        if option.id == event.option and option.rule is not None:
            loaded.rules.append(_stored_rule(option.rule))


def _stored_rule(text: str) -> Rule:
    """The rule of an answer: it names what was seen, in old logs without the sign for that."""
    rule = parse_rule(text)
    if rule.pattern is None or rule.pattern.startswith(EXACT):
        return rule
    return exact_rule(rule.action, rule.tool, rule.pattern)


_PLACED: Final = frozenset({Compacted, Notice, PromptDelivered, Reverted, SessionClosed})
"""Events of which it counts where they stand."""

# Looked up, since a `match` costs most where it finds nothing: with most events of a long log.
_FOLDS: Final[dict[type, tuple[Callable[[Loaded, Any], None], ...]]] = {
    SessionCreated: (_fold_prompt,),
    PromptAdmitted: (_fold_turn, _fold_prompt),
    PromptDelivered: (_fold_prompt,),
    PromptWithdrawn: (_fold_prompt,),
    TurnStarted: (_fold_turn,),
    TurnCancelled: (_fold_turn, _fold_reverts),
    TurnCompleted: (_fold_reverts,),
    TurnFailed: (_fold_reverts,),
    FilesReverted: (_fold_reverts,),
    StepStarted: (_fold_turn,),
    Compacted: (_fold_turn,),
    StepEnded: (_fold_turn,),
    PermissionRequested: (_fold_call,),
    PermissionResolved: (_fold_call,),
    QuestionAsked: (_fold_call,),
    QuestionResolved: (_fold_call,),
    ToolProposed: (_fold_call,),
    ToolStarted: (_fold_call,),
    ToolEnded: (_fold_call,),
}
