"""What was used: counted with the events that tell of it, and read out of stores from before."""

import sqlite3
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from towline_protocol import (
    CallId,
    Compacted,
    Envelope,
    Event,
    Fault,
    Limits,
    PromptId,
    SessionId,
    StepEnded,
    StepStarted,
    TurnCancelled,
    TurnCompleted,
    TurnFailed,
    TurnId,
    TurnStarted,
    Usage,
    encode,
    format_time,
)
from towline_server.errors import StoreError
from towline_server.sessions.meter import Meter
from towline_server.store import usage
from towline_server.store.event_store import append_and_wait
from towline_server.store.log import apply_append
from towline_server.store.migration import migrate
from towline_server.store.records import Append, SessionRow, StoredRow, UsageCount
from towline_server.store.sqlite_store import SqliteStore
from towline_server.store.statements import load_migrations, load_statements, split_script

Build = Callable[..., Append]

DAY_MS = 24 * 3600 * 1000
START_MS = 1_800_000_000_000  # 2027-01-15, 08:00


def count(
    day: str = "2027-01-15",
    model: str = "a/one",
    user: str = "me",
    cost: float | None = 0.5,
    tokens: int = 10,
) -> UsageCount:
    return UsageCount(user=user, day=day, model=model, cost=cost, usage=Usage(input=tokens))


def rows(connection: sqlite3.Connection) -> list[tuple[object, ...]]:
    found = connection.execute("SELECT * FROM usage ORDER BY user, day, session, model")
    return [(*row[:-1], pytest.approx(row[-1])) for row in found]


async def test_what_is_used_is_summed_by_day_model_and_session(
    memory: SqliteStore, build: Build
) -> None:
    def work(connection: sqlite3.Connection) -> None:
        usage.add(connection, "ses_1", [count(), count(), count(model="b/two", cost=2.0)])
        usage.add(connection, "ses_2", [count(day="2027-01-16", cost=None, tokens=7)])
        usage.add(connection, "ses_3", [count(user="you", cost=9.0)])

    await append_and_wait(memory, build(title="Cats"))
    await memory.write(work)

    async def by(name: str, first: str = "2027-01-15", last: str = "2027-01-16") -> list[object]:
        found, _ = await memory.query(lambda c: usage.report(c, "me", first, last, name))
        return [(row.name, row.title, row.requests, row.cost, row.unpriced) for row in found]

    assert await by("day") == [("2027-01-16", None, 1, None, 1), ("2027-01-15", None, 3, 3.0, 0)]
    assert await by("model") == [("b/two", None, 1, 2.0, 0), ("a/one", None, 3, 1.0, 1)]
    assert await by("session") == [("ses_1", "Cats", 3, 3.0, 0), ("ses_2", None, 1, None, 1)]
    assert await by("day", last="2027-01-15") == [("2027-01-15", None, 3, 3.0, 0)]
    assert await by("day", first="2028-01-01", last="2028-01-02") == []
    _, total = await memory.query(
        lambda c: usage.report(c, "me", "2027-01-15", "2027-01-16", "day")
    )
    assert (total.requests, total.usage, total.cost, total.unpriced) == (4, Usage(input=37), 3.0, 1)
    assert await memory.query(lambda c: usage.cost_of_day(c, "me", "2027-01-15")) == 3.0
    assert await memory.query(lambda c: usage.cost_of_day(c, "me", "2027-01-17")) == 0.0


async def test_a_piece_that_is_refused_counts_nothing(memory: SqliteStore, build: Build) -> None:
    await append_and_wait(memory, build(count=2))
    stale = Append(
        session=SessionId("ses_1"),
        first_seq=2,
        rows=(StoredRow(2, None, 1, b"{}"),),
        usage=(count(),),
    )
    with pytest.raises(StoreError, match="load the session again"):
        await append_and_wait(memory, stale)
    assert await memory.query(rows) == []


def test_every_statement_can_be_prepared() -> None:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    migrate(connection)
    for statement in load_statements("usage").values():
        values = [0] * statement.count("?")
        assert connection.execute(f"EXPLAIN {statement}", values).fetchall()


# a store from before

tokens = st.integers(0, 50)
used = st.builds(Usage, input=tokens, output=tokens, cache_read=tokens, cache_write=tokens)
costs = st.none() | st.floats(0, 2, allow_nan=False)
models = st.sampled_from(["a/one", "b/two"])


@st.composite
def turns(draw: st.DrawFn) -> list[Event]:
    """The events of one turn that tell of what it used."""
    events: list[Event] = [
        TurnStarted(prompt=PromptId("pmt_1"), model=draw(models), limits=Limits())
    ]
    spent, cost = Usage(), 0.0
    for _ in range(draw(st.integers(0, 3))):
        step = StepEnded(stop_reason="end_turn", usage=draw(used), cost=draw(costs))
        events += [StepStarted(model=draw(models)), step]
        spent += step.usage
        cost = None if cost is None or step.cost is None else cost + step.cost
    if draw(st.booleans()):
        spent += draw(used)
        beside = draw(costs)
        cost = None if cost is None or beside is None else cost + beside
    end = draw(st.sampled_from(["completed", "failed", "cancelled", "open"]))
    match end:
        case "completed":
            events.append(TurnCompleted(stop_reason="end_turn", usage=spent, cost=cost))
        case "failed":
            events.append(TurnFailed(fault=Fault(code="x", message="No."), usage=spent))
        case "cancelled":
            events.append(TurnCancelled(by="me", reason="enough", usage=spent))
        case _:
            pass
    return events


