"""Users and their tokens, as rows."""

import sqlite3

import pytest

from towline_server.store import tokens, users
from towline_server.store.migration import migrate
from towline_server.store.statements import load_migrations
from towline_server.store.tokens import Known, Token
from towline_server.store.users import User


@pytest.fixture
def connection() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    migrate(connection)
    users.add(connection, User(name="me", password="a hash", created_ms=1))
    return connection


def _token(name: str, created_ms: int = 0, **more: object) -> Token:
    fields: dict[str, object] = {
        "sha256": name * 2,
        "id": f"tok_{name}",
        "user": "me",
        "name": name,
        "created_ms": created_ms,
        "last_used_ms": created_ms,
        **more,
    }
    return Token(**fields)  # pyright: ignore[reportArgumentType] - a test names the fields


def test_a_token_counts_until_it_expires_or_is_revoked(connection: sqlite3.Connection) -> None:
    first, second = _token("a"), _token("b", 5, expires_ms=100)
    tokens.add(connection, first)
    tokens.add(connection, second)
    assert tokens.find(connection, "aa", now_ms=10**12) == Known(first, admin=False)
    assert tokens.find(connection, "bb", now_ms=99) == Known(second, admin=False)
    assert tokens.find(connection, "bb", now_ms=100) is None
    assert tokens.find(connection, "cc", now_ms=0) is None
    assert tokens.tokens_of(connection, "me", now_ms=99) == [first, second]
    assert tokens.tokens_of(connection, "me", now_ms=100) == [first]
    assert tokens.revoke(connection, "aa")
    assert not tokens.revoke(connection, "aa")
    assert tokens.find(connection, "aa", now_ms=0) is None


def test_a_device_slides_on_while_it_is_used_and_a_login_does_not(
    connection: sqlite3.Connection,
) -> None:
    tokens.add(connection, _token("a", expires_ms=100, slide_ms=100))
    tokens.add(connection, _token("b", expires_ms=100, kind="login"))
    for digest in ("aa", "bb"):
        assert tokens.touch(connection, digest, now_ms=50)
    assert not tokens.touch(connection, "zz", now_ms=50)
    found = [
        (row.last_used_ms, row.expires_ms) for row in tokens.tokens_of(connection, "me", now_ms=0)
    ]
    assert found == [(50, 150), (50, 100)]
    assert tokens.prune(connection, now_ms=149) == ["bb"]
    assert tokens.prune(connection, now_ms=150) == ["aa"]


def test_a_token_is_revoked_by_its_id_by_its_user_alone(connection: sqlite3.Connection) -> None:
    tokens.add(connection, _token("a"))
    assert tokens.revoke_id(connection, "tok_a", "you") is None
    assert tokens.revoke_id(connection, "tok_a", "me") == "aa"
    assert tokens.revoke_id(connection, "tok_a", "me") is None


def test_tokens_of_a_user_end_together_or_by_kind(connection: sqlite3.Connection) -> None:
    for name, kind in (("a", "login"), ("b", "login"), ("c", "device"), ("d", "program")):
        tokens.add(connection, _token(name, kind=kind))
    tokens.add(connection, _token("e", user="you"))
    assert tokens.revoke_of(connection, "me", kind="login", but="bb") == ["aa"]
    assert tokens.count(connection, "me", "login") == 1
    assert sorted(tokens.revoke_of(connection, "me")) == ["bb", "cc", "dd"]
    assert len(tokens.tokens_of(connection, "you", now_ms=0)) == 1


def test_the_token_used_longest_ago_makes_room(connection: sqlite3.Connection) -> None:
    tokens.add(connection, _token("a", 1, last_used_ms=9))
    tokens.add(connection, _token("b", 2))
    assert tokens.revoke_oldest(connection, "me", "device") == "bb"
    assert tokens.revoke_oldest(connection, "me", "login") is None


def test_the_owner_is_there_from_the_start_without_a_password(
    connection: sqlite3.Connection,
) -> None:
    owner = users.find(connection, "owner")
    assert owner is not None
    assert (owner.admin, owner.password, owner.removed_ms) == (True, None, None)
    assert [user.name for user in users.users(connection)] == ["me", "owner"]
    assert users.count_passwords(connection) == 1


def test_a_removed_user_has_no_way_in_and_keeps_the_name(connection: sqlite3.Connection) -> None:
    tokens.add(connection, _token("a"))
    assert users.remove(connection, "me", now_ms=7)
    assert not users.remove(connection, "me", now_ms=8)
    assert tokens.find(connection, "aa", now_ms=0) is None
    found = users.find(connection, "me")
    assert found is not None
    assert (found.password, found.removed_ms) == (None, 7)
    assert not users.set_password(connection, "me", "another hash")
    with pytest.raises(sqlite3.IntegrityError):
        users.add(connection, User(name="me", created_ms=9))
    assert users.restore(connection, "me", password="new", admin=True)
    assert not users.restore(connection, "owner", password="new", admin=True)
    assert tokens.find(connection, "aa", now_ms=0) is not None  # so a removal ends tokens too


def test_a_user_shows_no_hash() -> None:
    assert repr(User(name="me", password="a hash", created_ms=1)) == "User('me')"


def test_devices_of_a_store_without_users_stay_the_owner_s() -> None:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    steps = load_migrations()
    migrate(connection, steps[:1])
    for name in ("aa", "bb"):
        connection.execute(
            "INSERT INTO tokens VALUES (?, 'owner', 'phone', 1, 2, 1000000000000)", (name,)
        )
    migrate(connection, steps)
    known = tokens.find(connection, "aa", now_ms=3)
    assert known is not None
    assert known.admin
    assert (known.token.kind, known.token.slide_ms) == ("device", 180 * 24 * 3600 * 1000)
    assert len({row.id for row in tokens.tokens_of(connection, "owner", now_ms=3)}) == 2
