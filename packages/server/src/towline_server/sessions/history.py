"""Older messages of a session, in pages that never part a call from its result (C4.3)."""

from collections.abc import Sequence
from typing import Final

import msgspec

from towline_protocol import (
    Envelope,
    History,
    MessageEnded,
    MessageView,
    PromptAdmitted,
    PromptDelivered,
    PromptId,
    SessionId,
    SessionView,
    StepStarted,
    TurnStarted,
    empty_view,
    reduce,
)
from towline_server.sessions.recovery import read_piece
from towline_server.store.event_store import PAGE_ROWS, EventStore

__all__ = ["read_history"]

_SAFE: Final = (TurnStarted, StepStarted)
"""Where a page may begin: all calls before have ended."""
_SAID: Final = (PromptDelivered, MessageEnded)


async def read_history(
    store: EventStore,
    session: SessionId,
    *,
    before: int,
    limit: int,
    undone: Sequence[range] = (),
) -> History:
    """The messages right before an event, folded as a view folds them.

    A page holds `limit` messages or a few more: it begins where a step begins.

    Args:
        store: Keeps the log.
        session: The session.
        before: The number of the first message that the reader has.
        limit: How many messages to look for.
        undone: The numbers of all events that a revert undid, also one that came after the page.

    Raises:
        StoreError: The log cannot be read.
    """
    events: list[Envelope] = []
    first = before
    start: int | None = None
    while first > 1 and (start is None or _missing(events[start:], events)):
        low = max(1, first - PAGE_ROWS)
        events = await _read(store, session, low, first - 1) + events
        first = low
        start = _page_start(events, limit)
    page = events if start is None else events[start:]
    view = _fold(page, _missing(page, page), events)
    return History(
        messages=tuple([_marked(entry, undone) for entry in view.messages]),
        calls=(*view.calls, *view.open_calls),
        next=page[0].seq if page and (page[0].seq or 1) > 1 else None,
    )


def _marked(entry: MessageView, undone: Sequence[range]) -> MessageView:
    if entry.undone or not any(entry.seq in numbers for numbers in undone):
        return entry
    return msgspec.structs.replace(entry, undone=True)


async def _read(store: EventStore, session: SessionId, first: int, last: int) -> list[Envelope]:
    """The events from one number to another, both included."""
    found: list[Envelope] = []
    while first <= last:
        rows = await store.read(session, after=first - 1, upto=last)
        found.extend(read_piece(row).envelope for row in rows)
        if not rows:
            break
        first = rows[-1].seq + 1
    return found


def _page_start(events: Sequence[Envelope], limit: int) -> int | None:
    """Where the page begins; `None` when these events are too few to tell."""
    said = 0
    for place in range(len(events) - 1, -1, -1):
        said += isinstance(events[place].event, _SAID)
        if said >= limit and isinstance(events[place].event, _SAFE):
            return place
    return None


def _missing(page: Sequence[Envelope], known: Sequence[Envelope]) -> set[PromptId]:
    """Prompts that the page delivers and that nothing known admits."""
    delivered = {e.event.prompt for e in page if isinstance(e.event, PromptDelivered)}
    return delivered - {e.event.prompt for e in known if isinstance(e.event, PromptAdmitted)}


def _fold(
    page: Sequence[Envelope], waited: set[PromptId], known: Sequence[Envelope]
) -> SessionView:
    """The page as a view; prompts that waited since before it are put in line first."""
    view = empty_view()
    admitted = [
        envelope
        for envelope in known
        if isinstance(envelope.event, PromptAdmitted) and envelope.event.prompt in waited
    ]
    for place, envelope in enumerate(admitted, 1):
        view = reduce(view, msgspec.structs.replace(envelope, seq=place))
    if page:
        view = msgspec.structs.replace(view, seq=(page[0].seq or 1) - 1)
    for envelope in page:
        view = reduce(view, envelope)
    return view
