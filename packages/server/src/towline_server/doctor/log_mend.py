"""A stored log as it should be: the same events, and notices where some are lost. Pure.

One fold does for both: a look notes what it would change, a repair writes what it gives.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import msgspec

from towline_protocol import (
    Envelope,
    Event,
    Fault,
    Notice,
    Private,
    PromptAdmitted,
    PromptId,
    PromptWithdrawn,
    SessionClosed,
    SessionCreated,
    SessionId,
    SessionUpdated,
    SessionView,
    TurnFailed,
    TurnId,
    Unknown,
    block_text,
    empty_view,
    encode,
    format_time,
    parse_time,
    reduce,
)
from towline_server.doctor.turn_law import LOST, TurnLaw
from towline_server.errors import StoreCorrupt
from towline_server.sessions.bulk import slim_event
from towline_server.sessions.open_part import close_parts
from towline_server.sessions.recovery import OPENING_CHARS, Piece, read_piece
from towline_server.store.records import SessionRow, StoredRow

__all__ = ["MAX_HOLE", "Flaw", "LogMend", "RawRow"]

MAX_HOLE: Final = 1000
"""Missing events that get a notice each; of a larger hole one notice tells."""

_SHOWN: Final = 5  # numbers that a sentence names
_LAST_MS: Final = 253_402_300_799_999  # the end of the year 9999: no later time can be written
_ROUNDS: Final = 4  # an event breaks the law in three ways at most, one after the other
_MODES: Final = frozenset({"ask", "auto", "accept_edits", "plan"})

_WHY_LOST: Final = "An event was lost here when the store was damaged."
_ENDED: Final = Fault(
    code="internal_error",
    message="Part of this turn was lost when the store was damaged, so it was ended. Look at what "
    "it has done, then send the prompt again.",
    reason=LOST,
)


class RawRow(NamedTuple):
    """A row of the events as it lies there, whatever it holds."""

    place: int
    """SQLite's own number of the row."""
    seq: Any
    """What should be its number."""
    turn: Any
    """What should be its turn."""
    time_ms: Any
    """What should be its time."""
    data: Any
    """What should be an envelope."""
    private: Any
    """What should be beside it."""


@dataclass
class Flaw:
    """One kind of thing that is wrong with a log."""

    count: int = 0
    """How often."""
    numbers: list[int] = field(default_factory=list[int])
    """The first few events that it concerns."""

    def note(self, seq: int, count: int = 1) -> None:
        """One more, or several from a number on."""
        self.count += count
        room = _SHOWN - len(self.numbers)
        self.numbers += range(seq, seq + min(count, max(0, room)))


