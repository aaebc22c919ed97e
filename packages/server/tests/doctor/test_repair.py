"""Each kind of damage: it is found and said, mended once, and the sessions go on."""

import contextlib
import os
import random
import sqlite3
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from towline_agent import mint_now
from towline_protocol import Broken, Notice, SessionId, SessionView, decode_envelope
from towline_server.doctor.finding import Finding
from towline_server.doctor.repair import Repaired, repair_store
from towline_server.doctor.turn_law import LOST
from towline_server.errors import StoreLocked
from towline_server.store import tombstones
from towline_server.store.lineage import NOTE_FILE
from towline_server.store.lock import take_lock
from towline_server.store.sqlite_store import STORE_FILE, open_store

pytestmark = pytest.mark.wide

NOW_MS = 4_000_000_000_000

Damage = Callable[..., None]
Examine = Callable[[], list[Finding]]
Serve = Callable[[], Awaitable[dict[SessionId, SessionView]]]

LONG = "(SELECT session FROM events WHERE instr(data, 'look at this'))"
WAITING = "(SELECT id FROM sessions WHERE pending > 0)"


def _event(kind: str, session: str = LONG) -> str:
    """The first event of a kind in a session, as a condition."""
    tag = f'\'"type":"{kind}"\''
    return (
        f"session = {session} AND seq = "
        f"(SELECT min(seq) FROM events WHERE session = {session} AND instr(data, {tag}))"
    )


def _repair(folder: Path) -> Repaired:
    return repair_store(folder, now_ms=NOW_MS, mint=mint_now)


def _query(folder: Path, statement: str, *values: object) -> list[tuple[object, ...]]:
    with contextlib.closing(sqlite3.connect(folder / STORE_FILE)) as connection:
        return connection.execute(statement, values).fetchall()


def _notices(folder: Path) -> int:
    rows = _query(folder, "SELECT data FROM events")
    events = [decode_envelope(row[0]) for row in rows if isinstance(row[0], bytes)]
    told = [one.event for one in events if not isinstance(one, Broken)]
    return sum(isinstance(one, Notice) and one.code == LOST for one in told)


def test_a_store_that_is_whole_is_found_so_and_left_as_it_is(
    folder: Path, examine: Examine
) -> None:
    assert examine() == []
    before = (folder / STORE_FILE).read_bytes()
    repaired = _repair(folder)
    assert repaired == Repaired()
    assert (folder / STORE_FILE).read_bytes() == before
    assert not list(folder.glob(f"{STORE_FILE}.*"))


KINDS = [
    "session_created", "prompt_admitted", "turn_started", "prompt_delivered", "step_started",
    "message_started", "message_ended", "step_ended", "tool_proposed", "tool_started",
    "tool_ended", "turn_completed",
]  # fmt: skip


@pytest.mark.rules("C1.3", "C1.20", "C1.23", "C5.7", "R47")
@pytest.mark.parametrize("how", ["cut", "gone", "emptied", "zeros", "not bytes", "moved"])
@pytest.mark.parametrize("kind", KINDS)
async def test_an_event_that_is_lost_gets_a_notice_and_its_session_goes_on(
    folder: Path, damage: Damage, examine: Examine, serve: Serve, kind: str, how: str
) -> None:
    where = _event(kind)
    total = _query(folder, f"SELECT count(*) FROM events WHERE session = {LONG}")[0][0]
    session = str(_query(folder, f"SELECT {LONG}")[0][0])
    log = (folder / NOTE_FILE).read_text()
    damage(
        {
            "cut": f"UPDATE events SET data = substr(data, 1, length(data) / 2) WHERE {where}",
            "gone": f"DELETE FROM events WHERE {where}",
            "zeros": f"UPDATE events SET data = zeroblob(300) WHERE {where}",
            "emptied": f"UPDATE events SET data = x'' WHERE {where}",
            "not bytes": f"UPDATE events SET data = 17 WHERE {where}",
            "moved": f"UPDATE events SET seq = 5000 WHERE {where}",
        }[how]
    )
    if kind == "prompt_admitted":
        session = _query(folder, "SELECT id FROM sessions WHERE title = 'look at this'")[0][0]
    found = examine()
    assert {(one.level, one.check, one.session) for one in found} == {("fault", "log", session)}
    repaired = _repair(folder)
    assert repaired.left == ()
    assert repaired.new_log
    assert repaired.copy is not None
    assert repaired.copy.stat().st_mode & 0o777 == 0o600
    assert (folder / NOTE_FILE).read_text() != log
    assert examine() == []
    rows = _query(folder, "SELECT seq FROM events WHERE session = ? ORDER BY seq", session)
    assert [row[0] for row in rows] == list(range(1, len(rows) + 1))
    assert isinstance(total, int)
    assert len(rows) >= total
    apart = _query(folder, "SELECT data FROM quarantine")
    assert len(apart) == (0 if how == "gone" else 1)
    assert _notices(folder) == (0 if kind == "session_created" else 1)
    views = await serve()
    assert len(views) == 3
    assert views[SessionId(str(session))].title == "look at this"
    assert examine() == []


