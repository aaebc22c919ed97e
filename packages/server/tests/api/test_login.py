"""Passwords: who comes in by them, how slowly they are guessed, and what a change ends."""

import asyncio
from collections.abc import AsyncGenerator
from http.cookies import SimpleCookie
from pathlib import Path

import argon2
import pytest
from starlette.requests import Request

from towline_agent.testing import FakeClock, ScriptedProvider
from towline_protocol import (
    AddUser,
    ChangePassword,
    Identity,
    LoggedIn,
    Login,
    Problem,
    UsageError,
    parse_time,
)
from towline_server.api.access import LOGIN_LIFE_S, address_of
from towline_server.auth.password import Passwords, check_new_password, check_user_name
from towline_server.auth.reserved_name import RESERVED_NAMES
from towline_server.auth.throttle import Throttle
from towline_server.build import BuiltApp
from towline_server.errors import TooManyTries
from towline_server.testing import AppClient, Reply, open_test_app, sign_in

CHEAP = argon2.PasswordHasher.from_parameters(argon2.profiles.CHEAPEST)
WORD = "correct horse"


class CountingHasher:
    """Counts what it is asked for."""

    def __init__(self) -> None:
        self.hashed = 0
        self.verified = 0

    def hash(self, password: str) -> str:
        self.hashed += 1
        return CHEAP.hash(password)

    def verify(self, hash: str, password: str) -> bool:  # noqa: A002 - as argon2 names it
        self.verified += 1
        return CHEAP.verify(hash, password)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(held=True)


@pytest.fixture
def hasher() -> CountingHasher:
    return CountingHasher()


@pytest.fixture
async def built(
    tmp_path: Path, clock: FakeClock, hasher: CountingHasher
) -> AsyncGenerator[BuiltApp]:
    provider = ScriptedProvider()
    async with open_test_app(provider, root=tmp_path, clock=clock, hasher=hasher) as built:
        await built.access.accounts.set_password("owner", WORD)
        yield built


async def _login(
    built: BuiltApp,
    password: str = WORD,
    *,
    user: str = "owner",
    cookie: bool = False,
    https: bool = False,
) -> Reply:
    body = Login(user=user, password=password, cookie=cookie)
    client = AppClient(built, token="", scheme="https" if https else "http")
    return await client.ask("POST", "/api/auth/login", body)


async def _me(built: BuiltApp, token: str | None) -> int:
    assert token is not None
    return (await AppClient(built, token=token).ask("GET", "/api/auth/me")).status


async def _token(built: BuiltApp, password: str = WORD, user: str = "owner") -> str:
    token = (await _login(built, password, user=user)).read(LoggedIn).token
    assert token is not None
    return token


async def _change(
    client: AppClient, user: str, password: str, *, old: str | None = None, everywhere: bool = False
) -> Reply:
    body = ChangePassword(password=password, old=old, everywhere=everywhere)
    return await client.ask("PUT", f"/api/users/{user}/password", body)


@pytest.mark.rules("C2.3")
async def test_a_password_gives_a_token_of_24_hours_that_use_does_not_prolong(
    built: BuiltApp, clock: FakeClock
) -> None:
    reply = (await _login(built, user=" Owner ")).read(LoggedIn)  # as a phone writes it
    assert reply.user == "owner"
    assert parse_time(reply.expires_at) - clock.now_ms() == LOGIN_LIFE_S * 1000
    clock.advance(LOGIN_LIFE_S - 1)
    assert await _me(built, reply.token) == 200
    clock.advance(2)
    assert await _me(built, reply.token) == 401


async def test_the_page_s_login_lies_in_a_cookie_of_this_server(built: BuiltApp) -> None:
    reply = await _login(built, cookie=True)
    assert reply.read(LoggedIn).token is None
    cookie = SimpleCookie(reply.headers["set-cookie"])[built.access.cookie]
    assert (cookie["httponly"], cookie["samesite"], cookie["path"]) == (True, "strict", "/")
    assert cookie["max-age"] == f"{LOGIN_LIFE_S}"
    assert not cookie["secure"]


async def test_over_https_the_cookie_goes_nowhere_else(built: BuiltApp) -> None:
    reply = await _login(built, cookie=True, https=True)
    name = f"__Host-{built.access.cookie}"
    cookie = SimpleCookie(reply.headers["set-cookie"])[name]
    assert (cookie["secure"], cookie["path"], cookie["domain"]) == (True, "/", "")
    headers = {"cookie": f"{name}={cookie.value}"}
    for scheme, status in (("https", 200), ("http", 401)):
        client = AppClient(built, token="", scheme=scheme)
        assert (await client.ask("GET", "/api/auth/me", headers=headers)).status == status
    client = AppClient(built, token="", scheme="https")
    gone = await client.ask("POST", "/api/auth/logout", headers=headers)
    assert SimpleCookie(gone.headers["set-cookie"])[name]["secure"]
    assert (await client.ask("GET", "/api/auth/me", headers=headers)).status == 401