class LogMend:
    """Goes through one session's log once.

    Args:
        session: Its id.
        row: Its row of the list, which may know what the log has lost; `None` when there is none.
        beginning: Its first event, if that is lost.
        keep: Told of each row that cannot stay, and why.
    """

    def __init__(
        self,
        session: SessionId,
        *,
        row: SessionRow | None,
        beginning: SessionCreated,
        keep: Callable[[RawRow, str], None] = lambda raw, reason: None,
    ) -> None:
        self.view: SessionView = empty_view()
        """What the mended log folds to."""
        self.opening = ""
        """The start of its first prompt's text."""
        self.uses: set[str] = set()
        """The files that its events name."""
        self.flaws: dict[str, Flaw] = {}
        """What was changed, by kind."""
        self.unknown = 0
        """Events of kinds that this version does not know; they stay as they are."""
        self._session = session
        self._row = row
        self._beginning = beginning
        self._keep = keep
        self._law = TurnLaw()
        self._doubted: set[PromptId] = set()
        self._time = format_time(0 if row is None else _sane(row.created_ms))

    def rows(self, raws: Iterable[RawRow]) -> Iterator[StoredRow]:
        """The mended log, numbered from 1 without a hole.

        Args:
            raws: What lies there, by number.
        """
        expected = 1
        for raw in raws:
            found = self._read(raw)
            if not isinstance(raw.seq, int) or raw.seq < expected or found == _MISPLACED:
                self._drop(raw, self.view.seq + 1, _MISPLACED)
                continue
            yield from self._fill(expected, raw.seq - 1)
            expected = raw.seq + 1
            if isinstance(found, str):
                self._drop(raw, raw.seq, found)
                yield from self._put_lost(raw.time_ms)
            else:
                yield from self._take(raw, found)
        last = 1 if self._row is None else self._row.last_seq
        yield from self._fill(expected, max(last, 1))
        yield from self._finish()

    def _read(self, raw: RawRow) -> Piece | str:
        """What a row holds, or why it cannot be said."""
        if not isinstance(raw.seq, int) or not isinstance(raw.data, bytes):
            return "it is not of the kind that was written"
        if raw.private is not None and not isinstance(raw.private, bytes):
            return "what is kept beside it is not of the kind that was written"
        row = StoredRow(raw.seq, raw.turn, raw.time_ms, raw.data, raw.private)
        try:
            piece = read_piece(row)
        except StoreCorrupt as error:
            return _MISPLACED if error.reason == "misplaced" else "it cannot be read"
        if piece.envelope.session != self._session:
            return _MISPLACED
        if piece.envelope.turn != raw.turn and piece.envelope.turn not in (None, self._law.turn):
            return "it does not say which turn it belongs to"
        return piece

    def _take(self, raw: RawRow, piece: Piece) -> Iterator[StoredRow]:
        envelope = piece.envelope
        for _ in range(_ROUNDS):
            match self._law.judge(envelope, self.view):
                case None:
                    break
                case "surplus":
                    self._drop(raw, raw.seq, "its turn or its call had ended before", "surplus")
                    yield from self._put_lost(raw.time_ms)
                    return
                case "unended":
                    self._note("unended", raw.seq)
                    yield from self._end_turn()
                case "headless":
                    self._note("headless", raw.seq)
                    yield from self._put_lost(raw.time_ms)
                case "open":
                    self._note("open", raw.seq)
                    for event in close_parts(self.view, _WHY_LOST):
                        yield self._put(event, self._law.turn)
        if not self.view.seq and not isinstance(envelope.event, SessionCreated):
            self._note("missing", 1)
            yield self._put(self._beginning)
        yield self._keep_event(raw, piece)

    def _keep_event(self, raw: RawRow, piece: Piece) -> StoredRow:
        """An event as it is, under the next number."""
        seq, turn = self.view.seq + 1, piece.envelope.turn
        data = raw.data
        if turn != raw.turn or not isinstance(raw.time_ms, int):
            self._note("columns", raw.seq)
        if seq != raw.seq:  # others had to be put in before it
            fields: dict[str, Any] = msgspec.json.decode(raw.data)
            data = encode({**fields, "seq": seq})
        self.unknown += isinstance(piece.envelope.event, Unknown)
        self._fold(msgspec.structs.replace(piece.envelope, seq=seq), piece.private)
        return StoredRow(seq, turn, parse_time(piece.envelope.time), data, raw.private)

    def _fill(self, first: int, last: int) -> Iterator[StoredRow]:
        """Notices for events that are not there."""
        count = last - first + 1
        if count <= 0:
            return
        self._note("missing", first, count)
        for _ in range(count if count <= MAX_HOLE else 1):
            yield from self._put_lost(None)

    def _put_lost(self, time_ms: object) -> Iterator[StoredRow]:
        """What stands in the place of an event that is lost."""
        if isinstance(time_ms, int) and 0 < time_ms <= _LAST_MS:
            self._time = format_time(time_ms)
        if not self.view.seq:
            yield self._put(self._beginning)
            return
        self._doubted |= {queued.prompt for queued in self.view.queue}
        yield self._put(Notice(code=LOST, message=_WHY_LOST, scope="session"))

    def _end_turn(self) -> Iterator[StoredRow]:
        """Close the open turn (C1.20, C1.23)."""
        turn = self._law.turn
        for event in close_parts(self.view, _WHY_LOST):
            yield self._put(event, turn)
        yield self._put(TurnFailed(fault=_ENDED, usage=self._law.usage), turn)

    def _finish(self) -> Iterator[StoredRow]:
        """What a log that lost something must not leave to a restart.

        A turn of which something is lost is not resumed: what it did is not known. A prompt that
        may have had its turn is not run. What people last set stands in the row of the list.
        """
        if self._law.turn is not None and self._law.doubtful:
            self._note("unended", self.view.seq)
            yield from self._end_turn()
        for queued in self.view.queue:
            if queued.prompt in self._doubted:
                self._note("doubted", self.view.seq)
                yield self._put(PromptWithdrawn(prompt=queued.prompt))
        if self._row is not None and self._law.lost:
            yield from self._put_settings(self._row)

    def _put_settings(self, row: SessionRow) -> Iterator[StoredRow]:
        view = self.view
        changes = SessionUpdated(
            title=_changed(row.title, view.title),
            model=_changed(row.model, view.model),
            mode=_changed(row.mode, view.mode) if row.mode in _MODES else None,
            archived=None if row.archived == view.archived else row.archived,
            labels=None if row.labels == view.labels else row.labels,
        )
        if changes != SessionUpdated():
            self._note("settings", view.seq)
            yield self._put(changes)
        if row.closed and view.closed is None:
            self._note("settings", view.seq)
            yield self._put(SessionClosed(reason=LOST))

    def _put(self, event: Event, turn: TurnId | None = None) -> StoredRow:
        """An event of our own, under the next number."""
        envelope = Envelope(
            seq=self.view.seq + 1, session=self._session, turn=turn, time=self._time, event=event
        )
        self._fold(envelope)
        return StoredRow(self.view.seq, turn, parse_time(self._time), encode(envelope))

    def _fold(self, envelope: Envelope, private: tuple[Private, ...] = ()) -> None:
        event = envelope.event
        self._law.take(envelope)
        self.view = reduce(self.view, envelope)
        self._time = envelope.time
        self.uses.update(slim_event(event, private).uses)
        if isinstance(event, PromptAdmitted) and not self.opening:
            self.opening = block_text(event.content)[:OPENING_CHARS]
        if isinstance(event, Notice) and event.code == LOST:
            self._doubted |= {queued.prompt for queued in self.view.queue}

    def _drop(self, raw: RawRow, seq: int, reason: str, kind: str = "unreadable") -> None:
        self._note(kind, seq)
        self._keep(raw, reason)

    def _note(self, kind: str, seq: int, count: int = 1) -> None:
        self.flaws.setdefault(kind, Flaw()).note(seq, count)


_MISPLACED: Final = "it does not belong at its place"


def _changed(wanted: str | None, stands: str | None) -> str | None:
    return wanted if wanted and wanted != stands else None


def _sane(time_ms: object) -> int:
    """A time that can be written; the beginning of 1970 for one that cannot."""
    return time_ms if isinstance(time_ms, int) and 0 <= time_ms <= _LAST_MS else 0