@pytest.mark.rules("C5.5", "C5.7")
@pytest.mark.parametrize(
    "kind", ["prompt_admitted", "turn_started", "tool_proposed", "permission_requested"]
)
async def test_an_open_turn_that_lost_something_is_ended_and_not_taken_up_again(
    folder: Path, damage: Damage, examine: Examine, serve: Serve, kind: str
) -> None:
    session = SessionId(str(_query(folder, f"SELECT {WAITING}")[0][0]))
    damage(f"UPDATE events SET data = x'00' WHERE {_event(kind, WAITING)}")
    repaired = _repair(folder)
    assert repaired.left == ()
    row = _query(folder, "SELECT turn, pending FROM sessions WHERE id = ?", session)
    if kind != "prompt_admitted":
        assert row == [(None, 0)]
    assert examine() == []
    views = await serve()
    assert [call.status for call in views[session].calls if call.status == "completed"] == []


async def test_a_prompt_that_may_have_had_its_turn_is_not_run_again(
    folder: Path, damage: Damage, serve: Serve
) -> None:
    damage(f"DELETE FROM events WHERE {_event('prompt_delivered')}")
    session = SessionId(str(_query(folder, f"SELECT {LONG}")[0][0]))
    assert _repair(folder).left == ()
    assert _query(folder, "SELECT queued FROM sessions WHERE id = ?", session) == [(0,)]
    views = await serve()
    said = [m.role for m in views[session].messages if m.role == "user"]
    assert len(said) == 2  # the second prompt of the log, and that of `serve`


@pytest.mark.parametrize(
    ("change", "column", "value"),
    [
        ("mode = 'ask'", "mode", "ask"),
        ("title = 'mine'", "title", "mine"),
        ("archived = 1", "archived", 1),
        ("labels = 'a'", "labels", "a"),
        ("closed = 1", "closed", 1),
    ],
)
def test_a_setting_that_the_log_has_lost_is_taken_from_the_list(
    folder: Path, damage: Damage, examine: Examine, change: str, column: str, value: object
) -> None:
    damage(
        f"UPDATE sessions SET {change} WHERE id = {LONG}",
        f"DELETE FROM events WHERE {_event('step_ended')}",
    )
    assert _repair(folder).left == ()
    assert _query(folder, f"SELECT {column} FROM sessions WHERE id = {LONG}") == [(value,)]
    assert examine() == []


@pytest.mark.rules("C1.20")
@pytest.mark.parametrize(
    ("statement", "words"),
    [
        (
            "INSERT INTO events SELECT session, seq + 100, turn, time_ms, "
            "CAST(replace(CAST(data AS TEXT), '\"seq\":' || seq, '\"seq\":' || (seq + 100)) "
            f"AS BLOB), private FROM events WHERE {_event('turn_completed')}",
            "after the end of what they belong to",
        ),
        (
            "UPDATE events SET data = CAST(replace(CAST(data AS TEXT), 'turn_completed', "
            f"'turn_complexed') AS BLOB) WHERE {_event('turn_completed')}",
            "turn(s) have no end",
        ),
        (
            "UPDATE events SET data = CAST(replace(CAST(data AS TEXT), 'turn_started', "
            f"'turn_startled') AS BLOB) WHERE {_event('turn_started')}",
            "belong to what has no beginning",
        ),
        (
            "UPDATE events SET data = CAST(replace(CAST(data AS TEXT), 'tool_ended', "
            f"'tool_bended') AS BLOB) WHERE {_event('tool_ended')}",
            "ended while something of them was open",
        ),
        (
            f"UPDATE events SET turn = 'trn_other' WHERE {_event('step_started')}",
            "columns that are out of step",
        ),
    ],
)
async def test_a_log_that_breaks_the_law_of_turns_is_brought_under_it(
    folder: Path, damage: Damage, examine: Examine, serve: Serve, statement: str, words: str
) -> None:
    damage(statement)
    found = examine()
    assert any(words in one.message for one in found), found
    repaired = _repair(folder)
    assert [one.level for one in repaired.left if one.level == "fault"] == []
    assert [one.level for one in examine() if one.level == "fault"] == []
    assert len(await serve()) == 3