@pytest.mark.rules("C2.9")
async def test_a_wrong_password_and_a_wrong_name_look_the_same_and_cost_the_same(
    built: BuiltApp, hasher: CountingHasher
) -> None:
    await sign_in(built, "gone")
    await AppClient(built).ask("DELETE", "/api/users/gone")
    await _login(built, "wrong", user="nobody")  # makes the hash that absent users are held against
    told: list[tuple[int, str, str | None]] = []
    costs: list[tuple[int, int]] = []
    for user in ("owner", "nobody", "gone", "", "x" * 200):
        before = (hasher.hashed, hasher.verified)
        reply = await _login(built, "wrong", user=user)
        problem = reply.read(Problem)
        told.append((reply.status, problem.detail, problem.reason))
        costs.append((hasher.hashed - before[0], hasher.verified - before[1]))
    assert set(costs) == {(0, 1)}
    assert len(set(told)) == 1
    assert told[0][::2] == (401, "wrong_password")


@pytest.mark.rules("C2.4")
async def test_guessing_a_user_s_password_is_slow(
    built: BuiltApp, clock: FakeClock, hasher: CountingHasher
) -> None:
    for _ in range(10):
        assert (await _login(built, "wrong")).status == 401
    clock.advance(100)
    before = hasher.verified
    refused = await _login(built)  # even the right one waits now
    assert (refused.status, refused.headers["retry-after"]) == (429, "200")
    assert refused.read(Problem).code == "rate_limited"
    assert hasher.verified == before  # and costs nothing
    await built.access.accounts.add_user(AddUser(name="other", password=WORD))
    assert (await _login(built, user="other")).status == 200
    clock.advance(200)
    assert (await _login(built)).status == 200


@pytest.mark.rules("C2.4")
async def test_guessing_names_from_one_address_is_slow(built: BuiltApp, clock: FakeClock) -> None:
    for number in range(30):
        assert (await _login(built, user=f"nobody-{number}")).status == 401
    assert (await _login(built)).status == 429
    clock.advance(300)
    assert (await _login(built)).status == 200


async def test_tries_at_the_same_time_all_count(built: BuiltApp) -> None:
    replies = await asyncio.gather(*(_login(built, "wrong") for _ in range(25)))
    assert sorted(reply.status for reply in replies) == [401] * 10 + [429] * 15


async def test_right_passwords_count_as_no_tries(built: BuiltApp) -> None:
    for _ in range(12):
        assert (await _login(built)).status == 200


async def test_a_user_without_a_password_cannot_log_in(tmp_path: Path) -> None:
    async with open_test_app(ScriptedProvider(), root=tmp_path) as built:
        for password in ("", "nobody's password"):
            assert (await _login(built, password)).status == 401


async def test_a_first_password_needs_no_old_one_and_the_next_does(tmp_path: Path) -> None:
    async with open_test_app(ScriptedProvider(), root=tmp_path) as built:
        code, _ = built.access.new_code()
        phone = AppClient(built, token=(await built.access.claim(code, "phone")).token)
        assert (await _change(phone, "owner", WORD)).status == 204
        for old in (None, "wrong"):
            refused = await _change(phone, "owner", "another one", old=old)
            assert (refused.status, refused.read(Problem).reason) == (422, "wrong_password")
        assert (await _change(phone, "owner", "another one", old=WORD)).status == 204
        assert (await _login(built, "another one")).status == 200
        # whoever can read the server's own token can read the store as well
        assert (await _change(AppClient(built), "owner", WORD)).status == 204
        assert (await _login(built)).status == 200


@pytest.mark.rules("C2.4")
async def test_guessing_the_old_password_is_slow_too(built: BuiltApp) -> None:
    client = AppClient(built, token=await _token(built))
    for _ in range(10):
        assert (await _change(client, "owner", "another one", old="wrong")).status == 422
    assert (await _change(client, "owner", "another one", old=WORD)).status == 429