class Store:
    """A store in memory, written as sessions write it."""

    def __init__(self) -> None:
        self.connection = sqlite3.connect(":memory:", isolation_level=None)
        migrate(self.connection)

    def write(self, session: str, log: list[list[Event]]) -> None:
        """The turns of one session, one a day."""
        meter, seq = Meter(), 0
        for number, turn in enumerate(log):
            for event in turn:
                seq += 1
                time_ms = START_MS + number * DAY_MS
                found = meter.count(event)
                meter.take(event)
                envelope = Envelope(
                    seq=seq,
                    session=SessionId(session),
                    turn=TurnId(f"trn_{number}"),
                    time=format_time(time_ms),
                    event=event,
                )
                day = format_time(time_ms)[:10]
                counted = () if found is None else (found,)
                self._append(
                    Append(
                        session=SessionId(session),
                        first_seq=seq,
                        rows=(StoredRow(seq, envelope.turn, time_ms, encode(envelope)),),
                        summary=_summary(session),
                        usage=tuple(
                            UsageCount(user="me", day=day, **one._asdict()) for one in counted
                        ),
                    )
                )

    def _append(self, batch: Append) -> None:
        apply_append(self.connection, batch)

    def fill(self) -> None:
        """Make the table anew out of the logs, as the first start after the update does."""
        self.connection.execute("DROP TABLE usage")
        script = next(sql for _, name, sql in load_migrations() if name == "usage")
        for statement in split_script(script):
            self.connection.execute(statement)


def _summary(session: str) -> SessionRow:
    return SessionRow(
        id=SessionId(session),
        user="me",
        agent="main",
        model="a/one",
        mode="ask",
        created_ms=START_MS,
        updated_ms=START_MS,
    )


@settings(max_examples=60, deadline=None)
@given(logs=st.lists(st.lists(turns(), min_size=1, max_size=3), min_size=1, max_size=2))
def test_a_store_from_before_is_filled_with_what_would_have_been_counted(
    logs: list[list[list[Event]]],
) -> None:
    store = Store()
    for number, log in enumerate(logs):
        store.write(f"ses_{number}", log)
    counted = rows(store.connection)
    store.fill()
    assert rows(store.connection) == counted


@pytest.mark.rules("A4.48", "A4.49")
def test_what_a_turn_used_beside_its_answers_is_counted_at_its_end() -> None:
    store = Store()
    step = StepEnded(stop_reason="end_turn", usage=Usage(input=10, output=5), cost=0.25)
    begin = [
        TurnStarted(prompt=PromptId("pmt_1"), model="a/one", limits=Limits()),
        StepStarted(model="b/two"),
        step,
    ]
    whole = Usage(input=110, output=8)
    ends: list[Event] = [
        TurnCompleted(stop_reason="end_turn", usage=whole, cost=0.75),
        TurnCancelled(by="me", reason="enough", usage=whole),
        TurnCompleted(stop_reason="end_turn", usage=step.usage, cost=0.25),
        TurnCompleted(stop_reason="end_turn", usage=step.usage),  # something had no price
    ]
    store.write("ses_1", [[*begin, end] for end in ends])
    found, _ = usage.report(store.connection, "me", "2027-01-15", "2027-01-18", "day")
    assert [(row.requests, row.usage.input, row.cost, row.unpriced) for row in found] == [
        (2, 10, 0.25, 1),
        (1, 10, 0.25, 0),
        (2, 110, 0.25, 1),
        (2, 110, 0.75, 0),
    ]


@pytest.mark.rules("A4.48")
def test_a_summary_is_counted_with_its_event_and_not_again_at_the_end_of_its_turn() -> None:
    store = Store()
    spent = Usage(input=100)
    summed = Compacted(
        before_tokens=9, after_tokens=1, summary="x", model="b/two", usage=spent, cost=0.5
    )
    begin = TurnStarted(prompt=PromptId("pmt_1"), model="a/one", limits=Limits())
    cut = Compacted(before_tokens=9, after_tokens=1, cut=(CallId("call_1"),))
    step = StepEnded(stop_reason="end_turn", usage=Usage(input=10), cost=0.25)
    end = TurnCompleted(stop_reason="end_turn", usage=Usage(input=110), cost=0.75)
    store.write("ses_1", [[begin, summed, cut, step, end], [summed]])  # the last one by hand
    found, _ = usage.report(store.connection, "me", "2027-01-15", "2027-01-18", "model")
    assert [(row.name, row.requests, row.cost) for row in found] == [
        ("b/two", 2, 1.0),
        ("a/one", 1, 0.25),
    ]


def test_rows_that_are_no_events_stop_no_update() -> None:
    store = Store()
    store.write("ses_1", [[TurnStarted(prompt=PromptId("p"), model="a/one", limits=Limits())]])
    broken = b'{"event":{"type":"step_ended","usage":{"input":3}'
    store.connection.execute(
        "INSERT INTO events (session, seq, turn, time_ms, data) VALUES ('ses_1', 9, NULL, 1, ?)",
        (broken,),
    )
    store.fill()
    assert rows(store.connection) == []