@pytest.mark.parametrize(
    ("statement", "check", "words"),
    [
        (f"UPDATE sessions SET turn = 'trn_x', pending = 9 WHERE id = {LONG}", "list", "turn"),
        (f"UPDATE sessions SET last_seq = 3 WHERE id = {LONG}", "list", "last_seq"),
        (f"UPDATE sessions SET created_ms = 'soon' WHERE id = {LONG}", "list", "row"),
        (f"UPDATE sessions SET labels = x'ff' WHERE id = {LONG}", "list", "row"),
        (f"DELETE FROM sessions WHERE id = {LONG}", "list", "no row in the list"),
        ("UPDATE words SET folded = 'other words'", "list", "words"),
        ("INSERT INTO words VALUES ('ses_gone', 'x')", "words", "not there"),
        ("INSERT INTO marks VALUES ('owner', 'ses_gone', 1)", "marks", "not there"),
        (
            "INSERT OR REPLACE INTO marks SELECT user, id, 10000 FROM sessions",
            "marks",
            "behind the end",
        ),
        ("UPDATE tombstones SET emptied = 0", "tombstones", "not removed whole yet"),
        (
            f"INSERT INTO tombstones VALUES ({LONG}, 'owner', 1, 1)",
            "tombstones",
            "could not be deleted",
        ),
        (
            "INSERT INTO events SELECT tombstones.session, seq, turn, time_ms, data, private "
            f"FROM tombstones, events WHERE events.session = {LONG}",
            "tombstones",
            "were left behind",
        ),
        ("UPDATE file_pieces SET data = data || x'00'", "files", "not those that were kept"),
        ("DELETE FROM file_pieces", "files", "not those that were kept"),
        ("DELETE FROM file_uses", "files", "not noted as used"),
        ("DELETE FROM meta WHERE key = 'log'", "lineage", "which log it is"),
    ],
)
async def test_what_stands_beside_the_log_is_set_right(
    folder: Path,
    damage: Damage,
    examine: Examine,
    serve: Serve,
    statement: str,
    check: str,
    words: str,
) -> None:
    rows = _query(folder, "SELECT * FROM sessions ORDER BY id")
    damage(statement)
    found = examine()
    assert check in {one.check for one in found}, found
    assert any(words in one.message for one in found), found
    repaired = _repair(folder)
    assert [one for one in repaired.left if one.repair or one.level == "fault"] == []
    assert repaired.done
    assert [one for one in examine() if one.level == "fault"] == []
    assert _query(folder, "SELECT * FROM sessions ORDER BY id") == rows
    assert len(await serve()) == 3


async def test_a_row_whose_id_is_no_text_is_kept_apart_and_its_session_found_again(
    folder: Path, damage: Damage, examine: Examine, serve: Serve
) -> None:
    damage(f"UPDATE sessions SET id = CAST(x'ff00fe' AS TEXT) WHERE id = {LONG}")
    assert any("cannot be read" in one.message for one in examine())
    assert _repair(folder).left == ()
    assert _query(folder, "SELECT place FROM quarantine") == [("sessions",)]
    assert len(await serve()) == 3


async def test_events_whose_session_was_changed_go_back_to_their_place(
    folder: Path, damage: Damage, examine: Examine
) -> None:
    damage(f"UPDATE events SET session = 'ses_wrong' WHERE seq = 3 AND session = {LONG}")
    assert _repair(folder).left == ()
    assert _notices(folder) == 0
    assert _query(folder, "SELECT count(*) FROM quarantine") == [(0,)]
    assert examine() == []


def test_a_hole_that_no_notices_could_fill_gets_one(
    folder: Path, damage: Damage, examine: Examine
) -> None:
    damage(f"UPDATE sessions SET last_seq = {2**62} WHERE id = {LONG}")
    assert _repair(folder).left == ()
    assert _notices(folder) == 1
    assert examine() == []


def test_a_session_of_which_no_event_is_left_can_be_opened(
    folder: Path, damage: Damage, examine: Examine
) -> None:
    session = _query(folder, f"SELECT {LONG}")[0][0]
    damage(f"DELETE FROM events WHERE session = '{session}'")
    assert _repair(folder).left == ()
    row = _query(folder, "SELECT title, mode, last_seq > 1 FROM sessions WHERE id = ?", session)
    assert row == [("look at this", "auto", 1)]
    assert examine() == []