async def test_a_new_password_ends_logins_but_the_one_that_asked_and_devices_when_asked(
    built: BuiltApp,
) -> None:
    code, _ = built.access.new_code()
    device = (await built.access.claim(code, "phone")).token
    asking, other = await _token(built), await _token(built)
    client = AppClient(built, token=asking)
    assert (await _change(client, "owner", "another one", old=WORD)).status == 204
    assert [await _me(built, token) for token in (asking, other, device)] == [200, 401, 200]
    change = await _change(client, "owner", WORD, old="another one", everywhere=True)
    assert change.status == 204
    assert [await _me(built, token) for token in (asking, device)] == [200, 401]


async def test_an_admin_gives_others_a_new_password_and_nobody_else_does(built: BuiltApp) -> None:
    ann = await sign_in(built, "ann")
    eve = await sign_in(built, "eve")
    for name in ("ann", "owner", "nobody"):
        assert (await _change(eve, name, "stolen word")).status == 404
    assert (await _change(AppClient(built, token=await _token(built)), "ann", WORD)).status == 204
    assert (await _login(built, user="ann")).status == 200
    assert (await ann.ask("GET", "/api/auth/me")).status == 401  # an old login of hers
    assert (await eve.ask("GET", "/api/auth/me")).read(Identity) == Identity(
        user="eve", server_name="towline"
    )


@pytest.mark.parametrize(
    ("password", "good"),
    [
        ("1234567", False),
        ("12345678", True),
        ("x" * 1024, True),
        ("x" * 1025, False),
        ("ﬃ" * 4, True),
    ],
)
def test_a_password_has_8_to_1024_characters(password: str, *, good: bool) -> None:
    if good:
        check_new_password(password)
        return
    with pytest.raises(UsageError) as caught:
        check_new_password(password)
    assert password not in caught.value.message


@pytest.mark.parametrize("name", ["", "Ann", "a b", "-a", "a/b", "ä", "a" * 65, "a\n", ".."])
def test_a_name_is_made_of_few_characters(name: str) -> None:
    with pytest.raises(UsageError, match=r"is no user's name; take lower-case letters"):
        check_user_name(name)


@pytest.mark.rules("C2.9")
@pytest.mark.parametrize("name", sorted(RESERVED_NAMES))
async def test_nobody_is_called_as_logs_call_what_nobody_decided(
    built: BuiltApp, name: str
) -> None:
    new = AddUser(name=name, password="correct horse")
    refused = await AppClient(built).ask("POST", "/api/users", new)
    assert refused.status == 400
    assert refused.read(Problem).detail.startswith(f"{name!r} names no user: logs say so")


async def test_a_password_is_the_same_in_every_spelling_of_its_letters() -> None:
    passwords = Passwords(CHEAP)
    hashed = await passwords.hash("caf\u00e9 1234")
    assert await passwords.check(hashed, "cafe\u0301 1234")
    assert not await passwords.check(hashed, "cafe 1234")
    assert not await passwords.check(None, "nobody's password")
    assert not await passwords.check("no hash", "cafe 1234")
    passwords.close()
    passwords.close()


async def test_passwords_are_hashed_with_argon2id_and_its_least_recommended_cost() -> None:
    passwords = Passwords()
    hashed = await passwords.hash(WORD)
    assert hashed.startswith("$argon2id$v=19$m=19456,t=2,p=1$")
    assert await passwords.check(hashed, WORD)
    passwords.close()


async def test_hashing_waits_beside_the_loop_and_not_without_bound() -> None:
    passwords = Passwords(CHEAP)
    work = [asyncio.create_task(passwords.hash(WORD)) for _ in range(40)]
    done = await asyncio.gather(*work, return_exceptions=True)
    refused = [error for error in done if isinstance(error, TooManyTries)]
    assert len(refused) == 8
    assert all(isinstance(hashed, str) for hashed in done[:32])
    passwords.close()


def test_a_throttle_remembers_no_more_than_its_keys() -> None:
    throttle = Throttle(lambda: 0.0, tries=1, window_s=60, keys=2)
    for key in ("a", "b", "a", "c"):
        throttle.note(key)
    throttle.check("b")  # the one seen longest ago made room
    for key in ("a", "c"):
        with pytest.raises(TooManyTries):
            throttle.check(key)


@pytest.mark.parametrize(
    ("host", "counted"),
    [
        ("10.0.0.7", "10.0.0.7"),
        ("::ffff:10.0.0.7", "10.0.0.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("a name", "a name"),
        (None, ""),
    ],
)
def test_tries_count_by_address_and_for_ipv6_by_network(host: str | None, counted: str) -> None:
    client = None if host is None else (host, 1)
    assert address_of(Request({"type": "http", "headers": [], "client": client})) == counted
