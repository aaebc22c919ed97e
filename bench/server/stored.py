"""Stores that are full before anything is measured: one real turn, again and again."""

import asyncio
import re
import tempfile
from pathlib import Path
from typing import Final

import msgspec

from towline_agent import mint_now
from towline_agent.testing import ScriptedProvider
from towline_protocol import Envelope, SessionId, decode_envelope, encode
from towline_server import OWNER
from towline_server.store.event_store import append_and_wait
from towline_server.store.records import Append, SessionRow, StoredRow
from towline_server.store.sqlite_store import open_store
from towline_server.testing import AppClient, open_test_app

__all__ = ["TEXT_BYTES", "fill"]

_PROMPT: Final = "Please look at it once more, and tell me what you see. " * 4
_ANSWER: Final = "It is much as it was before, apart from what has changed since. " * 8
TEXT_BYTES: Final = len(_PROMPT) + len(_ANSWER)
"""What is said in a turn of two messages."""
_ID: Final = re.compile(rb'"((?!ses_)[a-z]+_[0-9a-z]{26})"')  # no event's type is as long
_AT_ONCE: Final = 200  # sessions on their way into the store


async def _play_turn() -> list[Envelope]:
    """The events of a session with one turn, the first one its making."""
    with tempfile.TemporaryDirectory() as folder:
        provider = ScriptedProvider(_ANSWER)
        async with open_test_app(provider, root=Path(folder)) as built:
            client = AppClient(built)
            session = await client.create()
            await client.prompt(session, _PROMPT)
            await client.until(session, lambda view: view.last_turn is not None)
            return await client.log(session)


def _grow(played: list[Envelope], session: SessionId, events: int) -> tuple[StoredRow, ...]:
    """A log of so many events, or as many whole turns as make fewer."""
    turn = [encode(envelope) for envelope in played[1:]]
    rows = [_row(encode(played[0]), session, 1)]
    number = 0
    while len(rows) + len(turn) <= events:
        number += 1
        other = rb'"\g<1>x%d"' % number
        rows += [
            _row(_ID.sub(other, data), session, len(rows) + place + 1)
            for place, data in enumerate(turn)
        ]
    return tuple(rows)


def _row(data: bytes, session: SessionId, seq: int) -> StoredRow:
    envelope = decode_envelope(data)
    assert isinstance(envelope, Envelope)
    envelope = msgspec.structs.replace(envelope, seq=seq, session=session)
    return StoredRow(seq, envelope.turn, seq, encode(envelope))


async def _fill(folder: Path, sessions: int, events: int | None, turns: int) -> list[int]:
    played = await _play_turn()
    store = await open_store(folder, mint=mint_now)
    model = ScriptedProvider().model.name
    lasts: list[int] = []
    try:
        for first in range(0, sessions, _AT_ONCE):
            appends: list[Append] = []
            for number in range(first, min(sessions, first + _AT_ONCE)):
                session = SessionId(f"ses_{number}")
                rows = _grow(played, session, events or 1 + turns * (len(played) - 1))
                summary = SessionRow(
                    id=session, user=OWNER, agent="assistant", model=model, mode="auto",
                    created_ms=number, updated_ms=number, said_seq=len(rows),
                )  # fmt: skip
                lasts.append(len(rows))
                appends.append(Append(session=session, first_seq=1, rows=rows, summary=summary))
            await asyncio.gather(*[append_and_wait(store, append) for append in appends])
    finally:
        await store.close()
    return lasts


def fill(folder: Path, sessions: int, *, events: int | None = None, turns: int = 1) -> list[int]:
    """Make a store with sessions `ses_0`, `ses_1` …

    Args:
        folder: The data folder.
        sessions: How many.
        events: How many events each has at most; left out, as many as the turns make.
        turns: How many turns each has.

    Returns:
        The number of the last event of each.
    """
    return asyncio.run(_fill(folder, sessions, events, turns))