async def test_a_deleted_session_takes_what_was_kept_apart_along(
    folder: Path, damage: Damage
) -> None:
    damage(f"UPDATE events SET data = x'00' WHERE {_event('step_ended')}")
    session = SessionId(str(_query(folder, f"SELECT {LONG}")[0][0]))
    _repair(folder)
    assert _query(folder, "SELECT session FROM quarantine") == [(session,)]
    store = await open_store(folder, mint=mint_now)
    await store.write(lambda c: tombstones.bury(c, session, "owner", now_ms=NOW_MS))
    await store.close()
    assert _query(folder, "SELECT session FROM quarantine") == []


@pytest.mark.rules("C5.3")
def test_a_repair_beside_a_server_is_refused_and_the_server_named(folder: Path) -> None:
    lock = take_lock(folder)
    lock.announce("http://127.0.0.1:1")
    with pytest.raises(StoreLocked, match="in use by process"):
        _repair(folder)
    lock.release()


def test_a_store_of_an_older_version_is_brought_up_to_date_before_it_is_mended(
    folder: Path, damage: Damage, examine: Examine
) -> None:
    damage(
        "DROP INDEX sessions_by_parent",
        "ALTER TABLE sessions DROP COLUMN parent",
        "ALTER TABLE sessions DROP COLUMN last_line",
        "DROP TABLE quarantine",
        "DROP TABLE push_subscriptions",
        "DROP TABLE push_outcomes",
        "DELETE FROM schema_version WHERE version >= 6",
        f"UPDATE events SET data = x'00' WHERE {_event('step_ended')}",
    )
    assert [one.check for one in examine()] == ["schema"]
    repaired = _repair(folder)
    assert repaired.left == ()
    assert any("brought up to version" in said for said in repaired.done)
    assert _notices(folder) == 1
    assert examine() == []


@pytest.mark.rules("C1.3", "C1.20", "C1.23")
@pytest.mark.parametrize("seed", range(25))
def test_whatever_is_lost_of_the_logs_one_repair_is_enough(
    folder: Path, damage: Damage, examine: Examine, seed: int
) -> None:
    chance = random.Random(seed)
    places = [row[0] for row in _query(folder, "SELECT rowid FROM events ORDER BY rowid")]
    changes = (
        "DELETE FROM events WHERE rowid = {}",
        "UPDATE events SET data = x'7b7d' WHERE rowid = {}",
        "UPDATE events SET seq = seq + 1000 WHERE rowid = {}",
        "UPDATE events SET turn = 'trn_other' WHERE rowid = {}",
        "UPDATE events SET session = 'ses_other', seq = rowid + 1000 WHERE rowid = {}",
        "UPDATE events SET private = x'00' WHERE rowid = {}",
        "UPDATE events SET time_ms = 'then' WHERE rowid = {}",
        "DELETE FROM sessions WHERE id = (SELECT session FROM events WHERE rowid = {})",
    )
    chosen = chance.sample(places, chance.randint(1, len(places) // 2))
    damage(*(chance.choice(changes).format(place) for place in chosen))
    assert examine()
    assert [one for one in _repair(folder).left if one.level == "fault"] == []
    assert [one for one in examine() if one.level == "fault"] == []
    assert _repair(folder).done == ()


class _Cut(BaseException):
    """The power goes."""


@pytest.mark.parametrize("torn", [False, True])
@pytest.mark.parametrize("at", range(1, 24, 2))
def test_a_repair_that_is_cut_leaves_a_store_that_the_next_one_mends(
    folder: Path, damage: Damage, examine: Examine, at: int, torn: bool
) -> None:
    damage(
        "UPDATE events SET data = x'00' WHERE seq = 5",
        "UPDATE file_pieces SET data = x'00'",
        "UPDATE tombstones SET emptied = 0",
    )
    if torn:
        os.truncate(folder / STORE_FILE, (folder / STORE_FILE).stat().st_size - 8000)
    calls = 0

    def cut(what: str, done: int, total: int) -> None:
        nonlocal calls
        calls += 1
        if calls == at:
            raise _Cut

    with contextlib.suppress(_Cut):
        repair_store(folder, now_ms=NOW_MS, mint=mint_now, on_progress=cut)
    assert [one for one in _repair(folder).left if one.level == "fault"] == []
    assert [one for one in examine() if one.level == "fault"] == []
    assert not list(folder.glob("*.new*"))
